#!/usr/bin/env python3
"""Spot machines that are taken away, and zones without capacity, on an EC2 whose instances really run
(labs/ec2_lab.py)."""

import json
import pathlib
import re
import signal
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ec2_lab  # noqa: E402

from cloud_test import POLICY, SECRET, TOKEN, Cloud  # noqa: E402
from launch_harness import SECONDS, until  # noqa: E402
from s3_server import User  # noqa: E402
from spot_training import SlowTraining  # noqa: E402


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudSpot(Cloud):
    """Machines that are taken away while a training runs on them."""

    def cloud_state(self, name):
        return json.loads((self.folder(name) / "state.json").read_text())

    def machines(self, name):
        return {each["name"]: each for each in self.cloud_state(name)["machines"]}

    def task(self, name):
        return next(each for each in self.state("clicks")["tasks"] if each["task"] == name)

    def train(self, name):
        """A training on a cluster of one server and two workers, which have both begun, and its launcher."""
        self.environment.update(self.lab.variables(self.lab.new_user(f"user-{name}", POLICY)))
        self.lab.metadata = {"iam/security-credentials": "reader", "iam/security-credentials/reader": {
            "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}}
        self.lab.iam.create_instance_profile(InstanceProfileName=f"reader-{name}")
        script = self.home / "setup.sh"
        script.write_text("#!/bin/sh\ntouch /var/lib/pscloud/was-set-up\n")
        self.up(name, 3, "--spot", "--on-demand-fallback", "--instance-profile", f"reader-{name}", "--setup", script)
        training = SlowTraining(self, {"ROLE": User(SECRET, TOKEN)}, ec2_lab.OUTSIDE)
        process = training.start(self, name, "clicks")
        addresses = {each["private_address"] for each in self.machines(name).values() if each["role"] == "worker"}
        until(lambda: addresses <= set(training.readers), lambda: self.story(process))
        return training, process

    def take_away(self, machine, task, process):
        """EC2 says that it wants a machine back, and takes it when its worker is drained."""
        self.lab.warn(machine["instance"], 100)
        until(lambda: f"{task} on {machine['name']} is drained" in self.story(process), lambda: self.story(process))
        self.lab.ec2.terminate_instances(InstanceIds=[machine["instance"]])

    def until_takes_part(self, task, machine, training, process):
        """The worker reads data on its new machine."""
        until(lambda: f"{task} begins once more, on {machine}" in self.story(process), lambda: self.story(process))
        new = self.machines("blue")[machine]
        before = len(training.readers)  # the address may have been that of a machine which is gone
        until(lambda: new["private_address"] in training.readers[before:], lambda: self.story(process))
        return new

    def test_a_worker_whose_machine_is_taken_away_is_drained_and_replaced(self):
        training, process = self.train("blue")
        asked = []

        def lose(_, action, form):  # the answers to the first order, which is done
            if action == "RunInstances":
                asked.append(form["ClientToken"])
            return "lost" if action == "RunInstances" and len(asked) <= 3 else None  # libcurl has a try of its own
        with self.faults(lose):
            self.take_away(self.machines("blue")["worker-1"], "worker-1", process)
            self.assertIn("ck/checkpoint-1", training.checkpoints())
            new = self.until_takes_part("worker-1", "worker-2", training, process)
        self.assertEqual((len(asked), len(set(asked))), (4, 1))
        self.assertIn("RunInstances: ", self.story(process))
        self.assertEqual(len(self.lab.instances()), 3)

        # For the other there is none; then there is one on demand.
        def refuse(_, action, form):
            spot = "InstanceMarketOptions.MarketType" in form
            return (500, "InsufficientInstanceCapacity") if action == "RunInstances" and (spot or none) else None
        none = True
        with self.faults(lambda *call: refuse(*call)):
            self.take_away(self.machines("blue")["worker-0"], "worker-0", process)
            until(lambda: re.search("c5.large to give in .* now; it is asked for again", self.story(process)),
                  lambda: self.story(process))
            none = False
            self.until_takes_part("worker-0", "worker-3", training, process)
        self.assertIn("a c5.large machine on demand is asked for in the place of worker-0", self.story(process))
        training.hurry.set()
        self.ends(process)
        self.assertNotIn("left:", self.story(process))
        training.check_result(self, process)
        for task, host in (("worker-0", "worker-3"), ("worker-1", "worker-2")):
            moved = self.task(task)
            self.assertEqual((moved["host"], moved["attempt"], moved["state"]), (host, 1, "done"))
        self.check_new_machine(new)
        self.cluster_down("blue")
        self.assert_empty()

    def test_a_launcher_that_is_killed_while_it_replaces_leaves_a_cluster_that_can_be_taken_down(self):
        _, process = self.train("red")

        def kill(_, action, form):  # the token of a replacement names the machine that is taken away
            if action == "RunInstances" and "-i-" in form["ClientToken"]:
                self.kill(process)  # and then what it asked for is done
        with self.faults(kill):
            self.lab.warn(self.machines("red")["worker-1"]["instance"], 100)
            until(lambda: process.poll() is not None, lambda: self.story(process))
        until(lambda: len(self.lab.instances()) == 4, "the machine that was asked for")
        self.pscloud("down")
        self.cluster_down("red")
        self.assert_empty()

    def check_new_machine(self, new):
        """It is of the cluster: tagged, spot, set up, shown, and where jobs go."""
        instance = next(each for each in self.lab.instances() if each["InstanceId"] == new["instance"])
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        self.assertEqual((tags["pscloud:id"], tags["pscloud:role"]),
                         (self.cloud_state("blue")["plan"]["id"], "worker"))
        self.assertTrue(new["spot"])
        self.lab.machine(new["instance"]).run(["test", "-e", "/var/lib/pscloud/was-set-up"])
        shown = json.loads(self.pscloud("cluster", "show", "blue", "--json"))
        self.assertEqual({each["name"]: each["state"] for each in shown["machines"]},
                         {"server-0": "running", "worker-2": "running", "worker-3": "running"})
        self.assertEqual({each["name"]: each["spot"] for each in shown["machines"]},
                         {"server-0": False, "worker-2": True, "worker-3": False})


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudZones(Cloud):
    """Zones that have not what is asked for."""

    def zones(self):
        plan = json.loads(self.pscloud("cluster", "up", "paper", "--nodes", 3, "--spot", "--instance", "c5.large",
                                       "--image", self.lab.image["ImageId"], "--user", "me", "--private", "--plan",
                                       "--json"))
        self.lab.calls.clear()
        self.assertGreater(len(plan["other_zones"]), 0)
        return [plan["zone"], *plan["other_zones"]]

    @staticmethod
    def no_spot_in(zones, answer=(500, "InsufficientInstanceCapacity")):
        def choose(_, action, form):
            spot = form.get("InstanceMarketOptions.MarketType") == "spot"
            return answer if action == "RunInstances" and spot and form["Placement.AvailabilityZone"] in zones else None
        return choose

    def test_what_one_zone_has_not_is_made_in_the_next(self):
        first, second, *_ = self.zones()
        with self.faults(self.no_spot_in([first])):
            story = self.up("moved", 3, "--spot", "--placement")
        self.assertIn(f"EC2 has not 2 c5.large spot machines to give in {first} now; it is made in {second} instead",
                      story)
        self.assertEqual({each["Placement"]["AvailabilityZone"] for each in self.lab.instances()}, {second})
        # What the first zone had is gone, and what is good for all was made once.
        self.assertEqual({kind: len(things) for kind, things in self.lab.left().items()
                          if kind not in ("volumes", "interfaces", "spot")},
                         {"instances": 3, "subnets": 1, "groups": 1, "keys": 1, "placement": 1})
        self.assertEqual(self.lab.calls.count("CreateSecurityGroup"), 1)
        self.assertEqual(json.loads((self.folder("moved") / "state.json").read_text())["plan"]["zone"], second)
        self.pscloud("run", "--on", "moved", "--workers", 2, "--", "true")
        self.cluster_down("moved")
        self.assert_empty()

    def test_when_no_zone_has_it_all_are_named_and_nothing_is_left(self):
        self.lab.boots = False
        zones = self.zones()
        with self.faults(self.no_spot_in(zones)):
            story = self.up("nowhere", 3, "--spot", code=3)
        self.assertIn(f"(tried: {', '.join(zones)})", story)
        self.assertIn("nothing was left", story)
        self.assert_empty()

    def test_a_zone_that_the_user_named_is_not_left_and_limits_are_no_matter_of_zones(self):
        self.lab.boots = False
        first, *_ = self.zones()
        with self.faults(self.no_spot_in([first])):
            story = self.up("fixed", 3, "--spot", "--zone", first, code=3)
        self.assertIn("try another --zone or --instance", story)
        with self.faults(self.no_spot_in([first], (400, "MaxSpotInstanceCountExceeded"))):
            story = self.up("limit", 3, "--spot", code=2)
        self.assertIn("may not run so many c5.large spot machines", story)
        self.assertIn("MaxSpotInstanceCountExceeded", story)
        self.assertEqual(self.lab.calls.count("CreateSubnet"), 2)
        self.assert_empty()

    def test_kill_at_any_call_between_two_zones_then_down_leaves_nothing(self):
        self.lab.boots = False
        first, *_ = self.zones()
        refuse = self.no_spot_in([first])
        with self.faults(refuse):
            process = self.start(*self.up_words("first", 3, "--spot"))
            until(lambda: "worker-1" in self.story(process), lambda: self.story(process))
            calls = list(self.lab.calls)
            process.send_signal(signal.SIGINT)
            self.ends(process, 130)
        self.assert_empty("after Ctrl-C")
        runs = [number for number, action in enumerate(calls) if action == "RunInstances"]
        for number in range(runs[1] + 1, runs[-1] + 2):
            with self.subTest(call=number, action=calls[number - 1]):
                self.lab.calls.clear()
                started = threading.Event()
                holder = []

                def kill(at, *call):
                    if at == number:
                        started.wait(SECONDS)
                        self.kill(holder[0])  # and then what it asked for is done
                    return refuse(at, *call)
                with self.faults(kill):
                    holder.append(self.start(*self.up_words("killed", 3, "--spot")))
                    started.set()
                    until(lambda: holder[0].poll() is not None, "the end")
                self.cluster_down("killed")
                self.assert_empty(f"{number} {calls[number - 1]}")


if __name__ == "__main__":
    unittest.main()
