#!/usr/bin/env python3
"""How a job of real processes begins, runs and ends: 1 scheduler, 2 servers and 3 workers over TLS."""

import unittest

from harness import ClusterTest


class Run(ClusterTest):
    def test_nodes_start_in_any_order_and_say_whom_they_wait_for(self):
        cluster = self.cluster()
        workers = [cluster.worker(tag) for tag in range(3)]
        servers = [cluster.server() for _ in range(2)]
        for early in (*workers, *servers):
            early.says(f"waits for the scheduler at {cluster.address} .*refused")
        scheduler = cluster.scheduler()
        for worker in workers:
            worker.counts_on()
        self.finish(*workers)
        self.assert_ends_well(scheduler, *servers)
        self.assert_no_complaint(scheduler, *servers, *workers)
        self.assert_totals(workers)


if __name__ == "__main__":
    unittest.main()
