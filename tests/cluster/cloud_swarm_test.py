#!/usr/bin/env python3
"""`pscloud cluster up --swarm` on an EC2 whose instances really run and have Docker engines of their own
(labs/ec2_lab.py): training from a private S3 by the machines' role, a cache that the next run finds, shells, and
nothing left at the end."""

import json
import os
import pathlib
import pty
import select
import shutil
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ec2_lab  # noqa: E402

from cloud_controller_test import SpotControlled  # noqa: E402
from cloud_test import SECRET, TOKEN, TRAIN, Cloud  # noqa: E402
from launch_harness import PSCLOUD, SECONDS, until  # noqa: E402
from s3_server import S3Server, User  # noqa: E402
from spot_training import SlowTraining  # noqa: E402

CACHE = "/var/lib/pscloud/cache"
MISSING = ec2_lab.missing("dockerd", "docker", "runc", "busybox")
SWARM_UP_SECONDS = 120


@unittest.skipIf(MISSING, MISSING)
class CloudSwarm(Cloud):
    @classmethod
    def setUpClass(cls):
        cls.lab = ec2_lab.Ec2Lab(engines=True)

    def setUp(self):
        super().setUp()
        self.lab.metadata = {"iam/security-credentials": "reader", "iam/security-credentials/reader": {
            "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}}

    def machine(self, name):
        state = json.loads((self.folder("green") / "state.json").read_text())
        instance = next(each["instance"] for each in state["machines"] if each["name"] == name)
        return self.lab.machine(instance)

    def docker(self, name, *words):
        return self.machine(name).run(["docker", *words], user=0).stdout.strip()

    def private_store(self):
        """Config, data and model in a store that checks signatures: ours by our keys, the machines' by their role."""
        store = S3Server(host=ec2_lab.OUTSIDE)
        self.addCleanup(store.stop)
        store.buckets = {"private": {}}
        store.users = {"MINE": User(SECRET), "ROLE": User(SECRET, TOKEN)}
        self.pscloud("data", "generate", "train", "--examples", 20000, "--keys", 5000, "--files", 2)
        for path in self.work.glob("train-*"):
            store.put("private", f"clicks/{path.name}", path.read_bytes())
        cached = TRAIN.replace("minibatch: 100", 'minibatch: 100 local_cache { format: BIN file: "cache/clicks_" }')
        store.put("private", "config/online.conf", cached.encode())
        return store

    def train(self, store, *more):
        store.asked.clear()
        mine = {"AWS_ACCESS_KEY_ID": "MINE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL_S3": store.url}
        said = self.pscloud("train", "s3://private/config/online.conf", "--servers", 1, "--workers", 1, "--on", "green",
                            "--env", "AWS_ENDPOINT_URL_S3", "--json", *more, **mine)
        return json.loads(next(line for line in said.splitlines() if line.startswith("{")))

    def shell(self, line, *words):
        """What a terminal shows of a shell that `words` open and that gets this line."""
        process, terminal = pty.fork()
        if process == 0:
            os.execve(PSCLOUD, [str(PSCLOUD), *words], self.environment)
        text, deadline = b"", time.monotonic() + SECONDS
        os.write(terminal, f"{line}; exit\n".encode())
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                text += os.read(terminal, 65536)
            except OSError:  # its end
                break
        os.close(terminal)
        os.waitpid(process, 0)
        return text.decode(errors="replace")

    def test_a_swarm_comes_up_trains_keeps_its_cache_and_leaves_nothing(self):
        self.lab.iam.create_instance_profile(InstanceProfileName="reader")
        started = time.monotonic()
        process = self.start(*self.up_words("green", 2, "--servers", 1, "--swarm", "--instance-profile", "reader"))
        self.ends(process, seconds=SWARM_UP_SECONDS)
        story = self.story(process)
        print(f"up in {time.monotonic() - started:.1f} s", flush=True)
        for word in ("a Docker Swarm of all machines: server-0 manages it", "server-0 manages the swarm",
                     "worker-0 has joined the swarm", "worker-0 is ready in the swarm"):
            self.assertIn(word, story)
        self.check_swarm(story)
        self.check_training()
        self.check_shells()
        self.assertIn("nothing is left", self.cluster_down("green"))
        self.assert_empty()

    def check_swarm(self, story):
        nodes = {}
        for node in self.docker("server-0", "node", "ls", "--quiet").split():
            described = json.loads(self.docker("server-0", "node", "inspect", node))[0]
            labels = described["Spec"]["Labels"]
            nodes[labels["pscloud.machine"]] = (labels["pscloud.role"], described["Spec"]["Role"],
                                                described["Status"]["Addr"], described["Status"]["State"])
        addresses = {name: self.machine(name).address for name in ("server-0", "worker-0")}
        self.assertEqual(nodes, {"server-0": ("server", "manager", addresses["server-0"], "ready"),
                                 "worker-0": ("worker", "worker", addresses["worker-0"], "ready")})
        self.assertIn("a Docker Swarm, which server-0 manages", self.pscloud("cluster", "show", "green"))
        self.assertEqual(json.loads(self.pscloud("cluster", "show", "green", "--json"))["swarm_manager"], "server-0")
        # Who has the token can join: it is nowhere but in the swarm.
        token = self.docker("server-0", "swarm", "join-token", "--quiet", "worker")
        self.assertTrue(token.startswith("SWMTKN-"), token)
        told = [story, *(path.read_text(errors="replace") for path in self.home.rglob("*") if path.is_file())]
        told += [path.read_text(errors="replace") for path in self.lab.shared.iterdir()]
        for name in addresses:
            told.append(self.machine(name).run(["cat", "/var/log/cloud-init-output.log", "/var/log/dockerd.log"],
                                               user=0).stdout)
        self.assertEqual([text for text in told if token in text], [])
        for path in self.folder("green").iterdir():
            if path.name != "id.pub":
                self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path.name)

    def check_training(self):
        store = self.private_store()
        started = time.monotonic()
        first = self.train(store, "--name", "first")
        print(f"first training in {time.monotonic() - started:.1f} s", flush=True)
        self.assertEqual(first["examples"], 20000)
        self.assertTrue([key for key in store.buckets["private"] if key.startswith("model/clicks")])
        tasks = {task["task"]: task["host"] for task in self.state("first")["tasks"]}
        self.assertEqual(tasks, {"scheduler-0": "server-0", "server-0": "server-0", "worker-0": "worker-0"})
        read_first = self.reads(store)
        images = {name: self.docker(name, "image", "ls", "--quiet", "pscloud") for name in ("server-0", "worker-0")}
        kept = self.cache()
        self.assertGreater(len(kept), 2)  # a file for each part of the data
        # The second run reads the cache, which is not made again, and only looks whether the data is still the same.
        started = time.monotonic()
        second = self.train(store, "--name", "second")
        print(f"second training in {time.monotonic() - started:.1f} s", flush=True)
        self.assertEqual(second["examples"], 20000)
        self.assertAlmostEqual(second["loss"], first["loss"], delta=0.01)
        self.assertEqual(self.cache(), kept)
        print(f"{read_first} and {self.reads(store)} reads of data", flush=True)
        self.assertLess(self.reads(store), read_first / 4)
        for name, image in images.items():
            self.assertTrue(image, name)
            self.assertEqual(self.docker(name, "image", "ls", "--quiet", "pscloud"), image)
            self.assert_no_container(name)
        for kind in ("service", "secret", "config"):
            self.assertEqual(self.docker("server-0", kind, "ls", "--quiet"), "", kind)

    def assert_no_container(self, name):
        # An engine takes a moment to remove the container of a task that is gone.
        until(lambda: not self.docker(name, "ps", "--all", "--quiet"), f"end of the containers on {name}")

    def reads(self, store):
        return sum(method == "GET" and "/clicks/train-" in path for method, path in store.asked)

    def cache(self):
        """The files of the cache on the worker's machine: names, sizes, times."""
        listed = self.machine("worker-0").run(["find", CACHE, "-type", "f", "-printf", "%p %s %T@\n"], user=0).stdout
        return sorted(listed.splitlines())

    def load_box(self, name):
        """An image with a shell on one machine; its id, so that no registry is asked for it."""
        root = self.home / "box"
        (root / "bin").mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for link in ("sh", "sleep"):
            (root / "bin" / link).symlink_to("busybox")
        subprocess.run(["tar", "-C", root, "-cf", self.lab.shared / "box.tar", "."], check=True)
        return self.docker(name, "import", "/shared/box.tar")

    def last_word(self, name):
        """When the machine was last told not to end itself."""
        return self.machine(name).run(["stat", "-c", "%.9Y", "/var/lib/pscloud/alive"]).stdout

    def check_shells(self):
        """On a machine of the cluster, and in a task of an image of others."""
        said = self.shell("hostname; echo user $(id -un)", "connect", "green", "0.worker")
        self.assertIn(self.machine("worker-0").name, said)
        self.assertIn(f"user {ec2_lab.USER}", said)
        heard = self.last_word("worker-0")
        process = self.start(PSCLOUD, "run", "--on", "green", "--name", "box", "--image", self.load_box("worker-0"),
                             "--workers", 1, "--stop-grace", 1, "--", "sleep", "600")
        until(lambda: self.run_folder("box").exists() and self.state("box")["state"] == "running",
              lambda: self.story(process))
        said = self.shell("echo rank $PSCLOUD_RANK of $PSCLOUD_RUN", "connect", "box", "worker-0")
        self.assertIn("rank 0 of box", said)
        # The machine has heard of it, and is measured.
        until(lambda: self.last_word("worker-0") != heard, "word to the machine")
        samples = self.run_folder("box") / "samples.csv"
        until(lambda: samples.exists() and ",worker-0,memory_bytes," in samples.read_text(), "sample of the task")
        self.pscloud("stop", "box")
        process.wait(SECONDS)
        self.assert_no_container("worker-0")

    def test_an_engine_that_does_not_answer_is_shown_with_the_log(self):
        script = self.home / "setup.sh"
        script.write_text("#!/bin/sh\necho one of many lines\nkill $(cat /run/docker.pid)\n")
        process = self.start(*self.up_words("red", 1, "--swarm", "--setup", script, "--timeout", 10))
        self.ends(process, code=3, seconds=SWARM_UP_SECONDS)
        story = self.story(process)
        self.assertIn("node-0: it is not in the swarm: ", story)
        self.assertIn("one of many lines", story)
        self.assertIn("nothing was left", story)
        self.assert_empty()


@unittest.skipIf(MISSING, MISSING)
class CloudSwarmSpot(Cloud):
    @classmethod
    def setUpClass(cls):
        cls.lab = ec2_lab.Ec2Lab(engines=True)

    def machines(self):
        return {each["name"]: each for each in json.loads((self.folder("pink") / "state.json").read_text())["machines"]}

    def test_a_worker_whose_machine_is_taken_away_goes_on_in_a_container_on_another(self):
        self.lab.metadata = {"iam/security-credentials": "reader", "iam/security-credentials/reader": {
            "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}}
        self.lab.iam.create_instance_profile(InstanceProfileName="reader-pink")
        process = self.start(*self.up_words("pink", 3, "--spot", "--swarm", "--instance-profile", "reader-pink"))
        self.ends(process, seconds=SWARM_UP_SECONDS)
        training = SlowTraining(self, {"ROLE": User(SECRET, TOKEN)}, ec2_lab.OUTSIDE)
        process = training.start(self, "pink", "clicks")
        before = self.machines()
        addresses = {each["private_address"] for each in before.values() if each["role"] == "worker"}
        until(lambda: addresses <= set(training.readers), lambda: self.story(process), SWARM_UP_SECONDS)

        training.pace_s = 3
        lost = before["worker-1"]
        self.lab.warn(lost["instance"], 100)
        until(lambda: "worker-1 on worker-1 is drained" in self.story(process), lambda: self.story(process))
        self.assertIn("ck/checkpoint-1", training.checkpoints())
        self.lab.ec2.terminate_instances(InstanceIds=[lost["instance"]])
        until(lambda: "worker-1 begins once more, on worker-2" in self.story(process), lambda: self.story(process),
              SWARM_UP_SECONDS)
        new = self.machines()["worker-2"]
        seen = len(training.readers)  # the address may have been that of the machine which is gone
        until(lambda: new["private_address"] in training.readers[seen:], lambda: self.story(process))
        nodes = self.lab.machine(before["server-0"]["instance"]).run(
            ["docker", "node", "ls", "--filter", "node.label=pscloud.machine=worker-2", "--quiet"], user=0).stdout
        self.assertEqual(len(nodes.split()), 1)
        training.hurry.set()
        self.ends(process)
        training.check_result(self, process)
        self.assertNotIn("left:", self.story(process))
        moved = next(each for each in self.state("clicks")["tasks"] if each["task"] == "worker-1")
        self.assertEqual((moved["host"], moved["attempt"], moved["state"]), ("worker-2", 1, "done"))
        self.cluster_down("pink")
        self.assert_empty()


@unittest.skipIf(MISSING, MISSING)
class CloudSwarmController(SpotControlled):
    @classmethod
    def setUpClass(cls):
        cls.lab = ec2_lab.Ec2Lab(engines=True)

    def docker(self, machine, *words):
        return self.lab.machine(machine["instance"]).run(["docker", *words], user=0).stdout.strip()

    def test_a_controller_trains_on_a_swarm_while_the_laptop_is_gone_and_leaves_nothing(self):
        self.give_reader("reader-teal")
        process = self.start(*self.up_words("teal", 2, "--servers", 1, "--swarm", "--instance-profile", "reader-teal",
                                            "--controller"))
        self.ends(process, seconds=SWARM_UP_SECONDS)
        self.assertIn("a Docker Swarm of all machines but the controller's: server-0 manages it", self.story(process))
        machines = self.machines_of("teal")
        self.assertEqual(sorted(machines), ["controller-0", "server-0", "worker-0"])
        self.assertEqual(len(self.docker(machines["server-0"], "node", "ls", "--quiet").split()), 2)
        self.assertEqual(self.docker(machines["controller-0"], "info", "--format", "{{.Swarm.LocalNodeState}}"),
                         "inactive")

        store, hold = self.make_store()
        self.detach("teal", "clicks", "train", "s3://private/config/online.conf", "--servers", 1, "--workers", 1,
                    "--env", "AWS_ENDPOINT_URL_S3", "--logs-to", "s3://private/logs", AWS_ENDPOINT_URL_S3=store.url,
                    seconds=SWARM_UP_SECONDS)
        lent = self.lab.federation.last
        store.users[lent["AccessKeyId"]] = User(lent["SecretAccessKey"], lent["SessionToken"], {"s3:GetObject"})
        until(hold.asked.is_set, "the first question of a worker", SWARM_UP_SECONDS)
        self.assertIn("running", self.pscloud("status", "clicks", "--controller", "clicks"))
        for name, count in (("server-0", 2), ("worker-0", 1)):  # with the scheduler
            self.assertEqual(len(self.docker(machines[name], "ps", "--quiet").split()), count, name)
        self.kill_laptop()
        self.forms.clear()
        hold.go.set()
        self.until_gone()
        self.assertTrue([key for key in store.buckets["private"] if key.startswith("model/clicks")])
        state = json.loads(store.get("private", "logs/clicks/state.json"))
        self.assertEqual((state["state"], state.get("left", [])), ("done", []))
        self.assertEqual({each["task"]: each["host"] for each in state["tasks"]},
                         {"scheduler-0": "server-0", "server-0": "server-0", "worker-0": "worker-0"})
        self.assert_controller_was_last(machines["controller-0"]["instance"])
        self.assertIn("nothing is left", self.cluster_down("teal"))
        self.assert_empty()

    def test_a_controller_replaces_machines_of_a_swarm(self):
        training = self.train("lilac", "--swarm", seconds=SWARM_UP_SECONDS)
        controller = self.machines_of("lilac")["controller-0"]["instance"]
        self.kill_laptop()
        self.take_away("lilac", training)
        self.forms.clear()
        self.check_end("lilac", training, controller)


if __name__ == "__main__":
    unittest.main(verbosity=2)
