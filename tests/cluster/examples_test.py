#!/usr/bin/env python3
"""Every config of examples/linear, unchanged, on small data of its format at the places it names; and each format."""

import ctypes
import gzip
import json
import pathlib
import subprocess
import tempfile
import unittest
from random import Random

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
FEW = 3000


class Harness(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pscloud(self, *words):
        done = subprocess.run([PSCLOUD, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              timeout=3 * SECONDS)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout


class Examples(Harness):
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


RATE = "learning_rate { type: DECAY alpha: 0.1 beta: 1 }\nasync_sgd { algo: FTRL minibatch: 50 }\n"
WAYS = {ONLINE: RATE, BATCH: "darlin { max_pass_of_data: 5 }\n"}


def plain(contents):
    return contents


def zstd(contents):
    library = ctypes.CDLL("libzstd.so.1")  # pscloud needs it, too; the program of that name may not be there
    packed = ctypes.create_string_buffer(len(contents) + 1000)
    library.ZSTD_compress.restype = ctypes.c_size_t
    size = library.ZSTD_compress(packed, ctypes.c_size_t(len(packed)), contents, ctypes.c_size_t(len(contents)), 3)
    return packed.raw[:size]


# What each format is packed by, and trained on by; DENSE has no writer of ours.
PROCESSES = ("--servers", 2, "--workers", 2)
FORMATS = (
    ("DENSE", plain, ()),
    ("SPARSE", plain, PROCESSES),
    ("SPARSE_BINARY", zstd, ()),
    ("ADFEA", gzip.compress, PROCESSES),
    ("LIBSVM", zstd, PROCESSES),
    ("TERAFEA", plain, ()),
    ("VW", gzip.compress, ()),
    ("CRITEO", plain, ()),
    ("PROTO", zstd, PROCESSES),
)


class Formats(Harness):
    """Whole runs over each format, plain and packed: train, evaluate."""

    def write(self, text, packer, name, seed):
        path = pathlib.Path(self.folder) / f"{name}-0"
        if text == "DENSE":
            random = Random(seed)
            rows = [[random.gauss(0, 1) for _ in range(10)] for _ in range(FEW)]
            path.write_text("".join(f"{1 if sum(row) + random.gauss(0, 2) > 0 else -1}; 1 " +
                                    " ".join(f"{value:.3f}" for value in row) + ";\n" for row in rows))
        else:
            self.pscloud("data", "generate", name, "--examples", FEW, "--keys", 2600, "--format", text, "--seed", seed)
        path.write_bytes(packer(path.read_bytes()))

    def test_each_can_be_trained_on_and_evaluated(self):
        for text, packer, processes in FORMATS:
            self.write(text, packer, f"{text}-train", 1)
            self.write(text, packer, f"{text}-test", 2)
            data = "format: PROTO" if text == "PROTO" else f"format: TEXT text: {text}"
            config = pathlib.Path(self.folder) / "x.conf"
            for way, how in WAYS.items():
                with self.subTest(text=text, way=way):
                    config.write_text(f'training_data {{ {data} file: "{text}-train.*" }}\n'
                                      f'model_output {{ format: TEXT file: "{text}-{way}" }}\n'
                                      f"loss {{ type: LOGIT }}\npenalty {{ type: L1 lambda: 1 }}\n{how}")
                    trained = json.loads(self.pscloud("train", config, "--json", *processes))
                    self.assertEqual((trained["examples"], trained["bad_lines"]), (FEW, 0))
                    config.write_text(f'validation_data {{ {data} file: "{text}-test.*" }}\n'
                                      f'model_input {{ format: TEXT file: "{text}-{way}_S.*" }}\n')
                    tried = json.loads(self.pscloud("evaluate", config, "--json"))
                    self.assertEqual((tried["examples"], tried["bad_lines"]), (FEW, 0))
                    self.assertGreater(tried["auc"], 0.55)


if __name__ == "__main__":
    unittest.main()
