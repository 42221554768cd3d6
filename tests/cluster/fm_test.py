#!/usr/bin/env python3
"""`pscloud train` with examples/fm: better than a linear model, and as good as the same in NumPy (fm_reference.py)."""

import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import unittest

import fm_reference
from harness import BUILD, SECONDS

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "examples/fm"
SEEDS = (1, 2, 3)
LOG = ("--keys", "130", "--interactions", "4", "--interaction-strength", "2")


class FactorizationMachine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for config in CONFIGS.glob("*.conf"):
            shutil.copy(config, self.folder)
        self.run_here("data", "generate", "train", "--examples", "20000", *LOG)
        self.run_here("data", "generate", "test", "--examples", "5000", "--seed", "2", *LOG)

    def run_here(self, *words):
        return subprocess.run([BUILD / "pscloud", *map(str, words)], cwd=self.folder, check=True, capture_output=True,
                              text=True, timeout=SECONDS).stdout

    def train(self, *words):
        """What it said in the end, and the logloss of its model."""
        shutil.rmtree(self.folder / "model", ignore_errors=True)
        summary = json.loads(self.run_here("train", "train.conf", "--json", *words))
        return summary, json.loads(self.run_here("evaluate", "test.conf", "--json"))["logloss"]

    def test_it_is_better_than_a_linear_model_and_no_worse_than_numpy(self):
        # They begin with other random numbers: the means over some seeds may differ by as much as either varies.
        ours, references = [], []
        for seed in SEEDS:
            options = fm_reference.options_of("--dim 8 --threshold 5 --alpha 0.1 --beta 10 --init_scale 0.02".split() +
                                              f"--lambda1 0.1 --minibatch 25 --passes 4 --seed {seed}".split())
            references.append(fm_reference.logloss_after_training(self.folder / "train-0", self.folder / "test-0",
                                                                  options))
            alone, logloss = self.train("--threads", "1", "--set", f"factorization_machine.seed={seed}")
            self.assertGreater(alone["embeddings"], 130)
            ours.append(logloss)
        spread = max(statistics.stdev(ours), statistics.stdev(references))
        self.assertGreater(spread, 0)
        self.assertLess(statistics.mean(ours), statistics.mean(references) + spread, (ours, references))
        logloss = max(ours)

        # No key comes so often: no embedding, and the model is linear.
        summary, linear = self.train("--threads", "1", "--set", "factorization_machine.threshold=10000000")
        self.assertEqual(summary["embeddings"], 0)
        self.assertLess(logloss, linear - 0.05)
        summary, of_several = self.train("--servers", "2", "--workers", "2")
        self.assertGreater(summary["embeddings"], 130)
        self.assertLess(of_several, linear - 0.05)


if __name__ == "__main__":
    unittest.main()
