#!/usr/bin/env python3
"""What a job of real processes makes of nodes that die, hang or come back: 1 scheduler, 2 servers and 3 workers over
TLS."""

import json
import re
import time
import unittest

from harness import SECONDS, SLOW, ClusterTest, go_on, http_get, stdout_json, stop, until


def waits(status):
    nodes = json.loads(http_get(status, "/status")[1])["nodes"]
    return {node["name"]: node.get("waiting_for", "") for node in nodes}


class Workers(ClusterTest):
    def check_one_is_killed(self, consistency):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster, ["--consistency", consistency])
        workers[1].kill()
        scheduler.says("worker 1 died")
        for worker in (workers[0], workers[2]):
            worker.counts_on()
        alive = [workers[0], workers[2]]
        if consistency == "async":
            self.finish(*alive)
        else:
            self.finish_in_turn(*alive)
        self.assert_ends_well(scheduler, *servers)
        self.assertEqual(len(scheduler.lines("worker 1 died")), 1, scheduler.story())
        self.assert_no_complaint(*servers)
        self.assert_totals(alive, dead=workers[1], seen_by=alive if consistency == "async" else alive[-1:])

    def test_one_that_is_killed_is_named_and_the_rest_finish(self):
        self.check_one_is_killed("async")

    def test_one_that_is_killed_within_a_clock_does_not_hold_it_up(self):
        self.check_one_is_killed("bsp")

    def test_a_new_one_takes_the_place_of_one_that_was_killed(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        workers[1].kill()
        new = cluster.worker(3)  # at once: the death of the other is not certain yet
        self.assertEqual(new.event("joined")["rank"], 1, new.story())
        self.assertEqual(len(scheduler.lines("worker 1 died")), 1, scheduler.story())
        new.counts_on()
        alive = [workers[0], workers[2], new]
        self.finish(*alive)
        self.assert_ends_well(scheduler, *servers)
        self.assert_no_complaint(*servers)
        self.assert_totals(alive, dead=workers[1])

    def test_one_that_hangs_too_long_counts_as_dead_and_is_told_so(self):
        cluster = self.cluster(flags=["--death-timeout-ms", 3000 * SLOW, "--http", "127.0.0.1:0"])
        scheduler, servers, workers = self.running(cluster, ["--consistency", "ssp:1"])
        stop(workers[1])
        status = stdout_json(scheduler)["http_address"]
        # Meanwhile anybody can see who holds up whom.
        until(lambda: re.search("worker 1.* to finish clock", waits(status)["worker 0"]),
              lambda: f"its wait: {waits(status)}")
        scheduler.says("worker 1 died: it has been silent")
        for worker in (workers[0], workers[2]):
            worker.counts_on()  # though its clock stands still
        go_on(workers[1])
        self.assertEqual(workers[1].ends(), 3, workers[1].story())
        self.assertTrue(workers[1].lines("declared .*dead"), workers[1].story())
        self.finish_in_turn(workers[0], workers[2])
        self.assert_ends_well(scheduler, *servers)
        self.assertEqual(len(scheduler.lines("worker 1 died")), 1, scheduler.story())
        self.assert_totals([workers[0], workers[2]], dead=workers[1], seen_by=[workers[2]])

    def test_one_that_dies_ends_the_job_if_the_policy_says_so(self):
        cluster = self.cluster(flags=["--worker-death", "fail"])
        scheduler, servers, workers = self.running(cluster)
        workers[2].kill()
        for node in (scheduler, *servers, workers[0], workers[1]):
            self.assertEqual(node.ends(), 1, node.story())
            self.assertTrue(node.lines("worker 2 died"), node.story())


class Servers(ClusterTest):
    def test_one_that_hangs_for_three_seconds_is_waited_for(self):
        cluster = self.cluster(flags=["--http", "127.0.0.1:0"])
        scheduler, servers, workers = self.running(cluster)
        stop(servers[1])
        go_on_at = time.monotonic() + 3
        status = stdout_json(scheduler)["http_address"]
        # Meanwhile anybody can see who holds up whom.
        until(lambda: "server 1" in waits(status)["worker 0"], lambda: f"its wait: {waits(status)}")
        while time.monotonic() < go_on_at:
            time.sleep(0.05)
        go_on(servers[1])
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


class Scheduler(ClusterTest):
    def test_the_job_goes_on_with_a_new_one(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        scheduler.kill()
        for worker in workers:
            worker.counts_on()  # nobody needs it to count
        new = cluster.scheduler()
        new.says("takes up the job")
        for worker in workers:
            worker.counts_on()
        self.finish(*workers)
        self.assert_ends_well(new, *servers)
        self.assert_no_complaint(new, *servers)
        self.assert_totals(workers)

    def test_workers_at_a_barrier_wait_for_a_new_one(self):
        cluster = self.cluster()
        scheduler, servers, workers = self.running(cluster)
        scheduler.kill()
        workers[0].finish()
        for worker in workers[1:]:
            worker.counts_on()
            worker.finish()
        new = cluster.scheduler()
        self.finish(*workers)
        self.assert_ends_well(new, *servers)
        self.assert_no_complaint(new, *servers)
        self.assert_totals(workers)


if __name__ == "__main__":
    unittest.main()
