"""`pscloud run` on this machine: real processes, real ports, and nothing left whatever happens to the launcher."""

import json
import os
import pathlib
import signal
import sys
import time
import unittest

from harness import SANITIZERS
from launch_harness import BUILD, PSCLOUD, LaunchTest, marked_processes, until

ARGUMENTS = ["a b", "'\"", "$HOME", "*", "two\nlines", "\\", "", "`id`", "~", "-x"]
# Says its arguments; then binds its port without SO_REUSEADDR, as many programs do.
SAY = "import sys, json; print(json.dumps(sys.argv[1:]))"
BIND = ("import os, socket; s = socket.socket(); h, p = os.environ['PSCLOUD_LISTEN'].rsplit(':', 1); "
        "s.bind((h, int(p))); s.listen(); print('bound', p)")
# In role server it stays until it is told to end.
STAY = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done"
BY_ROLE = f'if [ "$PSCLOUD_ROLE" = server ]; then {STAY}; fi; echo working'


class LocalTest(LaunchTest):
    def job_of(self, name):
        return self.state(name)["job"]

    def assert_nothing_left(self, job):
        until(lambda: not marked_processes(job), lambda: f"the end of {marked_processes(job)}")

    def test_arguments_arrive_as_they_are(self):
        said = self.pscloud("run", "--name", "args", "--workers", 2, "--", sys.executable, "-c", SAY, *ARGUMENTS)
        for task in ("worker-0", "worker-1"):
            self.assertEqual(json.loads(self.log("args", task)), ARGUMENTS)
        self.assertIn("[worker-1]", said)

    def test_bytes_that_are_no_text_arrive_as_they_are_and_come_back_so(self):
        self.pscloud("run", "--name", "bytes", "--workers", 1, "--secret", "ODD", "--env", "ODD2=\udcff", "--", "sh",
                     "-c", 'printf "%s\\n" "$1" "$ODD2"; cat "$ODD_FILE"', "-", "\udcfe\udcc3(", ODD="\udcff\udcc3(")
        log = (self.run_folder("bytes") / "logs/worker-0.log").read_bytes()
        self.assertEqual(log, b"\xfe\xc3(\n\xff\n\xff\xc3(\n")

    def test_servers_are_told_when_the_last_worker_has_ended(self):
        self.pscloud("run", "--name", "told", "--servers", 1, "--workers", 2, "--", "sh", "-c", BY_ROLE)
        self.assertIn("told", self.log("told", "server-0"))
        self.assertEqual([task["state"] for task in self.state("told")["tasks"]], ["stopped", "done", "done"])
        self.assert_nothing_left(self.job_of("told"))

    def test_a_failure_ends_the_job_and_is_its_cause(self):
        run = self.start(PSCLOUD, "run", "--name", "fails", "--servers", 1, "--workers", 1, "--", "sh", "-c",
                         f'if [ "$PSCLOUD_ROLE" = server ]; then {STAY}; fi; echo oh no >&2; exit 5')
        self.ends(run, 1)
        self.assertIn("worker-0", self.story(run))
        self.assertIn("oh no", self.story(run))
        self.assert_nothing_left(self.job_of("fails"))

    def test_a_secret_is_in_a_file_and_nowhere_else(self):
        secrets = {f"SECRET_{n}": f"hidden-{n}-{os.getpid()}" for n in range(3)}
        flags = [word for name in secrets for word in ("--secret", name)]
        run = self.start(PSCLOUD, "run", "--name", "secret", *flags, "--workers", 1, "--", "sh", "-c",
                         'cat "$SECRET_0_FILE" "$SECRET_1_FILE"; stat -c %a "$SECRET_2_FILE"; echo; '
                         'echo "[$SECRET_0]"; echo up; sleep 1000', **secrets)
        self.until_says("secret", "worker-0", "up", run)
        self.assertIn("600", self.log("secret", "worker-0"))
        self.assertIn("[]", self.log("secret", "worker-0"))
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().decode(errors="replace")
                variables = (process / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            for value in secrets.values():
                self.assertNotIn(value, words)
                if int(process.name) not in (run.pid, os.getpid()):  # who was given it by its user
                    self.assertNotIn(value, variables, words)
        for file in ("plan.json", "cluster.json", "ledger.jsonl", "state.json"):
            for value in secrets.values():
                self.assertNotIn(value, (self.run_folder("secret") / file).read_text(), file)
        run.send_signal(signal.SIGINT)
        self.ends(run, 130)
        self.assertFalse(list(self.run_folder("secret").glob("tasks/*")))

    def test_nothing_is_left_when_the_launcher_is_killed(self):
        # Processes of its group, and one that left it.
        script = f"setsid sleep 1000 & sleep 1000 & {STAY}"
        for wait_for_end in (True, False):
            name = f"killed-{wait_for_end}".lower()
            run = self.start(PSCLOUD, "run", "--name", name, "--workers", 2, "--", "sh", "-c", script)
            self.until_says(name, "worker-1", "up", run)
            self.until_says(name, "worker-0", "up", run)
            job = self.job_of(name)
            self.assertGreaterEqual(len(marked_processes(job)), 6)
            self.kill(run)
            if wait_for_end:
                self.assert_nothing_left(job)  # by the agent alone
            self.pscloud("down")
            self.assertFalse(marked_processes(job))
            self.assertFalse(list(self.run_folder(name).glob("tasks/*")))
            self.assertNotIn("running", self.pscloud("status"))

    def test_down_finds_what_a_killed_agent_has_left_too(self):
        run = self.start(PSCLOUD, "run", "--name", "both", "--workers", 1, "--", "sh", "-c",
                         f"setsid sleep 1000 & {STAY}")
        self.until_says("both", "worker-0", "up", run)
        job = self.job_of("both")
        agent = [pid for pid in os.listdir("/proc") if pid.isdigit() and self.is_agent_of(pid, run.pid)]
        self.assertEqual(len(agent), 1)
        os.kill(run.pid, signal.SIGSTOP)  # it must not clean up meanwhile
        os.kill(int(agent[0]), signal.SIGKILL)
        self.kill(run)
        self.assertTrue(marked_processes(job))
        self.pscloud("down")
        self.assertFalse(marked_processes(job))

    @staticmethod
    def is_agent_of(pid, parent):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return int(stat.read().rsplit(")", 1)[1].split()[1]) == parent
        except OSError:
            return False

    def test_a_lost_agent_is_named_and_its_tasks_are_gone(self):
        run = self.start(PSCLOUD, "run", "--name", "lost", "--workers", 1, "--", "sh", "-c", STAY)
        self.until_says("lost", "worker-0", "up", run)
        agent = next(pid for pid in os.listdir("/proc") if pid.isdigit() and self.is_agent_of(pid, run.pid))
        os.kill(int(agent), signal.SIGKILL)
        self.ends(run, 1)
        self.assertIn("lost", self.story(run))
        self.assertFalse(marked_processes(self.job_of("lost")))

    def test_jobs_that_start_together_never_share_a_port(self):
        runs = [self.start(PSCLOUD, "run", "--quiet", "--name", f"pair-{n}", "--workers", 2, "--", sys.executable, "-c",
                           BIND) for n in range(10)]
        for run in runs:
            self.ends(run)

    def test_a_program_that_binds_at_once_finds_its_port_free(self):
        for n in range(8):
            self.pscloud("run", "--quiet", "--name", f"fast-{n}", "--workers", 32, "--",
                         BUILD / "tests/cluster/port_binder")

    @unittest.skipIf(SANITIZERS, "a sanitizer costs more than the job")
    def test_a_small_job_costs_little(self):
        def once():
            start = time.monotonic()
            self.pscloud("run", "--quiet", "--servers", 1, "--workers", 1, "--", "true")
            return time.monotonic() - start
        self.assertLess(min(once() for _ in range(5)), 0.3)

    def test_a_program_that_is_not_there_is_said_before_anything_starts(self):
        run = self.start(PSCLOUD, "run", "--workers", 2, "--", "no-such-program")
        self.ends(run, 2)
        self.assertIn("'no-such-program': there is no such program in PATH", self.story(run))


if __name__ == "__main__":
    unittest.main()
