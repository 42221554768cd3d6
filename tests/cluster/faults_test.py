#!/usr/bin/env python3
"""What a job of real processes makes of nodes that die, hang or come back: 1 scheduler, 2 servers and 3 workers over
TLS."""

import time
import unittest

from harness import SECONDS, ClusterTest, go_on, stop


class Workers(ClusterTest):
    def test_one_that_is_killed_is_named_and_the_rest_finish(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        workers[1].kill()
        scheduler.says("worker 1 died")
        for worker in (workers[0], workers[2]):
            worker.counts_on()
        self.finish(workers[0], workers[2])
        self.assert_ends_well(scheduler, *servers)
        self.assertEqual(len(scheduler.lines("worker 1 died")), 1, scheduler.story())
        self.assert_no_complaint(*servers)
        self.assert_totals([workers[0], workers[2]], dead=workers[1])


class Servers(ClusterTest):
    def test_one_that_hangs_for_three_seconds_is_waited_for(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        stop(servers[0])
        go_on_at = time.monotonic() + 3
        while time.monotonic() < go_on_at:
            time.sleep(0.05)
        go_on(servers[0])
        for worker in workers:
            worker.counts_on()
        self.finish(*workers)
        self.assert_ends_well(scheduler, *servers)
        self.assert_no_complaint(scheduler, *servers)
        self.assert_totals(workers)

    def test_one_that_is_killed_ends_the_job(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        servers[1].kill()
        for node in (scheduler, servers[0], *workers):
            self.assertEqual(node.ends(SECONDS / 2), 1, node.story())
            self.assertTrue(node.lines("server 1 died .*its parameters are lost"), node.story())


if __name__ == "__main__":
    unittest.main()
