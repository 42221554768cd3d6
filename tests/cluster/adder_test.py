"""`pscloud bench adder --on` on four hosts by ssh, each a machine of its own (labs/ssh_lab.py)."""

import json
import os
import pathlib
import signal
import sys
import unittest

from event_file import read_steps
from launch_harness import PSCLOUD, until
from ssh_hosts import OnSshHosts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))

import ssh_lab  # noqa: E402

ITERS = 12


@unittest.skipIf(ssh_lab.missing(), ssh_lab.missing())
class AdderOnHosts(OnSshHosts):
    @classmethod
    def setUpClass(cls):
        cls.use(ssh_lab.SshLab(4, network="10.78.1"))

    def adder(self, name, *words, code=0):
        out = self.pscloud("bench", "adder", "--on", self.on, "--name", name, "--ps", 2, "--workers", 2,
                           "--size-mb", 1, "--iters", ITERS, "--json", *words, code=code)
        return json.loads(out)

    def steps(self, name, variant="pscloud"):
        path, = (self.run_folder(name) / "tensorboard" / variant).iterdir()
        return read_steps(path)

    def test_sync_checks_every_value_and_brings_the_steps_here(self):
        found = self.adder("sync")
        self.assertTrue(found["values_ok"])
        self.assertEqual((found["mode"], found["hosts"], found["transport"]), ("sync", 4, "tls"))
        for name in ("ms_p50", "push_ms_p50", "pull_ms_p50", "limit_socket_ms", "limit_add_ms", "ratio_to_limit",
                     "gb_per_s", "cpu_worker_s"):
            self.assertGreater(found[name], 0, name)
        self.assertLess(found["push_ms_p50"] + found["pull_ms_p50"], 2 * found["ms_p50"])
        self.assertEqual(found["tensorboard"], str(self.run_folder("sync") / "tensorboard"))
        steps = self.steps("sync")
        self.assertEqual(len(steps), ITERS)
        for step in steps:
            self.assertEqual(set(step), {"time/step", "time/worker_push", "time/worker_fetch", "local_rate",
                                         "global_rate", "worker-0"})
            self.assertGreaterEqual(step["time/step"], step["time/worker_push"])
            # 1 MB each way, of two workers.
            self.assertAlmostEqual(step["global_rate"] * step["time/step"] / 1000, 4, delta=0.01)
        self.assert_nothing_left()

    def test_async_checks_the_sums_in_the_end(self):
        found = self.adder("async", "--mode", "async", "--transport", "tcp")
        self.assertTrue(found["values_ok"])
        self.assertEqual((found["mode"], found["transport"], found["push_ms_p50"]), ("async", "tcp", None))
        self.assertEqual(set(self.steps("async")[-1]), {"time/step", "local_rate", "global_rate", "worker-0"})
        self.assert_nothing_left()

    def test_one_that_dies_fails_the_run_by_name(self):
        process = self.start(PSCLOUD, "bench", "adder", "--on", self.on, "--name", "dies", "--ps", 2, "--workers",
                             2, "--size-mb", 1, "--iters", 100000)
        self.until_says("dies", "worker-1", "adder sample", process)
        victims = [pid for machine in self.lab.machines for pid, (words, environment) in
                   self.lab.processes_of(machine).items() if "PSCLOUD_TASK=worker-1" in environment]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.ends(process, 1)
        self.assertIn("worker-1 on host", self.story(process))
        self.assert_nothing_left()

    def test_a_system_that_the_hosts_do_not_have_is_named_with_them(self):
        found = self.adder("beside", "--variant", "pscloud,ray")
        ours, ray = found["variants"]
        self.assertTrue(ours["values_ok"])
        self.assertRegex(ray["not_installed"], "for python3 on host1, host2, host3, host4: .*pip install ray")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
