"""What must hold on every cluster that queues jobs: the cases of slurm_test.py and condor_test.py. A class of theirs
has `lab`, `on` (the value of --on), `home` (PSCLOUD_HOME on the first machine) and `program` (the words that run
tf_config_program.py).
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "labs"))
import killed_launchers  # noqa: E402
from harness import BUILD, SLOW  # noqa: E402,F401
from killed_launchers import KilledLaunchers  # noqa: E402
from machines import until  # noqa: E402
from train_test import BATCH  # noqa: E402

SECONDS = 60 * SLOW
# Each would be something else after a shell, or after quoting that forgot it.
ODD = ["two words", "it's", 'a "quoted" one', "$HOME ${PATH} $(id) `id`", "* ?", "a\nb", "", "-x",
       "\\", "100%", "~", "é", ";#&|<>"]
SECRET = "only-for-the-tasks-7163"
SECRETS = {"TOKEN": SECRET, "KEY": "only-for-the-tasks-2918", "WORD": "only for the tasks, '4402'"}


class QueueTools:
    def pscloud(self, *words, variables=None, seconds=SECONDS, **options):
        """Runs it on the first machine to its end."""
        return self.lab.first.run(["pscloud", *map(str, words)], check=False, seconds=seconds,
                                  variables={"PSCLOUD_HOME": self.home, **(variables or {})}, **options)

    def start(self, *words, variables=None, before=(), terminal=False):
        """The same in the background, with words in front of it; or in a terminal, whose keys are its stdin."""
        words = [*before, "pscloud", *map(str, words)]
        if terminal:
            words = ["script", "-qefc", shlex.join(words), "/dev/null"]
        command = self.lab.first.command(words, variables={"PSCLOUD_HOME": self.home, **(variables or {})})
        process = subprocess.Popen(command, stdin=subprocess.PIPE if terminal else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()

    def run_job(self, name, *flags, servers=1, workers=2, on=None, arguments=(), variables=None):
        return self.pscloud("run", "--on", on or self.on, "--name", name, "--framework", "tensorflow", "--servers",
                            servers, "--workers", workers, *flags, "--", *self.program, *arguments,
                            variables=variables)

    def log(self, run, task):
        return self.pscloud("logs", run, task).stdout

    def time_in(self, run, task, what):
        """When the program says that it `ends`, or was `stopped`."""
        return float(re.search(rf"^{what} at ([\d.]+)$", self.log(run, task), re.MULTILINE)[1])

    def state(self, run):
        return json.loads(self.pscloud("status", run, "--json").stdout)

    def nothing_is_left(self):
        """No job, no process of a task, no file outside of the runs' own folders."""
        until(lambda: not self.lab.jobs(), lambda: f"empty queue: {self.lab.jobs()}")
        for machine in self.lab.machines:
            until(lambda machine=machine: not machine.processes(),
                  lambda machine=machine: f"end of {machine.processes()} on {machine.name}")
            self.assertEqual(machine.run(["find", "/tmp", "/var/tmp", "/dev/shm", "-mindepth", "1", "-user", "psuser"],
                                         user=0).stdout, "", machine.name)
        left = [path for path in self.lab.first.run(["find", self.home]).stdout.splitlines()
                if re.search(r"/(spec|ep|out|private|bundle|tls)", path)]
        self.assertEqual(left, [])

    def kill_launcher(self, name, process):
        launcher = self.lab.first.run(["pgrep", "-f", f"run --on .*--name {name} "]).stdout.split()
        self.assertEqual(len(launcher), 1)
        self.lab.first.run(["kill", "-9", *launcher])
        process.wait(SECONDS)
        self.assertEqual(self.state(name)["state"], "lost")

    def on_with(self, option):
        return self.on + ("," if ":" in self.on else ":") + option


class FarLaunchers(KilledLaunchers, QueueTools):
    """Those of a lab's first machine."""

    def run_of(self, name):
        root = pathlib.Path(f"/proc/{self.lab.first.first_process()}/root")
        return root / self.run_there(name).lstrip("/")

    def run_there(self, name):
        return f"{self.home}/runs/{name}"

    def kill_process(self, pid):
        self.lab.first.run(["kill", "-9", pid])

    def status_of(self, name):
        return self.state(name)

    def down(self):
        down = self.pscloud("down")
        self.assertEqual(down.returncode, 0, down.stderr)


