"""A real HTCondor pool (tests/labs/condor_lab.py) runs what `pscloud run` and a user's own submit file give to it. Its
machines are another Debian than this one: the program brings all that it needs."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import queue_cases
from condor_lab import CondorLab, missing
from queue_cases import BUILD, QueueCases, QueueTools, SECONDS, until

PROGRAM = queue_cases.ROOT / "cluster/tf_config_program.py"
TENSORFLOW = queue_cases.ROOT.parent / "build/tensorflow"
# All four tasks meet in the shared folder; only their numbers differ.
SUBMIT_FILE = """executable = /usr/local/bin/pscloud
transfer_executable = false
arguments = "rendezvous --folder /shared/meet --job $(Cluster) --task {role}-$(Step) --servers 1 --workers 2 --chief 1 \
--framework tensorflow --timeout 60 -- python3 /shared/tf_config_program.py 'two words' 'it''s'"
should_transfer_files = YES
transfer_output_files = ""
log = /shared/own/log
output = /shared/own/{role}-$(Step).out
error = /shared/own/{role}-$(Step).err
"""


def bundle(folder, program):
    """A program with its libraries and their loader, for machines that have none of them, at /opt/pscloud there."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]
    for path in [*paths, program]:
        shutil.copy(path, folder)
    loader = next(pathlib.Path(path).name for path in paths if "ld-linux" in path)
    name = pathlib.Path(program).name
    script = folder / f"{name}.sh"
    script.write_text(f'#!/bin/sh\nexec /opt/pscloud/{loader} --library-path /opt/pscloud --argv0 {name} '
                      f'/opt/pscloud/{name} "$@"\n')
    script.chmod(0o755)
    folder.chmod(0o755)


class OnCondor(unittest.TestCase):
    machines = 3
    docker = False
    strace = "/opt/pscloud/strace.sh"
    home = "/var/lib/runs"  # of the first machine alone

    @classmethod
    def binds(cls):
        return {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="pscloud-bundle-")
        cls.addClassCleanup(folder.cleanup)
        for program in (BUILD / "pscloud", shutil.which("strace")):
            if program:
                bundle(pathlib.Path(folder.name), program)
        cls.lab = CondorLab(cls.machines, {folder.name: "/opt/pscloud", **cls.binds()}, cls.docker)
        cls.addClassCleanup(cls.lab.down)
        shutil.copy(PROGRAM, cls.lab.shared)
        cls.lab.first.run(["install", "--directory", "--owner=psuser", cls.home], user=0)
        for machine in cls.lab.machines:
            machine.run(["ln", "-s", "/opt/pscloud/pscloud.sh", "/usr/local/bin/pscloud"], user=0)


@unittest.skipIf(missing(), missing())
class ConnectTest(QueueCases, OnCondor):
    """No disk is used in common: files are copied, and tasks connect to the launcher."""

    on = "condor"
    program = ["python3", "tf_config_program.py"]

    def run_job(self, name, *flags, **options):
        return super().run_job(name, "--file", "/shared/tf_config_program.py", *flags, **options)

    def start(self, *words, **options):
        place = words.index("--framework")
        return super().start(*words[:place], "--file", "/shared/tf_config_program.py", *words[place:], **options)

    def test_a_task_that_does_not_come_is_named(self):
        (self.lab.shared / "large.json").write_text(
            json.dumps({"target": "condor", "resources": {"server": {"memory": "100G"}}}))
        done = self.run_job("missing", "--arrive-timeout", 25, on="/shared/large.json")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("after 25 s only 2 of 3 have arrived; missing: server-0", done.stderr)
        self.nothing_is_left()

    def test_a_file_that_is_not_there_is_named(self):
        done = self.run_job("nofile", "--file", "/shared/no-such-file")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("not there to be copied: /shared/no-such-file", done.stderr)

    def test_why_a_task_is_held_is_told(self):
        # It is there when it is looked for, but nobody may read it.
        (self.lab.shared / "closed").touch(0o000)
        done = self.run_job("held", "--file", "/shared/closed")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "failed: HTCondor holds it: .*/shared/closed")
        self.nothing_is_left()


@unittest.skipIf(missing(), missing())
class SharedFolderTest(QueueCases, OnCondor):
    on = "condor:folder=/shared/meet"
    program = ["python3", "/shared/tf_config_program.py"]

    def test_a_submit_file_of_ones_own_needs_no_launcher(self):
        self.lab.first.run(["mkdir", "/shared/own"])
        text = "".join(SUBMIT_FILE.format(role=role) + f"queue {count}\n"
                       for role, count in (("server", 1), ("chief", 1), ("worker", 2)))
        (self.lab.shared / "own.sub").write_text(text)
        self.lab.first.run(["condor_submit", "/shared/own.sub"])
        until(lambda: not self.lab.jobs(), lambda: f"end of {self.lab.jobs()}", SECONDS)
        own = self.lab.shared / "own"
        for task in ("server-0", "chief-0", "worker-0", "worker-1"):
            self.assertIn('arguments ["two words", "it\'s"]', (own / f"{task}.out").read_text(), task)
        self.assertIn("heard ps-0 worker-0 worker-1", (own / "chief-0.out").read_text())
        for task in ("server-0", "worker-0", "worker-1"):
            self.assertIn("stopped", (own / f"{task}.out").read_text(), task)
        self.assertEqual((own / "log").read_text().count("Normal termination (return value 0)"), 4)


