"""What the tests of launching share: a home of their own for runs, and `pscloud run` as a process.

PSCLOUD_BUILD names the build folder. No wait is without a deadline.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("PSCLOUD_BUILD", "build/release")).resolve()
PSCLOUD = BUILD / "pscloud"
SECONDS = 60


def until(condition, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what() if callable(what) else what}")
        time.sleep(0.01)
    return result


def marked_processes(job):
    """The processes of a job on this machine, by the mark in their environment."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"PSCLOUD_LAUNCH={job}/".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            pass
    return found


class LaunchTest(unittest.TestCase):
    """Runs below a folder of the test's own."""

    longMessage = True
    outside = staticmethod(lambda words: words)  # how the command line of a launcher is run

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-launch-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.work = self.home / "work"
        self.work.mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("PSCLOUD_", "DMLC_"))}
        self.environment["PSCLOUD_HOME"] = str(self.home)

    def start(self, *words, **variables):
        """A launcher in the background, what it says in files."""
        number = len(list(self.home.glob("*.out")))
        with open(self.home / f"{number}.out", "wb") as out, open(self.home / f"{number}.err", "wb") as err:
            process = subprocess.Popen(self.outside([str(word) for word in words]), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, cwd=self.work, env={**self.environment, **variables})
        process.out = self.home / f"{number}.out"
        process.err = self.home / f"{number}.err"

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def story(self, process):
        return process.out.read_text(errors="replace") + process.err.read_text(errors="replace")

    def ends(self, process, code=0, seconds=SECONDS):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"it has not ended: {self.story(process)}")
        self.assertEqual(process.returncode, code, self.story(process))
        return process.out.read_text(errors="replace")

    def pscloud(self, *words, code=0, **variables):
        """Runs a verb to its end; its stdout."""
        return self.ends(self.start(PSCLOUD, *words, **variables), code)

    def run_folder(self, name):
        return self.home / "runs" / name

    def state(self, name):
        return json.loads((self.run_folder(name) / "state.json").read_text())

    def log(self, name, task):
        path = self.run_folder(name) / "logs" / f"{task}.log"
        return path.read_text() if path.exists() else ""

    def until_says(self, name, task, text, process=None):
        until(lambda: text in self.log(name, task),
              lambda: f"'{text}' of {task}: {self.log(name, task)}" + (self.story(process) if process else ""))

    @staticmethod
    def kill(process):
        process.send_signal(signal.SIGKILL)
        process.wait()
