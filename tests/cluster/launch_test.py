"""The life of a run on this machine: whenever and however its launcher ends, nothing is left and status is true.

Processes are real. launch_local_test.py tries what a single task is given.
"""

import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import killed_launchers
from harness import SANITIZERS
from killed_launchers import KilledLaunchers
from launch_harness import BUILD, PSCLOUD, LaunchTest, marked_processes, until

# A server that says when it was told to end, and how long it then takes, by the variable SLOW.
SERVER = "trap 'date +told=%s.%N; sleep ${SLOW:-0}; exit 0' TERM; echo up; while :; do sleep 0.02; done"
WORKER = "echo up; while [ ! -e go ]; do sleep 0.02; done; date +ended=%s.%N"
BY_ROLE = f'if [ "$PSCLOUD_ROLE" = server ]; then {SERVER}; else {WORKER}; fi'
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.02; done"
BIND = ("import os, socket; s = socket.socket(); h, p = os.environ['PSCLOUD_LISTEN'].rsplit(':', 1); "
        "s.bind((h, int(p))); s.listen(); print('bound')")


def figure(text, name):
    """The number behind "name=" in a log."""
    return float(text.split(f"{name}=")[1].split()[0])


class LifeTest(LaunchTest):
    def begin(self, name, *flags, script=BY_ROLE, **variables):
        return self.start(PSCLOUD, "run", "--name", name, *flags, "--servers", 1, "--workers", 2, "--", "sh", "-c",
                          script, **variables)

    def let_go(self):
        (self.work / "go").touch()

    def until_up(self, name, run):
        for task in ("server-0", "worker-0", "worker-1"):
            self.until_says(name, task, "up", run)

    def status(self, name):
        return json.loads(self.pscloud("status", name, "--json"))

    def assert_nothing_left(self, name):
        job = self.state(name)["job"]
        self.assertFalse(marked_processes(job))
        self.assertFalse(list(self.run_folder(name).glob("tasks/*")))
        self.assertFalse((self.run_folder(name) / "open").exists())

    def test_servers_are_told_within_a_second_of_the_last_workers_end_and_are_stopped(self):
        run = self.begin("good")
        self.until_up("good", run)
        self.let_go()
        self.ends(run)
        last = max(figure(self.log("good", f"worker-{i}"), "ended") for i in range(2))
        self.assertLess(figure(self.log("good", "server-0"), "told") - last, 1)
        states = {task["task"]: task["state"] for task in self.state("good")["tasks"]}
        self.assertEqual(states, {"server-0": "stopped", "worker-0": "done", "worker-1": "done"})
        self.assert_nothing_left("good")

    def test_a_program_of_ours_runs_in_every_role_with_certificates(self):
        self.pscloud("run", "--name", "ours", "--scheduler", "--servers", 2, "--workers", 3, "--",
                     BUILD / "examples" / "linear_regression")
        self.assertRegex(self.log("ours", "worker-0"), r"found 2\.0|found 1\.9")
        self.assert_nothing_left("ours")

    def test_ctrl_c_once_stops_cleanly(self):
        run = self.begin("once")
        self.until_up("once", run)
        run.send_signal(signal.SIGINT)
        self.ends(run, 130)
        self.assertIn("told=", self.log("once", "server-0"))
        self.assertEqual(self.status("once")["state"], "interrupted")
        self.assert_nothing_left("once")

    def test_ctrl_c_twice_ends_at_once(self):
        run = self.begin("twice", "--stop-grace", 50, script=STUBBORN)
        self.until_up("twice", run)
        run.send_signal(signal.SIGINT)
        until(lambda: self.state("twice")["state"] == "stopping", "the stop")
        began = time.monotonic()
        run.send_signal(signal.SIGINT)
        self.ends(run, 130)
        self.assertLess(time.monotonic() - began, 10)
        self.assert_nothing_left("twice")

    def test_who_does_not_listen_is_killed_after_its_grace(self):
        run = self.begin("deaf", "--stop-grace", 0.3, script=STUBBORN)
        self.until_up("deaf", run)
        run.send_signal(signal.SIGTERM)
        self.ends(run, 130)
        self.assertEqual({task.get("exit_code") for task in self.state("deaf")["tasks"]}, {137})

    def test_a_terminal_that_goes_away_stops_the_run_cleanly(self):
        run = self.begin("hangup")
        self.until_up("hangup", run)
        run.send_signal(signal.SIGHUP)
        self.ends(run, 130)
        self.assert_nothing_left("hangup")

    def test_a_reader_that_goes_away_takes_no_run_with_it(self):
        run = self.start("sh", "-c", '"$0" "$@" 2>&1 | head -c 1', PSCLOUD, "run", "--name", "unread", "--servers", 1,
                         "--workers", 2, "--", "sh", "-c", BY_ROLE)
        self.until_up("unread", run)
        self.let_go()
        until(lambda: self.state("unread")["state"] == "done", lambda: self.state("unread"))
        self.ends(run)
        self.assert_nothing_left("unread")

    def test_a_terminal_that_is_closed_stops_the_run_cleanly(self):
        run = [PSCLOUD, "run", "--name", "closed", "--servers", "1", "--workers", "2", "--", "sh", "-c", BY_ROLE]
        # A shell that people type into passes the hang-up on, and the kernel says it again.
        for words in [run, ["bash", "--norc", "-i", "-c", '"$@"; exit $?', "bash", *run]]:
            with self.subTest(words[0]):
                master, slave = os.openpty()
                leader = subprocess.Popen(["setsid", "--ctty", *words], stdin=slave, stdout=slave, stderr=slave,
                                          cwd=self.work, env=self.environment)
                self.addCleanup(leader.wait)
                self.addCleanup(leader.kill)
                os.close(slave)
                self.until_up("closed", None)
                os.close(master)
                leader.wait(60)
                until(lambda: self.status("closed")["state"] == "interrupted", lambda: self.status("closed"))
                self.assertNotIn(137, {task.get("exit_code") for task in self.state("closed")["tasks"]})
                self.assert_nothing_left("closed")
                shutil.rmtree(self.run_folder("closed"))

    def test_a_reader_that_stands_still_does_not_stand_in_the_way(self):
        # 40 MB, ten times of what is kept for it.
        script = "import sys; sys.stdout.write(('x' * 99 + '\\n') * 400_000); sys.stdout.flush(); open('wrote', 'w')"
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        run = subprocess.Popen([PSCLOUD, "run", "--name", "paused", "--workers", "1", "--", sys.executable, "-c",
                                script], stdin=subprocess.DEVNULL, stdout=into, stderr=into, cwd=self.work,
                               env=self.environment)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        os.close(into)
        until(lambda: self.run_folder("paused").exists() and self.state("paused")["state"] == "done", "the end")
        self.assert_nothing_left("paused")
        self.assertEqual((self.run_folder("paused") / "logs/worker-0.log").stat().st_size, 40_000_000)
        text = b""
        while piece := os.read(out, 1 << 20):
            text += piece
        self.assertEqual(run.wait(60), 0)
        self.assertRegex(text.decode(), r"pscloud: \d+ lines were not shown, for the terminal stood still")

    def test_ctrl_c_in_the_check_is_an_interruption_and_ends_it_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            where = f"kubernetes:server=http://127.0.0.1:{silent.getsockname()[1]},image=some"
            for name, flags in (("checked", ()), ("behind", ("--detach",))):
                run = self.start(PSCLOUD, "run", *flags, "--on", where, "--name", name, "--workers", 1, "--", "true")
                connection, _ = silent.accept()
                with connection:
                    run.send_signal(signal.SIGINT)
                    self.ends(run, 130)
                self.assertIn("interrupted; nothing was started", self.story(run))
                self.assertEqual(self.status(name)["state"], "interrupted")
                self.assertFalse((self.run_folder(name) / "open").exists())

    def test_ctrl_c_while_tasks_are_started_is_heard_and_the_second_leaves_them_to_down(self):
        class Server(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            asked, over = threading.Event(), threading.Event()

            def do_GET(self):
                self.send_response(200)
                self.send_header("content-length", "12")
                self.end_headers()
                self.wfile.write(b'{"items":[]}')

            def do_POST(self):
                self.asked.set()
                self.over.wait()  # as a cluster that does not answer

            def log_message(self, *words):
                pass
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
            threading.Thread(target=server.serve_forever).start()
            self.addCleanup(server.shutdown)
            where = f"kubernetes:server=http://127.0.0.1:{server.server_port},image=some"
            run = self.start(PSCLOUD, "run", "--on", where, "--name", "half", "--workers", 1, "--", "true")
            self.assertTrue(Server.asked.wait(60))
            run.send_signal(signal.SIGINT)
            until(lambda: "once more leaves at once" in self.story(run), lambda: self.story(run))
            run.send_signal(signal.SIGINT)
            self.ends(run, 130)
            self.assertIn("`pscloud down` removes what there is", self.story(run))
            self.assertEqual(self.status("half")["state"], "lost")
            Server.over.set()
            server.shutdown()

    def test_kill_9_at_any_moment_leaves_nothing_that_down_does_not_remove(self):
        # From before the folder is there to long after all run: a start takes some 50 ms.
        for n in range(40):
            name = f"killed-{n}"
            run = self.begin(name)
            try:
                run.wait(0.004 * n)
            except subprocess.TimeoutExpired:
                pass
            self.kill(run)
            self.check_after_kill(name)
        self.assertFalse(list((self.home / "runs").glob(".*")))

    def check_after_kill(self, name):
        there = self.run_folder(name).exists()
        if there:
            self.assertEqual(self.status(name)["state"], "lost")
        self.pscloud("down")
        if there:
            self.assert_nothing_left(name)
            self.assertEqual(self.status(name)["things_left"], 0)
            self.assertEqual(self.status(name)["state"], "lost")
        self.assertIn("nothing was left", self.pscloud("down"))

    def test_a_run_in_the_background_is_followed_and_stopped(self):
        said = self.pscloud("run", "--detach", "--name", "back", "--servers", 1, "--workers", 1, "--", "sh", "-c",
                            BY_ROLE)
        self.assertEqual(said, "back\n")
        logs = self.start(PSCLOUD, "logs", "back", "-f")
        until(lambda: logs.out.read_text().count("up") == 2, lambda: self.story(logs))
        self.assertEqual(self.status("back")["state"], "running")
        self.assertIn("is still there", self.story_of_refused("back"))
        self.assertEqual(self.pscloud("stop", "back"), "back interrupted\n")
        self.ends(logs)
        self.assertIn("[server-0] told=", logs.out.read_text())
        self.assert_nothing_left("back")

    def story_of_refused(self, name):
        run = self.begin(name)
        self.ends(run, 2)
        return self.story(run)

    def test_status_counts_who_is_done_among_those_who_came(self):
        run = self.begin("partly", script=f'[ "$PSCLOUD_TASK" = worker-0 ] && exit 0; {BY_ROLE}')
        self.until_says("partly", "worker-1", "up", run)
        until(lambda: "done" in [task["state"] for task in self.state("partly")["tasks"]], lambda: self.story(run))
        self.assertRegex(self.pscloud("status"), r"partly .* 3/3 ")
        self.let_go()
        self.ends(run)

    def test_psd_run_with_a_wrong_config_makes_no_folder(self):
        psd_run = self.home / "psd_run"
        psd_run.symlink_to(PSCLOUD)
        self.ends(self.start(psd_run, "-c", "no.json", "-o", "logs", "true"), 2)
        self.assertFalse((self.work / "logs").exists())

    def test_down_all_stops_what_goes_on(self):
        self.pscloud("run", "--detach", "--name", "on", "--workers", 1, "--", "sh", "-c", WORKER)
        self.assertIn("1 run goes on", self.pscloud("down"))
        self.assertIn("on: stopped", self.pscloud("down", "--all"))
        self.assert_nothing_left("on")

    def test_lines_of_any_length_and_number_arrive_as_they_were_written(self):
        # 40 MB in one line without an end, then many short ones, faster than anybody could read them.
        script = ("import sys; w = sys.stdout.write; w('x' * 40_000_000 + '\\n'); "
                  "[w(f'{i}\\n') for i in range(200_000)]; w('no end')")
        run = self.start(PSCLOUD, "run", "--name", "long", "--quiet", "--workers", 1, "--", sys.executable, "-c",
                         script)
        peak = 0
        while run.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{run.pid}/status").read_text()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]) if "VmHWM:" in status else 0)
            except OSError:
                pass
            time.sleep(0.02)
        self.ends(run)
        lines = self.log("long", "worker-0").split("\n")
        self.assertEqual(len(lines[0]), 40_000_000)
        self.assertEqual(lines[1:200_001], [str(i) for i in range(200_000)])
        self.assertEqual("\n".join(lines[200_001:]).strip(), "no end")
        self.assertLess(peak, 1_000_000 if SANITIZERS else 100_000, "kilobytes of memory")  # they keep what was freed

    def test_a_hundred_pairs_of_jobs_that_start_together_share_no_port(self):
        for batch in range(20):
            runs = [self.start(PSCLOUD, "run", "--quiet", "--workers", 2, "--", sys.executable, "-S", "-E", "-c", BIND)
                    for _ in range(10)]
            for run in runs:
                self.ends(run)

    def test_one_of_eight_that_does_not_come_is_named(self):
        commands = [["never"] if number == 5 else ["hang"] for number in range(8)]
        (self.work / "eight.json").write_text(json.dumps({"roles": {"worker": {"count": 8, "commands": commands}}}))
        run = self.start(PSCLOUD, "run", "--on", "fake", "--job", "eight.json", "--name", "eight",
                         "--arrive-timeout", 1)
        self.ends(run, 3)
        self.assertIn("after 1 s only 7 of 8 have arrived; missing: worker-5 on nowhere; stopping", self.story(run))
        self.assert_nothing_left("eight")

    def test_ten_thousand_runs_are_listed_at_once(self):
        self.pscloud("run", "--quiet", "--name", "first", "--workers", 1, "--", "true")
        state = (self.run_folder("first") / "state.json").read_text()
        for n in range(10_000):
            folder = self.home / "runs" / f"old-{n}"
            folder.mkdir()
            (folder / "state.json").write_text(state.replace('"first"', f'"old-{n}"'))
        took = []
        for _ in range(5):
            began = time.monotonic()
            listed = self.pscloud("status")
            took.append(time.monotonic() - began)
        self.assertEqual(len(listed.splitlines()), 21)
        self.assertLess(min(took), 2 if SANITIZERS else 0.2, took)


@unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
class KilledTest(KilledLaunchers, LaunchTest):
    def begin(self, name, before):
        return self.start(*before, PSCLOUD, "run", "--name", name, "--servers", 1, "--workers", 1, "--", "sh", "-c",
                          killed_launchers.SCRIPT)

    def nothing_is_left(self):
        for run in (self.home / "runs").iterdir():
            self.assertFalse(marked_processes(self.state(run.name)["job"]), run.name)
            self.assertFalse(list(run.glob("tasks/*")), run.name)

    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        self.kill_at([*range(1, 10), ("fdatasync", 1), *[("write", n) for n in range(3, 30, 3)], "running", "stopping"])


if __name__ == "__main__":
    unittest.main()
