#!/usr/bin/env python3
"""How a job of real processes begins, runs and ends: 1 scheduler, 2 servers and 3 workers over TLS."""

import json
import re
import unittest

from harness import ClusterTest, http_get, reserve_port, stdout_json

# The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'\w+="([^"\\\n]|\\.)*"'
METRIC = re.compile(rf"{NAME}(\{{{LABEL}(,{LABEL})*\}})? ([-+]?[0-9.]+(e[-+]?[0-9]+)?|NaN|[-+]Inf)")
METRIC_COMMENT = re.compile(rf"# (HELP {NAME} .*|TYPE {NAME} (counter|gauge|histogram))")


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

    def test_who_comes_while_others_are_missing_says_who(self):
        cluster = self.cluster()
        scheduler = cluster.scheduler()
        servers = [cluster.server()]
        workers = [cluster.worker(0)]
        for early in (*servers, *workers):
            early.says("waits for 1 of 2 servers and 2 of 3 workers")
        servers.append(cluster.server())
        workers += [cluster.worker(tag) for tag in (1, 2)]
        for worker in workers:
            worker.counts_on()
        self.finish(*workers)
        self.assert_ends_well(scheduler, *servers)
        self.assert_totals(workers)

    def test_who_is_missing_after_the_time_to_join_is_named(self):
        cluster = self.cluster(flags=["--join-timeout-ms", 1500])
        scheduler = cluster.scheduler()
        nodes = [scheduler, cluster.server(), *(cluster.worker(tag) for tag in range(3))]
        for node in nodes:
            self.assertEqual(node.ends(), 3, node.story())
            self.assertTrue(node.lines("not everybody came within .*: 1 of 2 servers missing"), node.story())

    def test_a_worker_begins_without_the_others_if_the_policy_says_so(self):
        cluster = self.cluster(flags=["--workers-min", 1])
        scheduler = cluster.scheduler()
        servers = [cluster.server() for _ in range(2)]
        first = cluster.worker(0)
        first.counts_on()
        late = cluster.worker(1)
        self.assertEqual(late.event("joined")["rank"], 1, late.story())
        late.counts_on()
        self.finish(first, late)
        self.assert_ends_well(scheduler, *servers)
        self.assert_no_complaint(scheduler, *servers)
        self.assert_totals([first, late])

    def test_a_worker_says_where_its_status_is(self):
        cluster = self.cluster(workers=1)
        scheduler, servers, workers = self.running(cluster)
        status = re.search("http://([^/]+)/status", workers[0].says("its status is at"))[1]
        self.assertEqual(json.loads(http_get(status, "/status")[1])["role"], "worker")
        self.finish(*workers)
        self.assert_ends_well(scheduler, *servers)

    def test_each_node_tells_its_health_status_and_metrics(self):
        cluster = self.cluster(workers=1)
        scheduler = cluster.scheduler("--http", "127.0.0.1:0")
        servers = [cluster.server("--http", "127.0.0.1:0") for _ in range(2)]
        port = reserve_port()  # a worker does not tell its own
        self.addCleanup(port.close)
        worker_http = f"127.0.0.1:{port.getsockname()[1]}"
        worker = cluster.worker(0, http=worker_http)
        worker.counts_on()
        addresses = {"scheduler": stdout_json(scheduler)["http_address"], "worker": worker_http,
                     "server": stdout_json(servers[0])["http_address"]}
        for role, address in addresses.items():
            self.assertEqual(http_get(address, "/health"), (200, "ok\n"))
            status, text = http_get(address, "/status")
            self.assertEqual((status, json.loads(text)["role"]), (200, role))
            status, text = http_get(address, "/metrics")
            self.assertEqual(status, 200)
            for line in text.splitlines():
                self.assertTrue(METRIC.fullmatch(line) or METRIC_COMMENT.fullmatch(line), line)
            self.assertEqual(http_get(address, "/other")[0], 404)
        job = json.loads(http_get(addresses["scheduler"], "/status")[1])
        self.assertEqual(sorted(node["name"] for node in job["nodes"]), ["server 0", "server 1", "worker 0"])
        self.assertEqual((job["phase"], {node["state"] for node in job["nodes"]}), ("running", {"live"}))
        self.finish(worker)
        self.assert_ends_well(scheduler, *servers)


class WrongUse(ClusterTest):
    def test_the_caller_is_told_what_to_do_and_the_server_goes_on(self):
        cluster = self.cluster(workers=1)
        scheduler = cluster.scheduler()
        servers = [cluster.server("--memory-max", "64M") for _ in range(2)]
        worker = cluster.worker(0, "--wrong", "all")
        worker.counts_on()
        told = {event["what"]: event for event in worker.events("wrong")}
        for what, text in {
                "unknown_table": "no table 'nowhere'; there are: counter",
                "table_not_opened": "no table 'never made': create_table or open_table gives it one",
                "unsorted_keys": "position 1 has 1 after 2: sort them",
                "repeated_keys": "position 1 has 1 after 1: sort them and add up",
                "width": "2 rows of table 'counter', which is 1 wide, are 2 floats, not 3",
                "nan": "table counter: the push to key 1 has nan in column 0; nothing was changed",
                "another_spec": "exists with another spec; open it, or give the new one another name",
                "dense_too_large": "raise bytes_max of the table or memory_max of the servers, or use more servers",
                "sparse_too_large": "use more servers or admit fewer keys; nothing was changed",
        }.items():
            self.assertTrue(told[what]["refused"], what)
            self.assertIn(text, told[what]["text"])
        self.finish(worker)
        self.assert_ends_well(scheduler, *servers)
        self.assert_no_complaint(*servers)
        self.assert_totals([worker])  # nothing of what was refused has counted


if __name__ == "__main__":
    unittest.main()
