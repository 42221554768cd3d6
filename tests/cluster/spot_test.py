#!/usr/bin/env python3
"""What a notice of EC2 does to a run: the hosts are this machine under several names, and its metadata service is ours.
On machines of their own: cloud_spot_test.py."""

import json
import time
import unittest

from launch_harness import PSCLOUD, LaunchTest, until
from metadata_server import MetadataServer
from s3_server import User
from spot_training import SlowTraining

SECRET = "wJalrXUtnFEMI+bPxRfiCYzEXAMPLE/KEY"


class Spot(LaunchTest):
    def setUp(self):
        super().setUp()
        self.known = {}
        metadata = MetadataServer(lambda: self.known).start()
        self.addCleanup(metadata.stop)
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("AWS_")}
        self.environment.update(AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url, no_proxy="*",
                                XDG_CACHE_HOME=str(self.home / "cache"))

    def warn(self, seconds):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        self.known["spot/instance-action"] = {"action": "terminate", "time": at}

    def cluster(self, *workers):
        """Of these the second is a spot machine."""
        here = {"address": "localhost", "interface": "127.0.0.1"}
        hosts = [{**here, "name": "s", "roles": ["scheduler", "server"]}]
        hosts += [{**here, "name": name, "roles": ["worker"], "spot": number == 1}
                  for number, name in enumerate(workers)]
        (self.work / "cluster.json").write_text(json.dumps({"hosts": hosts}))

    def task(self, run, name):
        return next(each for each in self.state(run)["tasks"] if each["task"] == name)

    def train(self, run):
        training = SlowTraining(self, {"MINE": User(SECRET)})
        process = training.start(self, "cluster.json", run, "--env", "AWS_ACCESS_KEY_ID", "--env",
                                 "AWS_SECRET_ACCESS_KEY", AWS_ACCESS_KEY_ID="MINE", AWS_SECRET_ACCESS_KEY=SECRET)
        until(lambda: len(training.readers) > 4, lambda: self.story(process))
        self.warn(100)
        until(lambda: "worker-1 on w1 is drained" in self.story(process), lambda: self.story(process))
        self.assertRegex(self.story(process), r"worker-1 on w1: its machine is taken away in \d+ s; it is drained")
        self.assertIn("ck/checkpoint-1", training.checkpoints())
        return training, process

    def assert_ended_well(self, run, process):
        self.ends(process)
        self.assertEqual(self.state(run).get("left", []), [], self.story(process))
        self.assertFalse((self.run_folder(run) / "open").exists())

    def test_a_worker_is_drained_after_a_checkpoint_and_goes_to_an_idle_machine(self):
        self.cluster("w0", "w1", "w2")
        training, process = self.train("moved")
        until(lambda: self.task("moved", "worker-1")["state"] == "running", lambda: self.story(process))
        training.hurry.set()
        self.assert_ended_well("moved", process)
        training.check_result(self, process)
        moved = self.task("moved", "worker-1")
        self.assertEqual((moved["host"], moved["attempt"], moved["state"]), ("w2", 1, "done"))
        self.assertIn("its machine is taken away", self.log("moved", "worker-1"))

    def test_without_another_machine_the_rest_go_on(self):
        self.cluster("w0", "w1")
        training, process = self.train("fewer")
        training.hurry.set()
        self.assert_ended_well("fewer", process)
        self.assertIn("there is no machine for worker-1: the cluster has none that is idle; the other workers go on",
                      self.story(process))
        training.check_result(self, process)
        self.assertEqual(self.task("fewer", "worker-1")["state"], "drained")

    def test_a_program_that_nobody_can_join_is_only_told(self):
        self.cluster("w0", "w1", "w2")
        script = 'echo up; while [ ! -e go ]; do sleep 0.05; done; [ -z "$PSCLOUD_NOTICE" ] || cat "$PSCLOUD_NOTICE"'
        process = self.start(PSCLOUD, "run", "--on", "cluster.json", "--name", "told", "--workers", 2, "--", "sh", "-c",
                             script)
        self.until_says("told", "worker-1", "up", process)
        self.warn(50)
        until(lambda: "the job cannot do without it" in self.story(process), lambda: self.story(process))
        (self.work / "go").touch()
        self.assert_ended_well("told", process)
        self.assertRegex(self.log("told", "worker-1"), r"up\n\d{10}\n")
        self.assertEqual(self.log("told", "worker-0"), "up\n")


if __name__ == "__main__":
    unittest.main()
