#!/usr/bin/env python3
"""Random, damaged and hostile frames to open ports do no harm: nobody crashes, memory does not grow, work goes on."""

import random
import re
import socket
import unittest

from harness import BUILD, SANITIZERS, SECONDS, ClusterTest, stdout_json

HOSTILE_PEER = BUILD / "tests/cluster/hostile_peer"
FRAMES = 10000
# It takes so many to see something grow; sanitizers, which are slow, keep what was freed anyway.
MANY_FRAMES = FRAMES if SANITIZERS else 50 * FRAMES
GROWTH_MAX = 20 << 20
HANDSHAKES_BYTES = 64 << 20  # of as many handshakes as may be under way at a time, if chance lets them meet


def memory(process):
    """Bytes that it has in memory now."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) << 10


class Hostile(ClusterTest):
    def begin(self, insecure):
        self.job = self.cluster(workers=4, insecure=insecure, flags=["--workers-min", 1])
        self.scheduler = self.job.scheduler()
        self.servers = [self.job.server("--memory-max", "4M") for _ in range(2)]
        self.nodes = [self.scheduler, *self.servers]
        self.addresses = [stdout_json(node)["address"] for node in self.nodes]

    def hostile(self, mode, address, seed, frames):
        peer = self.job.start("hostile_peer", [HOSTILE_PEER, mode, address, seed, frames], None)
        self.assertEqual(peer.ends(3 * SECONDS), 0, peer.story())
        self.assertGreaterEqual(int(peer.out[0]), frames)

    def assert_unharmed(self, before, growth_max=GROWTH_MAX):
        for node, bytes_before in zip(self.nodes, before):
            self.assertTrue(node.running(), node.story())
            if not SANITIZERS:  # which keep what was freed
                self.assertLess(memory(node) - bytes_before, growth_max, node.story())

    def assert_works(self, *workers):
        new = self.job.worker(2)
        new.counts_on()
        self.finish(*workers, new)
        self.assert_ends_well(*self.nodes)
        self.assert_totals([*workers, new])

    def test_frames_of_strangers(self):
        self.begin(insecure=True)
        worker = self.job.worker(0)
        worker.counts_on()
        for address in self.addresses:
            self.hostile("stranger", address, 1, 500)  # what comes once, like pools, is no growth
        before = [memory(node) for node in self.nodes]
        for seed, address in enumerate(self.addresses):
            self.hostile("stranger", address, seed, FRAMES)
        self.assert_unharmed(before)
        worker.counts_on()
        self.assert_works(worker)

    def test_requests_of_a_hostile_worker(self):
        self.begin(insecure=True)
        worker = self.job.worker(0)
        worker.counts_on()
        before = [memory(node) for node in self.nodes]
        self.hostile("member", self.job.address, 1, MANY_FRAMES)
        self.assert_unharmed(before)
        worker.counts_on()
        self.assertFalse(self.scheduler.lines("server . died"))

    def test_one_that_does_not_read_refusals(self):
        self.begin(insecure=True)
        worker = self.job.worker(0)
        worker.counts_on()
        before = [memory(node) for node in self.nodes]
        self.hostile("deaf", self.job.address, 1, MANY_FRAMES)
        self.assert_unharmed(before)
        self.assert_works(worker)

    def test_a_worker_that_ends_the_last_clock_there_is(self):
        self.begin(insecure=True)
        self.hostile("last_clock", self.job.address, 1, 2)
        self.assert_works()

    def test_random_bytes_to_tls(self):
        self.begin(insecure=False)
        worker = self.job.worker(0)
        worker.counts_on()
        before = [memory(node) for node in self.nodes]
        chance = random.Random(1)
        for i in range(6000):  # they would take more than twice as much if nothing was given back
            host, port = self.addresses[i % 3].split(":")
            with socket.create_connection((host, int(port)), timeout=SECONDS) as stranger:
                # Half of them look like the beginning of TLS.
                opening = b"\x16\x03\x01" if chance.random() < 0.5 else b""
                try:
                    stranger.sendall(opening + chance.randbytes(chance.randrange(1, 600)))
                except ConnectionError:
                    pass
        self.assert_unharmed(before, HANDSHAKES_BYTES)
        worker.counts_on()
        self.assert_works(worker)


if __name__ == "__main__":
    unittest.main()
