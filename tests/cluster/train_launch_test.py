#!/usr/bin/env python3
"""`pscloud train --on local`: the launcher starts all the nodes, and the model is that of any other way to train."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import BUILD, SECONDS, until
from train_test import BATCH, CONFIG, TEST, bytes_read

PSCLOUD = BUILD / "pscloud"
EXAMPLES = 40000
RUN = f"launched-{os.getpid()}"


def tasks_of(role):
    """Process ids of the run's tasks of a role, by name: the programs, not what looks after them."""
    found = {}
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environ.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        names = dict(one.split(b"=", 1) for one in variables if b"=" in one)
        task = names.get(b"PSCLOUD_TASK", b"").decode()
        if names.get(b"PSCLOUD_RUN") == RUN.encode() and task.startswith(role):
            found[task] = int(environ.parent.name)
    return found


class TrainLaunch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pscloud-train-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.home = self.folder / "home"
        self.run_here("data", "generate", "train", "--examples", EXAMPLES, "--keys", 26000, "--files", 3)
        (self.folder / "train.conf").write_text(CONFIG)
        (self.folder / "batch.conf").write_text(BATCH)
        (self.folder / "test.conf").write_text(TEST)

    def environment(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PSCLOUD_", "DMLC_"))}
        return environment | {"PSCLOUD_HOME": str(self.home)}

    def start(self, *words):
        process = subprocess.Popen([PSCLOUD, *map(str, words)], cwd=self.folder, env=self.environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def run_here(self, *words, code=0):
        process = self.start(*words)
        out, self.err = process.communicate(timeout=SECONDS * 3)
        self.assertEqual(process.returncode, code, out + self.err)
        return out

    def launched(self, config, *words, code=0):
        return self.run_here("train", config, "--on", "local", "--name", RUN, *words, code=code)

    def model(self):
        """The weights, whoever wrote them where; and no model any more."""
        lines = []
        for part in self.folder.glob("model_S*"):
            lines += part.read_text().splitlines()
            part.unlink()
        self.assertGreater(len(lines), 1000)
        return sorted(lines)

    def test_one_worker_makes_the_same_model_as_without_a_launcher(self):
        self.run_here("train", "train.conf", "--servers", 2, "--workers", 1)
        alone = self.model()
        self.launched("train.conf", "--servers", 2, "--workers", 1)
        self.assertEqual(self.model(), alone)

    def test_batch_training_finds_the_same_optimum(self):
        alone = json.loads(self.run_here("train", "batch.conf", "--json"))
        there = json.loads(self.launched("batch.conf", "--servers", 2, "--workers", 3, "--json"))
        self.assertEqual(there["examples"], alone["examples"])
        self.assertAlmostEqual(there["objective"] / alone["objective"], 1, delta=1e-3)

    def test_several_workers_learn_as_well_and_one_of_them_tells(self):
        out = self.launched("train.conf", "--servers", 2, "--workers", 3, "--threads", 2)
        self.assertEqual(len(re.findall(r"^ sec  examples ", out, re.MULTILINE)), 1, out)
        self.assertEqual(len(re.findall(rf"^{EXAMPLES} examples in ", out, re.MULTILINE)), 1, out)
        self.assertNotIn("[worker", out)
        self.assertGreater(json.loads(self.run_here("evaluate", "test.conf", "--json"))["auc"], 0.75)
        logs = {path.name for path in (self.home / "runs" / RUN / "logs").iterdir()}
        self.assertEqual(logs, {"scheduler-0.log", "server-0.log", "server-1.log", "worker-0.log", "worker-1.log",
                                "worker-2.log"})
        for path in (self.home / "runs" / RUN).rglob("*"):
            if path.is_file():
                self.assertNotIn("PRIVATE KEY", path.read_text(), path)

    def test_many_workers_write_a_model_into_a_folder_that_is_not_there_yet(self):
        for number in range(3):
            self.launched("train.conf", "--servers", 1, "--workers", 6, "--threads", 1, "--json", "--set",
                          f"model_output.file=new{number}/folder/model")
            self.assertTrue(list((self.folder / f"new{number}" / "folder").glob("model_S*")))

    def test_what_a_killed_worker_had_is_done_by_the_others(self):
        process = self.start("train", "train.conf", "--on", "local", "--name", RUN, "--servers", 2, "--workers", 3,
                             "--json", "--set", "async_sgd.minibatch=20", "--set", "async_sgd.num_data_pass=2")
        workers = until(lambda: len(tasks_of("worker")) == 3 and tasks_of("worker"), "three workers")
        victim = workers["worker-0"]
        until(lambda: bytes_read(victim) > 1 << 18, "a worker that is in the middle of its parts")
        os.kill(victim, 9)
        out, err = process.communicate(timeout=SECONDS * 3)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("worker-0", err)
        summary = json.loads(out)
        self.assertEqual(summary["examples"] - summary["repeated"], 2 * EXAMPLES)

    def test_nodes_of_a_job_file_trust_each_other_unasked(self):
        node = {"command": ["pscloud", "node"]}
        train = ["pscloud", "train", "train.conf", "--threads", "1"]
        job = {"name": RUN, "roles": {"scheduler": node, "server": node, "worker": {"count": 2, "command": train}}}
        (self.folder / "job.json").write_text(json.dumps(job))
        self.run_here("run", "--job", "job.json")
        self.assertGreater(len(self.model()), 1000)

    def test_a_config_that_cannot_be_is_refused_before_anything_starts(self):
        (self.folder / "bad.conf").write_text("loss { type: LOGITT }")
        self.run_here("train", "bad.conf", "--on", "local", code=2)
        self.assertIn("bad.conf:1", self.err)
        (self.folder / "nothing.conf").write_text(CONFIG.replace("train-", "nothing-"))
        self.run_here("train", "nothing.conf", "--on", "local", code=2)
        self.assertIn("nothing-", self.err)
        self.assertFalse(self.home.exists())


if __name__ == "__main__":
    unittest.main(argv=["train_launch_test.py", "--verbose"])
