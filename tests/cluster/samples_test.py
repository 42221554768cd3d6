#!/usr/bin/env python3
"""What a run measures: samples.csv and nodes.json in its folder, its cost, and that none of it slows a short run."""

import json
import time
import unittest

from launch_harness import PSCLOUD, LaunchTest, until

TRAIN = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 50 num_data_pass: 100000 }
"""
OF_ANY_TASK = {"cpu_percent", "memory_bytes"}
EXPECTED = {
    "scheduler-0": OF_ANY_TASK | {"heartbeat_age_ms"},
    "server-0": OF_ANY_TASK | {"heartbeat_age_ms", "requests", "keys", "push_bytes", "pull_bytes", "staleness",
                               "staleness_max"},
    "worker-0": OF_ANY_TASK | {"heartbeat_age_ms", "push_ms_p50", "push_ms_p99", "pull_ms_p50", "pull_ms_p99",
                               "push_bytes", "pull_bytes", "loss", "auc", "examples_per_s"},
}


class Samples(LaunchTest):
    def samples(self, name):
        """By task and name: the values in the order of time."""
        path = self.run_folder(name) / "samples.csv"
        found = {}
        last = 0
        for line in path.read_text().splitlines() if path.exists() else []:
            unix_ms, task, figure, value = line.split(",")
            self.assertGreaterEqual(int(unix_ms), last)
            last = int(unix_ms)
            found.setdefault(task, {}).setdefault(figure, []).append(float(value))
        return found

    def nodes(self, name):
        path = self.run_folder(name) / "nodes.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def test_a_training_run_tells_what_each_node_does(self):
        self.pscloud("data", "generate", "train", "--examples", 20000, "--keys", 10000)
        (self.work / "train.conf").write_text(TRAIN)
        (self.work / "here.json").write_text('{"target": "local", "cost_usd_per_hour": 3600}')
        process = self.start(PSCLOUD, "train", "train.conf", "--on", "here.json", "--name", "seen", "--servers", 1,
                             "--workers", 2)

        def all_there():
            self.assertIsNone(process.poll(), self.story(process))
            samples = self.samples("seen")
            return all(names <= samples.get(task, {}).keys() for task, names in EXPECTED.items())
        until(all_there, lambda: f"samples: {self.samples('seen')}\n{self.story(process)}")
        # Two workers that do not wait for each other.
        until(lambda: max(self.samples("seen")["server-0"]["staleness_max"]) > 0,
              lambda: f"stale pushes: {self.samples('seen')['server-0']}")
        until(lambda: self.nodes("seen").get("server-0", {}).get("hot_keys"), lambda: f"{self.nodes('seen')}")
        status = json.loads(self.pscloud("status", "seen", "--json"))
        self.assertEqual(status["cost_usd_per_hour"], 3600)
        self.assertGreater(status["cost_usd"], 0.5)
        self.pscloud("stop", "seen")
        self.ends(process, 130)
        samples, nodes = self.samples("seen"), self.nodes("seen")
        self.assertGreater(max(samples["worker-0"]["cpu_percent"]), 1)
        self.assertGreater(samples["server-0"]["memory_bytes"][-1], 1 << 20)
        for task in ("server-0", "worker-0"):
            for figure in ("push_bytes", "pull_bytes"):
                values = samples[task][figure]
                self.assertEqual(values, sorted(values), f"{figure} of {task} only grows")
        self.assertLess(samples["worker-0"]["push_ms_p50"][-1], 1000)
        self.assertEqual(set(nodes), {"scheduler-0", "server-0", "worker-0", "worker-1"})
        for mean, largest in zip(samples["server-0"]["staleness"], samples["server-0"]["staleness_max"]):
            self.assertLessEqual(mean, largest)
        self.assertEqual(nodes["worker-0"]["role"], "worker")
        self.assertIsInstance(nodes["worker-0"]["waiting_for"], list)
        key, count = nodes["server-0"]["hot_keys"][0]
        self.assertRegex(key, r"^\d+$")
        self.assertGreater(count, 0)
        self.assertNotIn("**metrics_data", self.story(process), "the table has it")
        state = self.state("seen")
        seconds = (state["ended_unix_ms"] - state["began_unix_ms"]) / 1000
        self.assertAlmostEqual(state["cost_usd"], seconds, delta=0.01)

    def test_a_task_of_any_framework_is_measured(self):
        """And a run without nodes of ours has no nodes.json."""
        busy = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass"
        self.pscloud("run", "--name", "busy", "--framework", "tensorflow", "--workers", 2, "--", "python3", "-c", busy)
        samples = self.samples("busy")
        for task in ("worker-0", "worker-1"):
            self.assertGreater(max(samples[task]["cpu_percent"]), 5)
            self.assertGreater(min(samples[task]["memory_bytes"]), 1 << 20)
        self.assertEqual(self.nodes("busy"), {})

    def test_bytes_over_tcp_are_those_that_were_sent(self):
        size = 5_000_000
        program = f"""
import os, socket, sys, time
host, port = os.environ["PSCLOUD_SERVER_ADDRESSES"].rsplit(":", 1)
if os.environ["PSCLOUD_ROLE"] == "server":
    other, _ = socket.create_server((host, int(port))).accept()
    while other.recv(1 << 20): pass
else:
    while True:
        try:
            other = socket.create_connection((host, int(port)))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    other.sendall(bytes({size}))
time.sleep(60)
"""
        process = self.start(PSCLOUD, "run", "--name", "talk", "--servers", 1, "--workers", 1, "--", "python3", "-c",
                             program)
        until(lambda: self.samples("talk").get("worker-0", {}).get("memory_bytes"), "a sample")
        if "sent_bytes" not in self.samples("talk")["worker-0"]:
            self.pscloud("stop", "talk")
            self.skipTest("this kernel does not tell the bytes of a socket")
        until(lambda: self.samples("talk")["worker-0"]["sent_bytes"][-1] >= size and
              self.samples("talk").get("server-0", {}).get("received_bytes", [0])[-1] >= size,
              lambda: f"{self.samples('talk')}")
        samples = self.samples("talk")
        self.pscloud("stop", "talk")
        self.ends(process, 130)
        self.assertLess(samples["worker-0"]["sent_bytes"][-1], size + 1000)
        self.assertLess(samples["server-0"]["received_bytes"][-1], size + 1000)
        self.assertLess(samples["worker-0"]["received_bytes"][-1], 1000)

    def test_a_short_run_is_not_held_up(self):
        began = time.monotonic()
        self.pscloud("run", "--name", "short", "--servers", 1, "--workers", 1, "--", "true")
        self.assertLess(time.monotonic() - began, 3)  # it takes a tenth of a second; sanitizers and full machines more
        self.assertFalse((self.run_folder("short") / "samples.csv").exists())


if __name__ == "__main__":
    unittest.main()
