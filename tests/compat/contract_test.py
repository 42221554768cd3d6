#!/usr/bin/env python3
"""Programs that read nothing but the contract of their framework find each other, and end as they do there."""

import sys

from launched import LaunchedTest, main

SERVERS, WORKERS = 2, 3


class Contract(LaunchedTest):
    def run_program(self, framework, program, *counts):
        done = self.launch("--framework", framework, *counts, "--", sys.executable, f"tests/compat/{program}")
        self.assertEqual(done.returncode, 0, self.story)

    def assert_sums(self, sum_of):
        for task, wanted in sum_of.items():
            self.assertIn(f"sum {wanted}\n", self.log(task), self.story)

    def workers(self, wanted):
        return {f"worker-{i}": wanted for i in range(WORKERS)}

    def servers(self, wanted):
        return {f"server-{i}": wanted for i in range(SERVERS)}

    def test_pscloud(self):
        self.run_program("pscloud", "pscloud_addresses.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers(1 + 2 + 3 + 4 + 5) | self.servers(15))

    def test_tensorflow(self):
        self.run_program("tensorflow", "tensorflow_config.py", "--chief", "--servers", SERVERS, "--workers", WORKERS,
                         "--evaluator")
        self.assert_sums(self.workers(1 + 2 + 3 + 4 + 5 + 6) | self.servers(21) | {"chief-0": 21})
        self.assertIn("sees 7", self.log("evaluator-0"))
        self.assertEqual(self.states(), {"chief-0": "done", "evaluator-0": "stopped"}
                         | {task: "stopped" for task in [*self.workers(0), *self.servers(0)]})

    def test_tensorflow_without_a_chief(self):
        self.run_program("tensorflow", "tensorflow_config.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers(15) | self.servers(15))
        self.assertEqual(self.states(), {task: "done" for task in self.workers(0)}
                         | {task: "stopped" for task in self.servers(0)})

    def test_paddle_2018(self):
        self.run_program("paddle2018", "paddle_2018.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers((1 + 2 + 3) * (1 + 2)))
        self.assertIn("stopped", self.log("server-1"))

    def test_paddle_with_servers(self):
        self.run_program("paddle", "paddle_fleet.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers((1 + 2 + 3) * (1 + 2)))

    def test_paddle_as_a_collective(self):
        self.run_program("paddle", "paddle_fleet.py", "--workers", WORKERS)
        self.assert_sums(self.workers(1 + 2 + 3))

    def test_dmlc(self):
        self.run_program("dmlc", "dmlc_nodes.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers((1 + 2 + 3) * (1 + 2)) | self.servers(SERVERS + WORKERS)
                         | {"scheduler-0": SERVERS + WORKERS})

    def test_poseidon(self):
        self.run_program("poseidon", "poseidon_flags.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers(1 + 2 + 3))

    def test_torch(self):
        self.run_program("torch", "torch_ranks.py", "--servers", SERVERS, "--workers", WORKERS)
        self.assert_sums(self.workers(15) | self.servers(15))


if __name__ == "__main__":
    main()
