#!/usr/bin/env python3
"""What `pscloud train --tensorboard` writes, read by TensorBoard's own code.

`make test-tensorflow` installs it with TensorFlow in build/tensorflow; without it this test is skipped. What is in such
a file by its description is tested without it (tests/cluster/event_file.py).
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from launched import PSCLOUD, ROOT

PYTHON = ROOT / "build/tensorflow/bin/python"
SKIPPED = 77  # CMakeLists.txt knows it
CONFIG = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
validation_data { format: TEXT text: LIBSVM file: "train-.*" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 100 num_data_pass: 3 }
"""
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[one.step, one.value] for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


class TensorBoard(unittest.TestCase):
    def test_reads_the_figures_of_each_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            def run(*words):
                return subprocess.run(list(map(str, words)), cwd=folder, check=True, capture_output=True, text=True,
                                      timeout=120).stdout

            run(PSCLOUD, "data", "generate", "train", "--examples", 5000, "--keys", 2000)
            (pathlib.Path(folder) / "train.conf").write_text(CONFIG)
            summary = json.loads(run(PSCLOUD, "train", "train.conf", "--threads", 1, "--json", "--tensorboard",
                                     "events"))
            found = json.loads(run(PYTHON, "-c", READ, "events"))
        losses = found["validation/logloss"]
        self.assertEqual([step for step, _ in losses], [5000, 10000, 15000, 15000])  # after each pass, and at the end
        self.assertAlmostEqual(losses[-1][1], summary["validation"]["logloss"], places=5)
        self.assertAlmostEqual(found["train/loss"][-1][1], summary["loss"], places=5)


if __name__ == "__main__":
    found = PYTHON.exists() and subprocess.run([PYTHON, "-c", "import tensorboard"], capture_output=True, check=False)
    if not found or found.returncode != 0:
        print("skipped: `make test-tensorflow` installs TensorBoard and runs it")
        sys.exit(SKIPPED)
    unittest.main()
