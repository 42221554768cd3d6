"""A real Slurm (tests/labs/slurm_lab.py) runs what `pscloud run` submits to it."""

import json
import shutil
import signal
import subprocess
import unittest

import queue_cases
from queue_cases import BUILD, QueueCases, QueueTools, SECONDS, until
from slurm_lab import SlurmLab, missing


class OnSlurm(unittest.TestCase):
    on = "slurm"
    home = "/shared/home"
    program = ["python3", "/shared/tf_config_program.py"]

    @classmethod
    def setUpClass(cls):
        cls.lab = SlurmLab(4, binds={BUILD: "/opt/pscloud"})
        cls.addClassCleanup(cls.lab.down)
        shutil.copy(queue_cases.ROOT / "cluster/tf_config_program.py", cls.lab.shared)
        cls.lab.first.run(["mkdir", cls.home])
        # Where jobs are submitted, and nowhere else: a job brings it.
        cls.lab.first.run(["ln", "-s", "/opt/pscloud/pscloud", "/usr/local/bin/pscloud"], user=0)
        for machine in cls.lab.machines[1:]:
            machine.run(["umount", "/opt/pscloud"], user=0)

    def host_of(self, run, task):
        return next(one["host"] for one in self.state(run)["tasks"] if one["task"] == task)


@unittest.skipIf(missing(), missing())
class SlurmTest(QueueCases, OnSlurm):
    def cluster_file(self, name, content):
        (self.lab.shared / name).write_text(json.dumps({"target": "slurm", **content}))
        return f"/shared/{name}"

    def test_roles_that_ask_for_different_things_are_a_heterogeneous_job(self):
        on = self.cluster_file("het.json", {"resources": {"server": {"cpus": 2, "memory": "64M"},
                                                          "worker": {"cpus": 1, "memory": "32M"}}})
        done = self.run_job("het", servers=2, workers=3, on=on)
        self.assertEqual(done.returncode, 0, done.stderr)
        hosts = {task: self.host_of("het", task) for task in ("server-0", "worker-0")}
        self.assertNotEqual(hosts["server-0"], hosts["worker-0"], "components of a job do not share machines")
        self.nothing_is_left()

    def test_one_shape_lets_roles_share_a_machine(self):
        on = self.cluster_file("one.json", {"resources": {"server": {"cpus": 2}, "worker": {"cpus": 1}},
                                            "options": {"shape": "one", "partition": "small"}})
        done = self.run_job("one", servers=1, workers=1, on=on)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.host_of("one", "server-0"), self.host_of("one", "worker-0"))
        self.nothing_is_left()

    def test_connect_opens_a_shell_where_the_task_runs(self):
        self.start("run", "--on", self.on, "--name", "shell", "--framework", "tensorflow", "--workers", 1, "--env",
                   "WORK=slow", "--", *self.program)
        until(lambda: "works" in self.log("shell", "worker-0"), "work", SECONDS)
        # It wants a terminal.
        command = self.lab.first.command(["script", "-qec", "pscloud connect shell worker-0", "/dev/null"],
                                         variables={"PSCLOUD_HOME": self.home})
        shell = subprocess.run(command, input="echo job=$SLURM_JOB_ID on=$SLURMD_NODENAME\nexit\n", text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        self.assertRegex(shell.stdout, rf"job=\d+ on={self.host_of('shell', 'worker-0')}")
        self.assertEqual(self.pscloud("stop", "shell").returncode, 0)
        self.nothing_is_left()

    def too_large(self):
        """The partition has one machine, and the second component would need another."""
        return self.cluster_file("small.json", {"resources": {"server": {"cpus": 2}, "worker": {"cpus": 1}},
                                                "options": {"partition": "small"}})

    def test_down_removes_a_job_that_still_waits(self):
        process = self.start("run", "--on", self.too_large(), "--name", "waits", "--framework", "tensorflow",
                             "--servers", 1, "--workers", 1, "--", *self.program)
        until(self.lab.jobs, "a job in the queue", SECONDS)
        self.kill_launcher("waits", process)
        self.assertEqual(self.pscloud("down").returncode, 0)
        self.nothing_is_left()

    def test_tasks_that_do_not_come_are_named(self):
        done = self.run_job("missing", "--arrive-timeout", 12, servers=1, workers=2, on=self.too_large())
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("0 of 3 have arrived; missing: server-0, worker-0, worker-1", done.stderr)
        self.assertIn("need machines of their own (slurm:shape=one lets them share)", done.stderr)
        self.nothing_is_left()

    def test_a_partition_that_is_not_there_is_named_before_anything_is_made(self):
        done = self.run_job("wrong", on="slurm:partition=smal")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Slurm has no partition 'smal'; did you mean 'small'?", done.stderr)

    def test_a_folder_that_is_not_shared_is_named(self):
        self.lab.first.run(["install", "--directory", "--owner=psuser", "/var/lib/alone"], user=0)
        # Four of the six tasks are on the launcher's own machine.
        done = self.run_job("alone", "--arrive-timeout", 12, on="slurm:folder=/var/lib/alone", servers=0, workers=6)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "says: .*/var/lib/alone/.*it must be on a disk that all machines share")
        self.assertIn("only 4 of 6 have arrived; missing: worker-4, worker-5", done.stderr)
        self.nothing_is_left()

    def test_a_launcher_that_stood_still_for_too_long_hears_why_its_tasks_have_ended(self):
        process = self.start("run", "--on", "slurm:lost_after=4", "--name", "still", "--framework", "tensorflow",
                             "--workers", 1, "--env", "WORK=slow", "--", *self.program)
        until(lambda: "works" in self.log("still", "worker-0"), "work", SECONDS)
        launcher = self.lab.first.run(["pgrep", "-f", "run --on .*--name still "]).stdout.split()
        self.lab.first.run(["kill", "-STOP", *launcher])
        until(lambda: not any("tf_config_program.py" in line and "--name still" not in line
                              for machine in self.lab.machines for line in machine.processes()),
              "end of the task", SECONDS)
        process.send_signal(signal.SIGCONT)  # nsenter has stopped with it, and lets it go on first
        self.assertEqual(process.wait(SECONDS), 1)
        self.assertRegex(process.stdout.read(),
                         r"(?s)worker-0 on \S+ failed: signal 15 .*nobody has touched .*: the launcher is gone")
        self.nothing_is_left()

    def test_a_program_that_is_not_there_is_named(self):
        done = self.run_job("absent", on="slurm:program=/opt/other/pscloud")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("/opt/other/pscloud", done.stderr)
        self.nothing_is_left()


@unittest.skipIf(missing(), missing())
class PowerCutTest(QueueTools, OnSlurm):
    """Has a lab of its own, which it breaks."""

    def test_a_machine_that_is_lost_is_the_cause(self):
        process = self.start("run", "--on", "slurm:lost_after=10", "--name", "cut", "--framework", "tensorflow",
                             "--workers", 9, "--env", "WORK=slow", "--", *self.program)
        until(lambda: all("works" in self.log("cut", f"worker-{i}") for i in range(9)), "work", SECONDS)
        # The last of three machines, where worker-8 is: four fit on one.
        victim = self.lab.machines[2]
        self.assertEqual(self.host_of("cut", "worker-8"), victim.name)
        victim.pull_plug()
        self.assertEqual(process.wait(SECONDS), 1)
        self.assertRegex(process.stdout.read(), "worker-8 on host3 failed: ")
        self.lab.machines.remove(victim)
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
