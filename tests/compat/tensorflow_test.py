#!/usr/bin/env python3
"""A real program of TensorFlow, with its parameter servers: trains to its end, and its servers are stopped then.

`make test-tensorflow` installs TensorFlow (a download of 320 MB) in build/tensorflow; without it this test is skipped.
"""

import re
import sys

from launched import ROOT, LaunchedTest, main

PYTHON = ROOT / "build/tensorflow/bin/python"
SKIPPED = 77  # CMakeLists.txt knows it


class TensorFlow(LaunchedTest):
    seconds = 240

    def test_parameter_servers_train_to_the_end(self):
        done = self.launch("--framework", "tensorflow", "--chief", "--workers", 2, "--servers", 1, "--", PYTHON,
                           "examples/tensorflow/parameter_server.py")
        self.assertEqual(done.returncode, 0, self.story)
        self.assertTrue(re.search(r"300 steps on 2 workers, .* found 2\.0\d* -[01]\.\d* 0\.\d* [23]\.\d*",
                                  self.log("chief-0")), self.story)
        self.assertEqual(self.states(), {"server-0": "stopped", "chief-0": "done", "worker-0": "stopped",
                                         "worker-1": "stopped"}, self.story)


if __name__ == "__main__":
    if not (PYTHON.parents[1] / "installed").exists():
        print("skipped: `make test-tensorflow` installs TensorFlow and runs it")
        sys.exit(SKIPPED)
    main()
