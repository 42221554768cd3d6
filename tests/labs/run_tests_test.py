#!/usr/bin/env python3
"""What run_tests.py makes of scripts whose tests pass, fail, or cannot run."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent / "run_tests.py"
HEAD = "import unittest\n"
PASSES = "class Passes(unittest.TestCase):\n    def test(self):\n        pass\n"
FAILS = "class Fails(unittest.TestCase):\n    def test(self):\n        self.fail()\n"
SKIPPED = "@unittest.skipIf(True, 'needs root')\n" + PASSES.replace("Passes", "Skipped")
NO_MODULE = "def setUpModule():\n    raise unittest.SkipTest('needs dockerd')\n"


class RunTests(unittest.TestCase):
    def run_script(self, *parts, tests=()):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "some_test.py"
            script.write_text(HEAD + "".join(parts))
            return subprocess.run([sys.executable, RUN, script, *tests], capture_output=True, text=True)

    def test_what_cannot_run_is_not_passed(self):
        done = self.run_script(SKIPPED)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("skipped: needs root", done.stdout)
        done = self.run_script(NO_MODULE, PASSES)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("skipped: needs dockerd", done.stdout)

    def test_one_that_ran_is_enough(self):
        self.assertEqual(self.run_script(SKIPPED, PASSES).returncode, 0)
        self.assertEqual(self.run_script(SKIPPED, PASSES, tests=["Skipped"]).returncode, 77)

    def test_a_failure_is_one(self):
        self.assertEqual(self.run_script(SKIPPED, FAILS).returncode, 1)
        self.assertEqual(self.run_script("import no_such_module\n").returncode, 1)


if __name__ == "__main__":
    unittest.main()
