#!/usr/bin/env python3
"""`pscloud evaluate` and `pscloud predict` with servers and workers of their own, here or by a launcher: the result of
one process, whoever is killed meanwhile."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, SANITIZERS, SECONDS, children, train_workers, until
from train_test import CONFIG, TEST, bytes_read

PSCLOUD = BUILD / "pscloud"
EXAMPLES = 20000
MANY = ("--set", f"validation_data.replica={5 if SANITIZERS else 30}")
PROCESSES = ("--servers", 2, "--workers", 3)
LAUNCHED = ("--on", "local", *PROCESSES)


class Scoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "train.conf").write_text(CONFIG)
        (cls.folder / "test.conf").write_text(TEST)
        for words in (("data", "generate", "train", "--examples", str(EXAMPLES), "--keys", "26000", "--files", "3"),
                      ("train", "train.conf", "--servers", "2", "--set", "async_sgd.minibatch=1000")):
            subprocess.run([PSCLOUD, *words], cwd=cls.folder, check=True, capture_output=True, timeout=SECONDS * 3)
        with open(cls.folder / "train-0", encoding="utf-8") as file:
            (cls.folder / "bad").write_text(file.readline() + "no example\n")

    def start(self, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PSCLOUD_", "DMLC_"))}
        environment["PSCLOUD_HOME"] = str(self.folder / "home")
        process = subprocess.Popen([PSCLOUD, *map(str, words)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        out, self.err = process.communicate(timeout=SECONDS * 3)
        self.assertEqual(process.returncode, code, out + self.err)
        return out

    def run_here(self, *words, code=0):
        return self.end(self.start(*words), code)

    def evaluated(self, *words):
        return json.loads(self.run_here("evaluate", "test.conf", "--json", *words))

    def check_same(self, there, alone):
        """Counts are added up, and so is the loss: only in what order is for chance to say."""
        self.assertAlmostEqual(there.pop("logloss") / alone["logloss"], 1, delta=1e-12)
        self.assertEqual(there, {name: value for name, value in alone.items() if name != "logloss"})

    def test_evaluation_has_the_result_of_one_process(self):
        alone = self.evaluated("--threads", 1)
        self.assertEqual(alone["examples"], EXAMPLES)
        self.check_same(self.evaluated(*PROCESSES), alone)
        self.check_same(self.evaluated("--servers", 1, "--workers", 2, "--threads", 2), alone)
        self.check_same(self.evaluated(*LAUNCHED), alone)

    def test_evaluation_has_the_same_lines(self):
        alone = self.run_here("evaluate", "test.conf")
        self.assertEqual(len(alone.splitlines()), 7)
        self.assertEqual(self.run_here("evaluate", "test.conf", *PROCESSES), alone)
        self.assertEqual(self.err, "")
        self.assertEqual(self.run_here("evaluate", "test.conf", *LAUNCHED), alone)

    def test_predictions_are_those_of_one_process(self):
        def predictions(out, *words):
            self.assertEqual(self.run_here("predict", "test.conf", "--out", out, *words),
                             f"{EXAMPLES} predictions in {out}-*\n")
            return {path.name.removeprefix(out): path.read_text() for path in self.folder.glob(f"{out}-*")}

        for name, raw in (("chances", ()), ("scores", ("--raw",))):
            alone = predictions(f"{name}1", *raw)
            self.assertEqual(sorted(alone), ["-0", "-1", "-2"])
            self.assertEqual(predictions(f"{name}2", *PROCESSES, *raw), alone)
        self.assertEqual(predictions("launched", *LAUNCHED, "--raw"), alone)

    def test_workers_of_a_job_file_evaluate_together(self):
        alone = self.evaluated()
        node = {"command": ["pscloud", "node"]}
        evaluate = ["pscloud", "evaluate", "test.conf", "--join", "--threads", "1", "--json"]
        (self.folder / "job.json").write_text(json.dumps(
            {"roles": {"scheduler": node, "server": node, "worker": {"count": 2, "command": evaluate}}}))
        told = re.findall(r"{.*}", self.run_here("run", "--job", "job.json"))
        self.assertEqual(len(told), 2)  # each knows it all
        for line in told:
            self.check_same(json.loads(line), alone)

    def test_what_a_killed_worker_had_is_done_by_the_others(self):
        process = self.start("evaluate", "test.conf", "--json", *PROCESSES, *MANY)
        until(lambda: len(train_workers(process.pid)) == 3, "three workers")
        victim = train_workers(process.pid)[0]
        until(lambda: bytes_read(victim) > 1 << 20, "a worker that is in the middle of its parts")
        os.kill(victim, signal.SIGKILL)
        there = json.loads(self.end(process))
        self.assertIn("the others have done its work", self.err)
        self.check_same(there, self.evaluated(*MANY))

    def test_what_is_wrong_is_told_as_by_one_process(self):
        bad = ("evaluate", "test.conf", "--strict", "--set", "validation_data.file=bad")
        self.run_here(*bad, code=2)
        alone = self.err
        self.assertRegex(alone, r"^pscloud: .*bad:2: .*\n$")
        self.run_here(*bad, *PROCESSES, code=2)
        self.assertEqual(self.err.splitlines()[-1] + "\n", alone)  # after those that the others had to end
        self.run_here(*bad, *LAUNCHED, code=1)
        self.assertIn("bad:2: ", self.err)
        self.assertFalse(re.search(r"left: ", self.err), self.err)

        twice = ("predict", "test.conf", "--out", "none", "--set", "validation_data.replica=2")
        self.run_here(*twice, code=2)
        alone = self.err
        self.run_here(*twice, *PROCESSES, code=2)
        self.assertEqual(self.err, alone)

    def test_nothing_is_started_for_files_that_are_not_there(self):
        for where in (PROCESSES, LAUNCHED):
            self.run_here("evaluate", "test.conf", "--set", "validation_data.file=nothing", "--name", "nobody", *where,
                          code=2)
            self.assertIn("nothing", self.err)
        self.assertFalse((self.folder / "home" / "runs" / "nobody").exists())

    def test_nobody_is_left_when_it_ends_too_soon(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            process = self.start("evaluate", "test.conf", *PROCESSES, "--set", "validation_data.replica=5000")
            until(lambda: len(train_workers(process.pid)) == 3, "three workers")
            victim = train_workers(process.pid)[0]
            until(lambda: bytes_read(victim) > 1 << 20, "a worker that is in the middle of its parts")
            family = list(children(process.pid))
            self.assertEqual(len(family), 5)
            process.send_signal(number)
            self.assertEqual(self.end(process, code), "")
            until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in family), "the end of all")


if __name__ == "__main__":
    unittest.main()