class QueueCases(FarLaunchers):
    def begin(self, name, before):
        return self.start("run", "--on", self.on, "--name", name, "--framework", "pscloud", "--servers", 1, "--workers",
                          1, "--stop-grace", 3, "--", "sh", "-c", killed_launchers.SCRIPT, before=before)

    @unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        self.kill_at([1, 2, 3, ("fdatasync", 2), 4, 5, 6], [7, "running", "stopping"])

    def test_a_job_runs_to_its_end_and_the_server_is_stopped(self):
        # By then everybody looks as seldom as they ever do.
        done = self.run_job("whole", "--secret", "TOKEN", "--env", "WORK=pause", servers=1, workers=3, arguments=ODD,
                            variables={"TOKEN": SECRET})
        self.assertEqual(done.returncode, 0, done.stderr)
        for task in ("server-0", "worker-0", "worker-1", "worker-2"):
            log = self.log("whole", task)
            self.assertIn("arguments " + json.dumps(ODD), log.splitlines())
            self.assertIn(f"secret {SECRET}", log)
        self.assertIn("heard ps-0", self.log("whole", "worker-2"))
        self.assertIn("3 done, 1 stopped", done.stderr)
        # A busy machine can make it later, and nothing makes it sooner: one of three is proof.
        for run in ("whole", "again1", "again2"):
            if run != "whole":
                self.run_job(run, "--env", "WORK=pause", servers=1, workers=3)
            took = (self.time_in(run, "server-0", "stopped") -
                    max(self.time_in(run, f"worker-{i}", "ends") for i in range(3)))
            print(f"the server heard of the last worker's end after {took:.2f} s", flush=True)
            if took < 1 * SLOW:
                break
        self.assertLess(took, 1 * SLOW)
        self.nothing_is_left()

    def test_the_first_failure_is_the_cause(self):
        done = self.run_job("fails", "--env", "WORK=fail:worker-1,slow", workers=2)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"worker-1 on \S+ failed: exit code 7")
        self.assertIn("something is wrong here", done.stderr)
        self.assertIn("stopped", self.log("fails", "server-0"))
        self.nothing_is_left()

    def take_model(self):
        parts = list((self.lab.shared / "train").glob("model_S*"))
        lines = sorted(line for part in parts for line in part.read_text().splitlines())
        for part in parts:
            part.unlink()
        self.assertGreater(len(lines), 100)
        return lines

    def test_training_makes_the_model_that_it_makes_alone(self):
        self.lab.first.run(["mkdir", "-p", "/shared/train"])
        self.addCleanup(self.lab.first.run, ["rm", "-r", "/shared/train"])
        (self.lab.shared / "train.conf").write_text(BATCH.replace('file: "', 'file: "/shared/train/'))
        made = self.pscloud("data", "generate", "train", "--examples", 20000, "--keys", 26000, "--files", 3,
                            folder="/shared/train")
        self.assertEqual(made.returncode, 0, made.stderr)
        alone = self.pscloud("train", "/shared/train.conf", "--servers", 2, "--workers", 3, "--json",
                             folder="/shared/train")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        model = self.take_model()
        there = self.pscloud("train", "/shared/train.conf", "--on", self.on, "--name", "train", "--servers", 2,
                             "--workers", 3, "--json", folder="/shared/train")
        self.assertEqual(there.returncode, 0, there.stderr)
        alone, there = json.loads(alone.stdout), json.loads(there.stdout)
        self.assertEqual(there["examples"], alone["examples"])
        self.assertEqual(there["objective"], alone["objective"])
        self.assertEqual(self.take_model(), model)
        self.assertEqual({path.name for path in (self.run_of("train") / "logs").iterdir()},
                         {"scheduler-0.log", "server-0.log", "server-1.log", "worker-0.log", "worker-1.log",
                          "worker-2.log"})
        self.nothing_is_left()

    def kill_while_it_runs(self, name, on=None):
        """Starts a job that does not end, and kills its launcher."""
        process = self.start("run", "--on", on or self.on, "--name", name, "--framework", "tensorflow", "--servers", 1,
                             "--workers", 2, "--env", "WORK=slow", "--secret", "TOKEN", "--secret", "KEY", "--secret",
                             "WORD", "--", *self.program, variables=SECRETS)
        until(lambda: all("works" in self.log(name, f"worker-{i}") for i in (0, 1)), "work", SECONDS)
        for secret in SECRETS.values():
            self.assertIn(f"secret {secret}\n", self.log(name, "worker-0"))
            self.assertEqual([line for one in self.lab.machines for line in one.processes() if secret in line], [])
        self.kill_launcher(name, process)

    def test_down_removes_what_a_killed_launcher_has_left(self):
        self.kill_while_it_runs("killed")
        down = self.pscloud("down")
        self.assertEqual(down.returncode, 0, down.stderr)
        self.nothing_is_left()

    def test_without_its_launcher_a_job_ends_by_itself(self):
        self.kill_while_it_runs("orphan", on=self.on_with("lost_after=4"))
        until(lambda: not self.lab.jobs(), lambda: f"end of {self.lab.jobs()}", SECONDS)
        self.assertEqual(self.pscloud("down").returncode, 0)
        self.nothing_is_left()

    def start_in_terminal(self, name, work, *flags):
        """A job that does not end; what is written to the process is typed."""
        process = self.start("run", "--on", self.on, "--name", name, "--framework", "tensorflow", "--servers", 1,
                             "--workers", 2, "--env", f"WORK={work}", *flags, "--", *self.program, terminal=True)
        until(lambda: all("works" in self.log(name, f"worker-{i}") for i in (0, 1)), "work", SECONDS)
        return process

    @staticmethod
    def press_ctrl_c(process):
        process.stdin.write("\x03")
        process.stdin.flush()

    def test_ctrl_c_stops_all_cleanly(self):
        process = self.start_in_terminal("stopped", "slow")
        self.press_ctrl_c(process)
        self.assertEqual(process.wait(SECONDS), 130)
        self.assertIn("stopped at", self.log("stopped", "server-0").splitlines()[-1])
        self.assertEqual(self.state("stopped")["state"], "interrupted")
        self.nothing_is_left()

    def test_ctrl_c_twice_ends_all_at_once(self):
        process = self.start_in_terminal("twice", "slow,deaf", "--stop-grace", 300)
        self.press_ctrl_c(process)
        until(lambda: all("does not listen" in self.log("twice", f"worker-{i}") for i in (0, 1)), "SIGTERM", SECONDS)
        self.assertEqual(self.state("twice")["state"], "stopping")
        self.press_ctrl_c(process)
        self.assertEqual(process.wait(SECONDS), 130)
        self.nothing_is_left()
