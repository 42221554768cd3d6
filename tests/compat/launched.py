"""Runs a job by `pscloud run` on this machine and looks at what is left: logs, states, and no process."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PSCLOUD = pathlib.Path(os.environ.get("PSCLOUD_BUILD", ROOT / "build/release")).resolve() / "pscloud"


class LaunchedTest(unittest.TestCase):
    longMessage = True
    seconds = 120

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pscloud-compat-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def launch(self, *words, run="compat"):
        """Runs the job to its end and gives its process; what it has printed is shown if the test fails."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PSCLOUD_", "DMLC_"))}
        environment["PSCLOUD_HOME"] = str(self.home)
        done = subprocess.run([PSCLOUD, "run", "--on", "local", "--name", run, *map(str, words)], cwd=ROOT,
                              env=environment, capture_output=True, text=True, timeout=self.seconds)
        self.story = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertEqual(self.left_of(run), [], self.story)
        return done

    def log(self, task, run="compat"):
        return (self.home / "runs" / run / "logs" / f"{task}.log").read_text()

    def states(self, run="compat"):
        state = json.loads((self.home / "runs" / run / "state.json").read_text())
        return {task["task"]: task["state"] for task in state["tasks"]}

    @staticmethod
    def left_of(run):
        """Processes of the run that are still there."""
        found = []
        for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"PSCLOUD_RUN={run}".encode() in environ.read_bytes().split(b"\0"):
                    found.append((environ.parent / "cmdline").read_text().replace("\0", " "))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        return found


def main():
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[1:]])
