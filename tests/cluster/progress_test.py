#!/usr/bin/env python3
"""How far a verb is that learns or scores: a line that changes on a terminal, plain lines elsewhere."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import threading
import unittest

from harness import BUILD, SECONDS, until
from train_test import BATCH, CONFIG, TEST

PSCLOUD = BUILD / "pscloud"
SHARE = r"[\d.]+[kM]? examples, [\d.]+[kM]?/s, \d+% done, \d+ s left"
WIPE = "\r\x1b[K"
PROCESSES = ("--servers", "1", "--workers", "2")
LONG = ("--set", "validation_data.replica=5000")  # until it is ended


class Progress(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for name, text in (("train.conf", CONFIG), ("batch.conf", BATCH), ("test.conf", TEST)):
            (cls.folder / name).write_text(text)
        for words in (("data", "generate", "train", "--examples", "20000", "--keys", "26000"),
                      ("train", "train.conf", "--quiet", "--set", "async_sgd.minibatch=1000")):
            subprocess.run([PSCLOUD, *words], cwd=cls.folder, check=True, capture_output=True, timeout=SECONDS * 3)

    def start(self, *words, terminal):
        """Its stdout is a pipe; its stderr a terminal, or another one."""
        keep, give = pty.openpty() if terminal else os.pipe()
        process = subprocess.Popen([PSCLOUD, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=give, text=True)
        os.close(give)
        process.seen = ""

        def read():
            try:
                while some := os.read(keep, 4096):
                    process.seen += some.decode()
            except OSError:  # the other end of a terminal is gone
                pass
            os.close(keep)

        process.reader = threading.Thread(target=read)
        process.reader.start()
        self.addCleanup(process.reader.join)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        out, _ = process.communicate(timeout=SECONDS * 3)
        process.reader.join()
        self.assertEqual(process.returncode, code, process.seen)
        return out

    def run_here(self, *words, terminal):
        """What it writes to stdout and to stderr."""
        process = self.start(*words, terminal=terminal)
        out = self.end(process)
        return out, process.seen

    def check(self, *words, pattern):
        """On a terminal there is such a line, in the end it is wiped away, and nothing else is otherwise."""
        out, seen = self.run_here(*words, terminal=True)
        self.assertRegex(seen, re.escape(WIPE) + pattern)
        self.assertEqual(seen.split(WIPE)[-1], "")
        plain_out, plain = self.run_here(*words, terminal=False)
        # A machine that is busy may take so long that it tells.
        self.assertEqual([line for line in plain.splitlines() if " left" not in line], [])
        return out, plain_out

    def test_of_evaluate_is_seen_on_a_terminal(self):
        out, plain_out = self.check("evaluate", "test.conf", pattern=SHARE)
        self.assertIn("load 20000 examples", out)
        self.assertEqual(out, plain_out)
        self.assertEqual(self.check("evaluate", "test.conf", *PROCESSES, pattern=SHARE), (out, out))

    def test_of_predict_too(self):
        out, plain_out = self.check("predict", "test.conf", "--out", "predicted", pattern=SHARE)
        self.assertEqual(out, plain_out)

    def test_of_batch_training_too_while_it_loads_and_iterates(self):
        words = ("train", "batch.conf", "--threads", "1", "--set", "model_output.file=batch")
        out, plain_out = self.check(*words, pattern="loading: " + SHARE)
        for where in ((), PROCESSES):
            _, seen = self.run_here(*words, *where, terminal=True)
            self.assertRegex(seen, r"[\d.]+ of at most 40 iterations, [\d.e-]+ s each, \d+% done, at most \d+ s left")
        # But for the times.
        lines, plain_lines = (re.sub(r"in [\d.e-]+ s.*|\|[^|]*$", "", text, flags=re.M).splitlines()
                              for text in (out, plain_out))
        self.assertEqual(lines, plain_lines)
        self.assertGreater(len(lines), 8)

    def test_of_online_training_too_beside_its_table(self):
        for where in ((), PROCESSES):
            process = self.start("train", "train.conf", "--set", "model_output.file=online", "--set",
                                 "async_sgd.num_data_pass=5000", "--set", "async_sgd.report_interval=1", *where,
                                 terminal=True)
            until(lambda: len(re.findall(SHARE, process.seen)) >= 2, lambda: f"two lines in {process.seen!r}",
                  SECONDS * 3)
            process.send_signal(signal.SIGINT)
            out = self.end(process, code=130)
            self.assertGreaterEqual(len(out.splitlines()), 3)  # its head, and a line for each of them
            self.assertNotIn(" left", out)
            self.assertTrue(process.seen.removesuffix(WIPE).endswith(WIPE + "pscloud: interrupted\r\n"), process.seen)

    def test_goes_on_until_the_end_and_an_interruption_leaves_none(self):
        process = self.start("evaluate", "test.conf", *LONG, terminal=True)
        until(lambda: len(re.findall(SHARE, process.seen)) >= 3, lambda: f"three lines in {process.seen!r}")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process, code=130), "")
        self.assertTrue(process.seen.removesuffix(WIPE).endswith(WIPE + "pscloud: interrupted\r\n"), process.seen)

    def test_is_plain_lines_in_a_file(self):
        process = self.start("evaluate", "test.conf", *LONG, terminal=False)
        until(lambda: "\n" in process.seen, "a line", SECONDS * 3)
        self.assertRegex(process.seen, f"^{SHARE}\n$")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process, code=130), "")

    def test_is_not_for_programs(self):
        for words in (("evaluate", "test.conf"), ("predict", "test.conf", "--out", "predicted"),
                      ("train", "batch.conf", "--set", "model_output.file=batch")):
            _, seen = self.run_here(*words, "--json", terminal=True)
            self.assertEqual(seen.replace(WIPE, ""), "")


if __name__ == "__main__":
    unittest.main()
