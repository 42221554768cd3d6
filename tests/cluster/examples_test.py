#!/usr/bin/env python3
"""Every config of examples/linear, unchanged, on small data of its format at the places it names."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from harness import BUILD, SANITIZERS, SECONDS

PSCLOUD = BUILD / "pscloud"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/linear"
ONLINE, BATCH = "online", "batch"
# Folder of configs and data, format, and what can be trained.
TABLE = (
    ("ctr", "SPARSE_BINARY", (ONLINE, BATCH)),
    ("rcv1", "LIBSVM", (ONLINE, BATCH)),
    ("criteo", "CRITEO", (BATCH,)),
)
LINES = 4000 if SANITIZERS else 20000


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pscloud(self, *words):
        done = subprocess.run([PSCLOUD, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              timeout=3 * SECONDS)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def test_every_config_runs_as_it_is(self):
        seen = {EXAMPLES / "clicks/train.conf", EXAMPLES / "clicks/test.conf"}  # docs/training.md runs these
        for name, text, ways in TABLE:
            make = ("--format", text, "--keys", 2600)
            self.pscloud("data", "generate", f"data/{name}/train/part", "--examples", LINES, "--files", 2, *make)
            self.pscloud("data", "generate", f"data/{name}/test/part", "--examples", 2000, "--seed", 2, *make)
            for way in ways:
                with self.subTest(name=name, way=way):
                    train = EXAMPLES / name / f"{way}_l1lr.conf"
                    test = EXAMPLES / name / f"eval_{way}.conf"
                    seen |= {train, test}
                    trained = json.loads(self.pscloud("train", train, "--json"))
                    self.assertEqual(trained["bad_lines"], 0)
                    self.assertEqual(trained["examples"] % LINES, 0)  # some passes over all
                    self.assertGreater(trained["nonzero"], 10)
                    tried = json.loads(self.pscloud("evaluate", test, "--json"))
                    self.assertEqual(tried["examples"], 2000)
                    self.assertEqual(tried["weights"], trained["nonzero"])
                    self.assertGreater(tried["auc"], 0.55)  # with so few lines, the order of minibatches matters
                    self.assertLess(tried["auc"], 0.85)  # no model can do better than 0.82
        self.assertEqual(seen, set(EXAMPLES.glob("*/*.conf")))


if __name__ == "__main__":
    unittest.main()
