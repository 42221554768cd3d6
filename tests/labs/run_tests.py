#!/usr/bin/env python3
"""Runs the tests of a script that needs a lab, so that nobody takes skipped for passed:

    tests/labs/run_tests.py tests/cluster/ssh_test.py [TEST...]

Exit codes: 0 passed, 1 failed, 77 none could run here (CMakeLists.txt knows it), with the reasons on stdout.
"""

import importlib
import pathlib
import sys
import unittest

SKIPPED = 77


class Result(unittest.TextTestResult):
    some_ran = False

    def addSuccess(self, test):
        super().addSuccess(test)
        self.some_ran = True


def main(script, *tests):
    path = pathlib.Path(script).resolve()
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=2)
    result = unittest.main(module=module, argv=[script, *tests], testRunner=runner, exit=False).result
    if not result.wasSuccessful():
        return 1
    if result.some_ran:
        return 0
    print("skipped: " + ("; ".join(sorted({why for _, why in result.skipped})) or "there was no test"))
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
