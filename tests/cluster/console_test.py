"""`pscloud console` as a real process: its API over loopback, asked by a client that is none of ours."""

import fcntl
import json
import os
import pathlib
import signal
import stat
import struct
import time
import unittest

from console_harness import Api, Events
from harness import SANITIZERS
from launch_harness import PSCLOUD, LaunchTest, until

NODES, LINES_EACH_S, SECONDS_OF_LINES = 20, 1000, 3


def state(run, step, tasks):
    return json.dumps({"run": run, "job": "j1", "target": "local", "state": step, "message": "",
                       "began_unix_ms": 1000, "ended_unix_ms": 0 if step == "running" else 2000,
                       "tasks": [{"task": task, "state": "running"} for task in tasks]})


class ConsoleTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.console = self.start(PSCLOUD, "console")
        address = until(lambda: self.console.out.read_text(), lambda: self.story(self.console))
        self.url, _, self.token = address.strip().partition("/#token=")
        self.api = Api(self.url, self.token)

    def make_run(self, name, step="done", tasks=("worker-0",)):
        folder = self.run_folder(name)
        (folder / "logs").mkdir(parents=True)
        (folder / "state.json").write_text(state(name, step, tasks))
        return folder

    def hold(self, folder):
        """As a launcher holds its run."""
        lock = open(folder / "lock", "w")
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        self.addCleanup(lock.close)
        return lock

    def test_only_the_token_opens_it(self):
        self.make_run("clicks")
        [token_file] = self.home.glob("console-*.token")
        self.assertEqual(stat.S_IMODE(token_file.stat().st_mode), 0o600)
        self.assertEqual(token_file.read_text().strip(), self.token)
        self.assertEqual(len(self.token), 64)
        command = pathlib.Path(f"/proc/{self.console.pid}/cmdline").read_text()
        self.assertNotIn(self.token, command)
        self.assertEqual(self.api.ask("GET", "/api/runs", token="0" * 64)[0], 401)
        status, headers, body = self.api.ask("GET", "/api/runs", token="")
        self.assertEqual((status, b"clicks" in body), (401, False))
        self.assertEqual(self.api.ask("GET", f"/api/runs?token={self.token}", token="")[0], 200)
        status, headers, body = self.api.ask("GET", "/", token="")
        self.assertEqual(status, 200)
        self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(self.api.ask("GET", "/", {"If-None-Match": headers["ETag"]}, token="")[0], 304)
        self.console.send_signal(signal.SIGTERM)
        self.ends(self.console, 0)
        self.assertFalse(token_file.exists())

    def test_names_lead_nowhere_else(self):
        self.make_run("clicks")
        (self.home / "secret").write_text("hidden")
        for path in ("/api/runs/..%2f..%2fsecret", "/api/runs/../../secret",
                     "/api/runs/clicks/logs/..%2f..%2f..%2fsecret", "/api/runs/%2e%2e/logs/launcher",
                     "/api/runs/clicks%00/logs/launcher", "/log/..%2f..%2fsecret",
                     "/assets/..%2f..%2fsecret", "/api/runs/%ff%fe", "/api/runs/" + "a" * 5000):
            status, _, body = self.api.ask("GET", path)
            self.assertEqual(status, 404, path)
            self.assertNotIn(b"hidden", body)

    def test_a_run_is_followed_and_stopped(self):
        run = self.start(PSCLOUD, "run", "--quiet", "--name", "going", "--workers", 2, "--", "sh", "-c",
                         "trap 'echo told; exit 0' TERM; printf 'up \\377\\033[31m\\n'; while :; do sleep 0.02; done")
        until(lambda: (self.run_folder("going") / "logs/worker-1.log").exists(), lambda: self.story(run))
        seen = {"lines": [], "state": [], "end": []}
        stream = Events(self.api, "/api/runs/going/stream?logs=all&from=start",
                        lambda name, data: seen[name].append(data) if name in seen else None)
        until(lambda: {"worker-0", "worker-1"} <= {lines["task"] for lines in seen["lines"]}, lambda: str(seen))
        self.assertEqual(seen["lines"][0]["lines"], ["up \ufffd\x1b[31m"])
        until(lambda: seen["state"], lambda: str(seen))
        self.assertEqual(self.api.json("/api/runs?state=open")["runs"][0]["state"], "running")
        self.assertEqual(self.api.ask("POST", "/api/runs/going/stop", {}, b"")[0], 403)
        self.assertEqual(self.api.post("/api/runs/going/stop", Origin="http://evil.example")[0], 403)
        status, _, body = self.api.post("/api/runs/going/stop", Origin=self.url)
        self.assertEqual((status, json.loads(body)), (202, {"state": "stopping"}))
        self.ends(run, 130)
        stream.join(30)
        self.assertEqual(seen["end"], [{}])
        self.assertEqual(seen["state"][-1]["state"], "interrupted")
        self.assertIn("told", [line for lines in seen["lines"] for line in lines["lines"]])
        log = self.log_bytes("going", "worker-0")
        status, headers, body = self.api.ask("GET", "/api/runs/going/logs/worker-0", {"Range": "bytes=3-6"})
        self.assertEqual((status, body, headers["Content-Range"]), (206, log[3:7], f"bytes 3-6/{len(log)}"))
        self.assertEqual(self.api.ask("GET", "/log/trainer_0.log")[2], log)
        self.assertIn(b"trainer_1.log\n", self.api.ask("GET", "/list_logs")[2])
        self.assertEqual(self.api.ask("HEAD", "/status")[0], 200)

    def log_bytes(self, run, task):
        return (self.run_folder(run) / "logs" / f"{task}.log").read_bytes()

    def test_the_verbs_ask_it_too(self):
        run = self.start(PSCLOUD, "run", "--quiet", "--name", "going", "--workers", 2, "--", "sh", "-c",
                         "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done")
        self.until_says("going", "worker-1", "up", run)
        self.until_says("going", "worker-0", "up", run)
        there = ("--controller", self.url)
        self.assertIn("token is missing", self.fails(2, "status", *there))
        wrong = self.fails(2, "status", *there, PSCLOUD_TOKEN="x" * 64)
        self.assertIn("does not know this token", wrong)
        [token_file] = self.home.glob("console-*.token")
        there = (*there, "--token-file", token_file)
        elsewhere = {"PSCLOUD_HOME": str(self.work)}  # where there are no runs
        self.assertIn("going  local  running  2", self.pscloud("status", *there, **elsewhere))
        self.assertIn("worker-1  ", self.pscloud("status", "going", *there, **elsewhere))
        self.assertEqual(json.loads(self.pscloud("status", "--json", *there, **elsewhere))["total"], 1)
        self.assertEqual(self.pscloud("logs", "going", "worker-0", *there, **elsewhere), "up\n")
        follow = self.start(PSCLOUD, "logs", "going", "-f", *there, **elsewhere)
        until(lambda: "[worker-1] up" in self.story(follow), lambda: self.story(follow))
        self.assertEqual(self.pscloud("down", *there, **elsewhere), "nothing was left\n")
        self.assertEqual(self.pscloud("stop", "going", *there, **elsewhere), "going interrupted\n")
        self.ends(run, 130)
        followed = self.ends(follow).split("\n")
        for line in ("[worker-0] up", "[worker-0] told", "[worker-1] up", "[worker-1] told"):
            self.assertIn(line, followed)
        self.assertIn("no run", self.fails(2, "stop", "nobody", *there, **elsewhere))
        self.assertIn("no name", self.fails(2, "status", "../x", *there, **elsewhere))
        self.assertIn("only this machine", self.fails(2, "status", "--controller", "http://10.9.9.9:1", **elsewhere,
                                                      PSCLOUD_TOKEN="x"))

    def fails(self, code, *words, **variables):
        process = self.start(PSCLOUD, *words, **variables)
        self.ends(process, code)
        return self.story(process)

    def test_what_a_killed_launcher_left_is_cleaned_up(self):
        run = self.start(PSCLOUD, "run", "--quiet", "--name", "killed", "--workers", 1, "--", "sleep", 1000)
        until(lambda: self.run_folder("killed").exists() and self.state("killed")["state"] == "running", "it to run")
        self.kill(run)
        self.assertEqual(self.api.json("/api/runs/killed")["state"], "lost")
        self.assertEqual(self.api.ask("POST", "/cleanup", body=b"")[2], b"cleanup in progress")
        until(lambda: not (self.run_folder("killed") / "open").exists(), "the end of what was left")
        self.assertEqual(self.api.json("/api/runs?state=open")["total"], 0)

    def test_many_lines_arrive_within_a_second(self):
        tasks = [f"worker-{n}" for n in range(NODES)]
        folder = self.make_run("loud", "running", tasks)
        lock = self.hold(folder)
        logs = [open(folder / "logs" / f"{task}.log", "ab", 0) for task in tasks]
        for log in logs:
            self.addCleanup(log.close)
        got, late = {task: 0 for task in tasks}, []

        def take(name, data):
            if name != "lines":
                return
            now = time.monotonic()
            for line in data["lines"]:
                number, written = line.split()[:2]
                if int(number) != got[data["task"]]:
                    raise AssertionError(f"{data['task']}: {line} after {got[data['task']]}")
                got[data["task"]] += 1
                late.append(now - float(written))

        stream = Events(self.api, "/api/runs/loud/stream?logs=all", take)
        before = self.cpu_seconds()
        begin = time.monotonic()
        batch = LINES_EACH_S // 20
        for tick in range(20 * SECONDS_OF_LINES):
            while time.monotonic() < begin + tick / 20:
                time.sleep(0.005)  # the pace of who writes
            now = time.monotonic()
            for log in logs:
                log.write(b"".join(b"%d %.6f %s\n" % (tick * batch + i, now, b"x" * 60) for i in range(batch)))
        lock.close()  # the run is over
        stream.join(30)
        self.assertEqual(set(got.values()), {LINES_EACH_S * SECONDS_OF_LINES})
        used = (self.cpu_seconds() - before) / (time.monotonic() - begin)
        print(f"{NODES} x {LINES_EACH_S} lines/s: late by {max(late) * 1000:.0f} ms at most, "
              f"{100 * used:.0f}% of a core", flush=True)
        self.assertLess(max(late), 1)
        self.assertLess(used, 0.5)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.console.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_ten_thousand_runs_are_listed_at_once(self):
        for number in range(10000):
            folder = self.run_folder(f"r{number}")
            folder.mkdir(parents=True)
            (folder / "state.json").write_text(state(f"r{number}", "done", ["worker-0"]))
        took = 1e9
        for _ in range(5):  # the best: others may have the machine too
            begin = time.monotonic()
            page = self.api.json("/api/runs?limit=100")
            took = min(took, time.monotonic() - begin)
        print(f"10,000 runs: a page in {took * 1000:.0f} ms", flush=True)
        self.assertEqual((page["total"], len(page["runs"]), page["runs"][0]["name"]), (10000, 100, "r9999"))
        self.assertLess(took, 2 if SANITIZERS else 0.2)


if __name__ == "__main__":
    unittest.main()
