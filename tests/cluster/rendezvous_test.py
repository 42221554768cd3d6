"""`pscloud rendezvous`: tasks that somebody else has started, all on this machine here, find each other in a folder."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from harness import PSCLOUD, SECONDS, until

PROGRAM = pathlib.Path(__file__).resolve().parent / "tf_config_program.py"


class Task:
    def __init__(self, name, process):
        self.name = name
        self.process = process

    def ends(self):
        """Waits for its end; its exit code."""
        try:
            self.out, self.err = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
            raise AssertionError(f"{self.name} does not end: {self.out}{self.err}") from None
        return self.process.returncode


class Rendezvous(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pscloud-rendezvous-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, name, *flags, job="j1", work="", timeout=SECONDS, program=("python3", PROGRAM),
              variables=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PSCLOUD_", "DMLC_"))}
        process = subprocess.Popen(
            [PSCLOUD, "rendezvous", "--folder", self.folder, "--job", job, "--task", name, "--servers", "1",
             "--workers", "2", "--framework", "tensorflow", "--timeout", str(timeout), *map(str, flags), "--",
             *program, "two words", "$HOME"],
            env={**environment, "WORK": work, **(variables or {})}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.clean_up, process)
        return Task(name, process)

    @staticmethod
    def clean_up(process):
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def test_servers_are_stopped_when_the_workers_are_done(self):
        # In the worst order: the leader comes last.
        tasks = [self.start(name) for name in ("worker-1", "worker-0", "server-0")]
        for task in tasks:
            self.assertEqual(task.ends(), 0, f"{task.name}: {task.out}{task.err}")
            self.assertIn('arguments ["two words", "$HOME"]', task.out)
        self.assertIn("heard ps-0", tasks[0].out)
        self.assertIn("stopped", tasks[2].out)
        self.assertTrue((self.folder / "j1/done.json").exists())

    def test_who_does_not_come_is_named_and_all_end_with_code_3(self):
        tasks = [self.start(name, timeout=2) for name in ("server-0", "worker-1")]
        for task in tasks:
            self.assertEqual(task.ends(), 3, task.err)
            self.assertIn("only 2 of 3 have arrived; missing: worker-0", task.err)
        late = self.start("worker-0")
        self.assertEqual(late.ends(), 2)
        self.assertIn("has ended: every job needs an id of its own", late.err)

    def test_a_leader_that_does_not_come_is_named_and_all_end_with_code_3_in_time(self):
        # Only server-0 leads; the least number of workers is no help without it.
        began = time.monotonic()
        tasks = [self.start(name, "--workers-min", 1, timeout=2) for name in ("worker-0", "worker-1")]
        for task in tasks:
            self.assertEqual(task.ends(), 3, task.out + task.err)
            self.assertIn("after 2 s only 2 of 3 have arrived; missing: server-0", task.err)
        self.assertLess(time.monotonic() - began, 2 + SECONDS / 2)
        late = self.start("server-0")
        self.assertEqual(late.ends(), 2)
        self.assertIn("has ended: every job needs an id of its own", late.err)

    def test_why_a_task_cannot_begin_is_told(self):
        task = self.start("worker-0", variables={"TMPDIR": "/proc"})
        self.assertEqual(task.ends(), 1)
        self.assertIn("worker-0: cannot make a folder in /proc", task.err)

    def test_another_version_is_refused_by_name(self):
        (self.folder / "j1").mkdir()
        (self.folder / "j1/ep.worker-0.0.json").write_text(json.dumps(
            {"job": "j1", "task": "worker-0", "attempt": 0, "address": "10.0.0.1:77", "host": "node7", "pid": 7,
             "version": "0.0.9"}))
        task = self.start("server-0")
        self.assertEqual(task.ends(), 3, task.err)
        self.assertIn("worker-0 on node7 failed: it is pscloud 0.0.9, and its leader is pscloud ", task.err)

    def test_a_job_begins_with_the_least_that_it_needs(self):
        tasks = [self.start(name, "--workers-min", 1) for name in ("server-0", "worker-1")]
        for task in tasks:
            self.assertEqual(task.ends(), 0, task.err)

    def test_a_task_that_fails_ends_all_with_code_1(self):
        tasks = [self.start(name, work="fail:worker-1,slow") for name in ("server-0", "worker-0", "worker-1")]
        self.assertEqual(tasks[2].ends(), 7)
        for task in tasks[:2]:
            self.assertEqual(task.ends(), 1, task.err)
            self.assertRegex(task.err, r"worker-1 on \S+ failed: exit code 7")

    def test_a_leader_whose_own_task_is_done_ends_as_the_job_does(self):
        # The workers fail when the leader's task has said that it is done.
        fail = f"until grep -q exited {self.folder}/j1/out.server-0.0.jsonl; do sleep 0.02; done; exit 7"
        tasks = [self.start("server-0", program=("true",)),
                 *(self.start(name, program=("sh", "-c", fail)) for name in ("worker-0", "worker-1"))]
        self.assertEqual(tasks[0].ends(), 1, tasks[0].err)
        self.assertRegex(tasks[0].err, r"worker-\d on \S+ failed: exit code 7")

    def test_a_program_goes_on_though_nobody_reads_what_it_writes(self):
        done = self.folder / "done"
        chatty = ("sh", "-c", f"trap '' TERM; for i in 1 2 3 4 5; do echo line $i; done; : > {done}-$PSCLOUD_TASK")
        tasks = [self.start(name, program=chatty) for name in ("worker-0", "worker-1", "server-0")]
        for task in tasks:
            task.process.stdout.close()
        for task in tasks:
            self.assertEqual(task.process.wait(SECONDS), 0, task.process.stderr.read())

    def test_a_leader_that_is_killed_ends_the_others_in_time(self):
        tasks = [self.start(name, "--lost-after", 2, work="slow") for name in ("server-0", "worker-0", "worker-1")]
        until(lambda: (self.folder / "j1/cluster.json").exists(), "all to be there")
        tasks[0].process.kill()
        began = time.monotonic()
        for task in tasks[1:]:
            self.assertEqual(task.ends(), 1, task.err)
            self.assertIn("the launcher is gone", task.err)
        self.assertLess(time.monotonic() - began, 2 + SECONDS / 2)

    def test_a_task_that_is_killed_is_lost(self):
        tasks = [self.start(name, "--lost-after", 2, work="slow") for name in ("server-0", "worker-0", "worker-1")]
        until(lambda: (self.folder / "j1/cluster.json").exists(), "all to be there")
        tasks[2].process.kill()
        for task in tasks[:2]:
            self.assertEqual(task.ends(), 1, task.err)
            self.assertRegex(task.err, r"worker-1 on \S+ failed: has given no sign of life for 2 s")

    def test_interrupting_the_leader_ends_the_job(self):
        tasks = [self.start(name, work="slow") for name in ("server-0", "worker-0", "worker-1")]
        until(lambda: (self.folder / "j1/cluster.json").exists(), "all to be there")
        tasks[0].process.terminate()
        for task in tasks:
            self.assertEqual(task.ends(), 130, task.err)

    def test_two_jobs_in_one_folder_do_not_see_each_other(self):
        tasks = [self.start(name, job=job) for name in ("worker-0", "server-0", "worker-1") for job in ("a", "b")]
        for task in tasks:
            self.assertEqual(task.ends(), 0, f"{task.name}: {task.err}")

    def test_wrong_flags_are_named(self):
        for flags, message in (({"name": "worker-7"}, "worker-7: is none of the 3 tasks of this job"),
                               ({"name": "ps-0"}, "'ps-0' is no task"),
                               ({"name": "worker-0", "job": "../x"}, "--job ../x: letters, digits")):
            task = self.start(**flags)
            self.assertEqual(task.ends(), 2, task.err)
            self.assertIn(message, task.err)


if __name__ == "__main__":
    unittest.main()