@unittest.skipIf(missing(), missing())
@unittest.skipUnless(shutil.which("busybox"), "needs busybox-static (tools/setup.sh labs)")
class DockerTest(QueueTools, OnCondor):
    """The docker universe: tasks in containers of an image that has a shell and knows nothing of us."""

    machines = 2
    docker = True
    on = "condor:image=test/box:1"
    # A worker that would not wait for the server could be done, and with it the run, before the server has said a word.
    script = ('for word; do echo "[$word]"; done; cat "$TOKEN_FILE"; echo; ls /bin | head -1; '
              'if [ "$PSCLOUD_ROLE" = server ]; then trap "echo stopped kindly; exit 0" TERM; echo up; '
              'nc -ll -p "${{PSCLOUD_LISTEN##*:}}" -e echo here & while :; do sleep 0.1; done; fi; '
              'server=$PSCLOUD_SERVER_ADDRESSES; echo "$server"; '
              'until [ "$(nc "${{server%:*}}" "${{server##*:}}" </dev/null 2>&1)" = here ]; do sleep 0.1; done; {then}')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as folder:
            programs = pathlib.Path(folder) / "bin"
            programs.mkdir()
            shutil.copy(shutil.which("busybox"), programs)
            for name in ("sh", "cat", "echo", "head", "ls", "nc", "sleep"):
                (programs / name).symlink_to("busybox")
            subprocess.run(["tar", "-C", folder, "-cf", cls.lab.shared / "box.tar", "."], check=True)
        for machine in cls.lab.machines:
            machine.run(["docker", "import", "/shared/box.tar", "test/box:1"], user=0)

    def containers(self):
        return [line for machine in self.lab.machines
                for line in machine.run(["docker", "ps", "--all", "--quiet"], user=0).stdout.split()]

    def test_tasks_run_in_their_image_and_leave_no_container(self):
        done = self.pscloud("run", "--on", self.on, "--name", "box", "--servers", 1, "--workers", 3, "--secret",
                            "TOKEN", "--", "sh", "-c", self.script.format(then="echo done"), "-", *queue_cases.ODD,
                            variables={"TOKEN": queue_cases.SECRET})
        self.assertEqual(done.returncode, 0, done.stderr)
        for task in ("server-0", "worker-0", "worker-1", "worker-2"):
            log = self.log("box", task)
            for word in queue_cases.ODD:
                self.assertIn(f"[{word}]\n", log, task)
            self.assertIn(f"{queue_cases.SECRET}\nbusybox\n", log, task)  # nothing else is there
        self.assertIn("stopped kindly\n", self.log("box", "server-0"))
        self.assertRegex(self.log("box", "worker-2"), r"10\.79\.0\.[12]:\d+\ndone\n")
        self.nothing_is_left()
        until(lambda: not self.containers(), lambda: f"end of {self.containers()}")

    def test_down_removes_containers_too(self):
        process = self.start("run", "--on", self.on, "--name", "killed", "--servers", 1, "--workers", 1, "--secret",
                             "TOKEN", "--", "sh", "-c", self.script.format(then="echo works; sleep 1000"),
                             variables={"TOKEN": queue_cases.SECRET})
        until(lambda: "works" in self.log("killed", "worker-0"), "work", SECONDS)
        self.assertEqual(len(self.containers()), 2)
        self.kill_launcher("killed", process)
        self.assertEqual(self.pscloud("down").returncode, 0)
        self.nothing_is_left()
        until(lambda: not self.containers(), lambda: f"end of {self.containers()}")


@unittest.skipIf(missing(), missing())
@unittest.skipUnless((TENSORFLOW / "installed").exists(), "`make test-tensorflow` installs TensorFlow")
class TensorFlowTest(QueueTools, OnCondor):
    """A program of TensorFlow's, with its parameter servers, which knows nothing of us and of no address."""

    on = "condor"

    @classmethod
    def binds(cls):
        # Its Python too: the machines have another.
        home = (TENSORFLOW / "pyvenv.cfg").read_text().splitlines()[0].partition("=")[2].strip()
        return {pathlib.Path(home).parent: "/opt/python",
                next(TENSORFLOW.glob("lib/python*/site-packages")).resolve(): "/opt/tensorflow"}

    def test_parameter_servers_train_to_the_end(self):
        shutil.copy(queue_cases.ROOT.parent / "examples/tensorflow/parameter_server.py", self.lab.shared)
        done = self.pscloud("run", "--on", self.on, "--name", "tensorflow", "--framework", "tensorflow", "--chief",
                            "--servers", 1, "--workers", 2, "--file", "/shared/parameter_server.py", "--env",
                            "PYTHONPATH=/opt/tensorflow", "--env", "LD_LIBRARY_PATH=/opt/python/lib", "--",
                            "/opt/python/bin/python3", "parameter_server.py", seconds=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.log("tensorflow", "chief-0"), r"300 steps on 2 workers, .* found 2\.0")
        states = {one["task"]: one["state"] for one in self.state("tensorflow")["tasks"]}
        self.assertEqual(states, {"chief-0": "done", "server-0": "stopped", "worker-0": "stopped",
                                  "worker-1": "stopped"})
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()
