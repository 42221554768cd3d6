#!/usr/bin/env python3
"""`pscloud bench adder --variant` with the real TensorFlow, Ray and PyTorch, on this machine and, as root, on hosts.

`make bench-peers` installs them in build/peers/venv (PSCLOUD_PEERS_PYTHON names another Python); without them this test
is skipped.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cluster"), str(ROOT / "tests/labs")]

import ssh_lab  # noqa: E402
from event_file import read_steps  # noqa: E402
from launch_harness import PSCLOUD, LaunchTest  # noqa: E402
from ssh_hosts import OnSshHosts  # noqa: E402

PYTHON = pathlib.Path(os.environ.get("PSCLOUD_PEERS_PYTHON", ROOT / "build/peers/venv/bin/python"))
SKIPPED = 77  # CMakeLists.txt knows it
SECONDS = 240
ITERS = 5


class Peers:
    """The adder of every system, in both modes; `on` is where."""

    python = PYTHON

    def adder(self, mode, *variants):
        words = [PSCLOUD, "bench", "adder", "--on", self.on, "--name", "peers", "--mode", mode, "--ps", 2, "--workers",
                 2, "--size-mb", 4, "--iters", ITERS, "--warmup", 2, "--python", self.python, "--variant",
                 ",".join(("pscloud", *variants)), "--json"]
        process = self.start(*words)
        out = self.ends(process, seconds=SECONDS)
        found = json.loads(out)
        self.assertEqual([each["variant"] for each in found["variants"]], ["pscloud", *variants])
        for each in found["variants"]:
            self.assertTrue(each.get("values_ok"), f"{each} {self.story(process)}")
            self.assertGreater(each["ms_p50"], 0)
            path, = (self.run_folder("peers") / "tensorboard" / each["variant"]).iterdir()
            self.assertEqual(len(read_steps(path)), ITERS)
        self.assert_nothing_left()

    def test_tensorflow_in_sync(self):
        self.adder("sync", "tensorflow")

    def test_tensorflow_in_async(self):
        self.adder("async", "tensorflow")

    def test_ray_in_sync(self):
        self.adder("sync", "ray")

    def test_ray_in_async(self):
        self.adder("async", "ray")

    def test_torch_in_sync(self):
        self.adder("sync", "torch")

    def test_torch_in_async(self):
        self.adder("async", "torch")


class Here(Peers, LaunchTest):
    on = "local"

    def assert_nothing_left(self):
        mark = b"PSCLOUD_RUN=peers-"
        for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                self.assertNotIn(mark, environ.read_bytes())
            except OSError:
                pass
        self.assertEqual(list(pathlib.Path("/tmp").glob("adder-j*")), [])


@unittest.skipIf(ssh_lab.missing(), ssh_lab.missing())
class OnHosts(Peers, OnSshHosts):
    @classmethod
    def setUpClass(cls):
        # The hosts' user may not look where root's Python is.
        ask = "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_path('purelib'))"
        said = subprocess.run([PYTHON, "-c", ask], check=True, capture_output=True, text=True).stdout
        base, packages = said.split()
        cls.use(ssh_lab.SshLab(3, network="10.78.2", binds={base: "/opt/python", packages: "/opt/peers"}))
        cls.python = cls.lab.common / "python"
        cls.python.write_text("#!/bin/sh\nPYTHONPATH=/opt/peers LD_LIBRARY_PATH=/opt/python/lib "
                              'exec /opt/python/bin/python3 "$@"\n')
        cls.python.chmod(0o755)


if __name__ == "__main__":
    if not PYTHON.exists():
        print("skipped: `make bench-peers` installs TensorFlow, Ray and PyTorch")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[1:]])
