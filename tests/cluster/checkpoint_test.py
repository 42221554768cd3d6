#!/usr/bin/env python3
"""`pscloud train` with checkpoints, online and in batch: kill -9 of all its processes in the middle, --resume, and the
very same model."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, SANITIZERS, SECONDS, children, train_workers, until

PSCLOUD = BUILD / "pscloud"
EXAMPLES = 16000 if SANITIZERS else 32000
CONFIG = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
penalty { type: L1 lambda: 0.01 }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 100 num_data_pass: 2 }
"""
# Rare features are left out by counts that the servers keep.
TAIL = ["--set", "async_sgd.tail_feature_freq=3", "--set", "async_sgd.countmin_n=100000"]
BATCH = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
penalty { type: L1 lambda: 1 }
darlin { max_pass_of_data: 30 epsilon: 1e-9 max_block_delay: 1 }
"""
# Workers that go in step.
TOGETHER = ["--set", "async_sgd.synchronous=true", "--set", "async_sgd.max_delay=1"]
RUN_SECONDS = 3 * SECONDS  # a whole run, in six processes
CHECKPOINTS = ["--set", "checkpoint.folder=ck", "--set", "checkpoint.every_seconds=0"]


class Checkpoint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_here("data", "generate", "train", "--examples", EXAMPLES, "--keys", 26000, "--files", 8)
        (cls.folder / "train.conf").write_text(CONFIG)
        (cls.folder / "batch.conf").write_text(BATCH)
        cls.model = cls.uninterrupted("train.conf")

    @classmethod
    def uninterrupted(cls, *words, count=1):
        cls.run_here("train", *words, "--servers", 2, "--workers", count, "--quiet")
        return cls.take_model()

    def setUp(self):
        for file in (self.folder / "ck").glob("*"):
            file.unlink()

    @classmethod
    def run_here(cls, *words):
        return subprocess.run([PSCLOUD, *map(str, words)], cwd=cls.folder, check=True, capture_output=True, text=True,
                              timeout=RUN_SECONDS)

    @classmethod
    def take_model(cls):
        """The files of the model, which are gone afterwards."""
        files = sorted(cls.folder.glob("model_S*"))
        model = [file.read_bytes() for file in files]
        for file in files:
            file.unlink()
        return model

    def start(self, *flags, count=1, config="train.conf"):
        process = subprocess.Popen([PSCLOUD, "train", config, "--servers", "2", "--workers", str(count), "--json",
                                    *CHECKPOINTS, *flags],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def numbers(self):
        """Of the checkpoints that are there."""
        names = [file.name for file in (self.folder / "ck").glob("checkpoint-*")]
        return sorted(int(name.partition("-")[2]) for name in names if re.fullmatch(r"checkpoint-\d+", name))

    def newest(self):
        return max(self.numbers(), default=0)

    def run_until(self, number, *flags, **how):
        """Then kills whatever the command has started, all at once, and the command itself."""
        process = self.start(*flags, **how)
        until(lambda: self.newest() >= number or process.poll() is not None, f"checkpoint {number}", RUN_SECONDS)
        self.assertIsNone(process.poll(), "it ended before it was killed")
        for pid in [process.pid, *children(process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # one that saw the others end
        process.communicate(timeout=RUN_SECONDS)
        self.assertEqual(self.take_model(), [])

    def finish(self, *flags, **how):
        process = self.start(*flags, **how)
        out, err = process.communicate(timeout=RUN_SECONDS)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out), err

    def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(self):
        self.run_until(3)
        self.run_until(self.newest() + 4, "--resume")
        before = self.newest()
        self.assertGreaterEqual(before, 7)
        self.assertLessEqual(len(self.numbers()), 3)  # two are kept, and the oldest may be about to be removed
        summary, _ = self.finish("--resume")
        self.assertEqual(summary["examples"], 2 * EXAMPLES)
        self.assertEqual(summary["repeated"], 0)
        self.assertGreater(summary["resumed"], 0)  # how much seven checkpoints hold depends on the machine
        self.assertEqual(self.take_model(), self.model)
        self.assertEqual(list((self.folder / "ck").iterdir()), [])  # nor what the killed ones had begun

    def test_counts_of_seldom_features_go_on_too(self):
        expected = self.uninterrupted("train.conf", *TAIL)
        self.assertNotEqual(expected, self.model)
        self.run_until(3, *TAIL)
        self.run_until(self.newest() + 6, *TAIL, "--resume")
        self.finish(*TAIL, "--resume")
        self.assertEqual(self.take_model(), expected)

    def test_batch_training_goes_on_and_ends_in_the_same_bytes(self):
        for count in [1, 3]:
            with self.subTest(workers=count):
                expected = self.uninterrupted("batch.conf", count=count)
                self.run_until(2, config="batch.conf", count=count)
                self.run_until(self.newest() + 3, "--resume", config="batch.conf", count=count)
                before = self.newest()
                summary, _ = self.finish("--resume", config="batch.conf", count=count)
                self.assertEqual(summary["examples"], EXAMPLES)
                self.assertGreater(summary["iterations"], before)
                self.assertEqual(self.take_model(), expected)
                self.assertEqual(list((self.folder / "ck").iterdir()), [])

    def test_workers_in_step_go_on_and_end_in_the_same_bytes(self):
        expected = self.uninterrupted("train.conf", *TOGETHER, count=3)
        self.run_until(2, *TOGETHER, count=3)
        self.run_until(self.newest() + 2, *TOGETHER, "--resume", count=3)
        summary, _ = self.finish(*TOGETHER, "--resume", count=3)
        self.assertEqual(summary["examples"], 2 * EXAMPLES)
        self.assertEqual(summary["repeated"], 0)
        self.assertGreater(summary["resumed"], 0)
        self.assertEqual(self.take_model(), expected)
        self.assertEqual(list((self.folder / "ck").iterdir()), [])

    def test_batch_training_goes_on_with_other_workers(self):
        self.run_until(3, config="batch.conf", count=2)
        summary, _ = self.finish("--resume", config="batch.conf", count=3)
        self.assertEqual(summary["examples"], EXAMPLES)
        self.assertEqual(len(self.take_model()), 2)

    def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(self):
        self.run_until(4)
        newest = self.newest()
        part = self.folder / "ck" / f"checkpoint-{newest}-table0-part1"
        damaged = bytearray(part.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        part.write_bytes(damaged)
        summary, err = self.finish("--resume")
        self.assertRegex(err, rf"ck/checkpoint-{newest}-table0-part1: damaged: .*; checkpoint {newest} is left out")
        self.assertEqual(summary["examples"], 2 * EXAMPLES)
        self.assertEqual(self.take_model(), self.model)

    def test_a_worker_that_dies_holds_no_checkpoint_up(self):
        for flags in [[], TOGETHER]:
            with self.subTest(flags=flags):
                self.die_between_checkpoints(*flags)

    def die_between_checkpoints(self, *flags):
        process = self.start(*flags, count=3)
        until(lambda: self.newest() >= 2, "a checkpoint", RUN_SECONDS)
        os.kill(train_workers(process.pid)[0], signal.SIGKILL)
        at_death = self.newest()
        until(lambda: self.newest() > at_death + 1 or process.poll() is not None, "another checkpoint",
              RUN_SECONDS)
        out, err = process.communicate(timeout=RUN_SECONDS)
        self.assertEqual(process.returncode, 0, err)
        summary = json.loads(out)
        self.assertEqual(summary["examples"] - summary["repeated"], 2 * EXAMPLES)
        self.assertEqual(len(self.take_model()), 2)


if __name__ == "__main__":
    unittest.main()
