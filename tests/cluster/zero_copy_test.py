#!/usr/bin/env python3
"""kill -9 of a worker or a server while the server reads the worker's memory: the other side says so in one line, goes
on or ends, has no wrong value and keeps no memory of the dead. PSCLOUD_KILLS says how many of each (default 24;
`make kills`: 1,000)."""

import os
import pathlib
import random
import unittest

from harness import BUILD, SECONDS, ClusterTest, until

LENT_WORKER = BUILD / "tests/cluster/lent_worker"
KILLS = int(os.environ.get("PSCLOUD_KILLS", "24"))
BEGUN = 4  # pushes that a worker may have begun beyond those it has told of
AT_ONCE = 8  # clusters whose servers are killed at a time: each needs five seconds to believe it


def start(cluster, what):
    return cluster.start(f"lent_worker {what}", [LENT_WORKER, what], cluster.environment("worker"))


def acked(worker):
    return sum(line.startswith("acked ") for line in list(worker.out))


def memfds(process):
    """What the process has of segments: open descriptors and mappings."""
    proc = pathlib.Path(f"/proc/{process.pid}")
    links = (os.readlink(fd) for fd in (proc / "fd").iterdir() if fd.is_symlink())
    return sum("memfd:" in link for link in links), (proc / "maps").read_text().count("memfd:")


class ZeroCopy(ClusterTest):
    def test_workers_that_are_killed_leave_whole_pushes_and_no_memory(self):
        cluster = self.cluster(servers=1, workers=KILLS + 1, insecure=True, flags=["--workers-min", 1])
        scheduler, server = cluster.scheduler(), cluster.server()
        observer = start(cluster, "look")
        until(lambda: observer.out, observer.story)
        low = high = 0

        def look(kills):
            answers = len(observer.out) + 1
            observer.process.stdin.write(f"{low} {high}\n")
            observer.process.stdin.flush()
            until(lambda: len(observer.out) >= answers, observer.story)
            self.assertEqual(observer.out[-1], "ok", f"after {kills} kills, {low} to {high} pushes")

        look(0)
        before = memfds(server)  # the observer's, and the table that it looks at
        rest = random.Random(1)
        for kill in range(KILLS):
            worker = start(cluster, "push")
            # It has begun, and is in the middle of something: when, chance decides.
            until(lambda: acked(worker) >= rest.randint(1, 4), worker.story)
            worker.process.kill()
            worker.process.wait(SECONDS)
            worker.read_on()
            low += acked(worker)
            high += acked(worker) + BEGUN
            self.assert_no_complaint(worker)
            worker.clean_up()
            cluster.processes.remove(worker)
            if kill % 8 == 0 or kill == KILLS - 1:
                look(kill + 1)
        until(lambda: len(scheduler.lines(r"worker \d+ died")) == KILLS, scheduler.story)
        # Only the observer is left.
        until(lambda: all(now <= then for now, then in zip(memfds(server), before)),
              lambda: f"{memfds(server)} of {before} memfds: {server.story()}")
        observer.finish()
        self.assert_ends_well(observer, scheduler, server)
        self.assert_no_complaint(server)

    def test_a_server_that_is_killed_is_named_by_the_worker_whose_memory_it_read(self):
        rest = random.Random(2)
        for first in range(0, KILLS, AT_ONCE):
            jobs = []
            for _ in range(min(AT_ONCE, KILLS - first)):
                cluster = self.cluster(servers=1, workers=1, insecure=True)
                jobs.append((cluster.scheduler(), cluster.server(), start(cluster, "push")))
            for scheduler, server, worker in jobs:
                until(lambda: acked(worker) >= rest.randint(1, 4), worker.story)
                server.kill()
            for scheduler, server, worker in jobs:
                self.assertEqual(worker.ends(), 1, worker.story())
                complaints = [line for line in worker.err if "lent_worker:" in line]
                self.assertEqual(len(complaints), 1, worker.story())
                self.assertRegex(complaints[0], "server 0")
                self.assertEqual(scheduler.ends(), 1, scheduler.story())
                self.assertEqual(len(scheduler.lines("W scheduler: server 0 died")), 1, scheduler.story())
            self.doCleanups()  # not hundreds of clusters' files at a time


if __name__ == "__main__":
    unittest.main()
