#!/usr/bin/env python3
"""A cluster of EC2 with a controller (labs/ec2_lab.py): it owns a run while the laptop is gone, takes everything down
at the end, well or not, and last its own machine. Nothing that could do more comes to it."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ec2_lab  # noqa: E402

import cloud_test  # noqa: E402
from cloud_test import POLICY, SECRET, TOKEN  # noqa: E402
from console_harness import Api  # noqa: E402
from controlled_cloud import Controlled, RefuseOnce  # noqa: E402
from launch_harness import PSCLOUD, SECONDS, until  # noqa: E402
from s3_server import User  # noqa: E402
from spot_training import SlowTraining  # noqa: E402

ROLE_POLICY = json.loads(
    (pathlib.Path(__file__).resolve().parents[2] / "docs" / "cloud-controller-policy.json").read_text())
STAY = "echo up; while :; do sleep 0.05; done"


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudController(Controlled):
    def test_the_laptop_dies_and_the_run_ends_well_and_leaves_nothing(self):
        user = self.lab.new_user("least", POLICY)  # no more than the published policy
        self.environment.update(self.lab.variables(user))
        self.give_reader("reader")
        story = self.up("blue", 2, "--servers", 1, "--instance-profile", "reader", "--controller")
        self.assertIn("controller-0 is ready", story)
        machines = self.machines_of("blue")
        self.assertEqual(sorted(machines), ["controller-0", "server-0", "worker-0"])
        controller = self.lab.machine(machines["controller-0"]["instance"])
        self.check_job_of_the_laptop(machines, user)
        hosts = {self.log("all", f"worker-{n}").strip() for n in range(3)}
        self.assertEqual(hosts, {machines["worker-0"]["instance"]})

        store, hold = self.make_store()
        self.detach("blue", "clicks", "train", "s3://private/config/online.conf", "--servers", 1, "--workers", 1,
                    "--env", "AWS_ENDPOINT_URL_S3", "--logs-to", "s3://private/logs", AWS_ENDPOINT_URL_S3=store.url)
        lent = self.lab.federation.last
        store.users[lent["AccessKeyId"]] = User(lent["SecretAccessKey"], lent["SessionToken"], {"s3:GetObject"})
        until(hold.asked.is_set, "the first question of a worker")
        self.check_it_shows("clicks", machines)
        self.check_secrets(controller, machines, user)
        self.check_lent_keys(machines)
        self.assertIn("its controller has a run", self.refused("run", "--on", "blue", "--workers", 1, "--", "true"))
        listed = json.loads(self.pscloud("cluster", "ls", "--json"))["clusters"]
        self.assertEqual([(each["name"], each["state"]) for each in listed], [("blue", "given")])

        self.kill_laptop()
        self.forms.clear()
        refusal = RefuseOnce("logs/clicks/plan.json")
        store.faults.append(refusal)
        hold.go.set()
        self.until_gone()
        model = [key for key in store.buckets["private"] if key.startswith("model/clicks")]
        self.assertTrue(model)
        self.assertGreater(sum(len(store.get("private", key)) for key in model), 100)
        self.assertEqual(json.loads(store.get("private", "logs/clicks/state.json"))["state"], "done")
        self.assertTrue(store.get("private", "logs/clicks/logs/server-0.log"))
        self.assertEqual(refusal.refused, 2)  # it was tried again, after the others
        self.assertTrue(store.get("private", "logs/clicks/plan.json"))
        story = store.get("private", "logs/clicks/launcher.log").decode()
        self.assertIn("the cluster blue is taken down", story)
        self.assertIn("machines: all gone", story)
        self.assert_controller_was_last(machines["controller-0"]["instance"])
        self.assertIn("nothing is left", self.cluster_down("blue"))
        self.assert_empty()

    def refused(self, *words):
        process = self.start(PSCLOUD, *words)
        self.ends(process, 2)
        return self.story(process)

    def check_it_shows(self, run, machines):
        """Through ssh only: by our client, and over plain HTTP for a browser."""
        there = ("--controller", run)
        self.assertIn("running", self.pscloud("status", run, *there))
        until(lambda: "server" in self.pscloud("logs", run, *there), "the first lines")
        address = machines["controller-0"]["private_address"]
        access = json.loads((self.home / "controllers" / f"{run}.json").read_text())
        port = int(access["url"].rpartition(":")[2])
        listeners = self.listeners(machines["controller-0"])
        self.assertIn(port, listeners)
        ports = cloud_test.CloudJobs.open_ports(self, ec2_lab.OUTSIDE, address, {*listeners, *range(1, 1025)})
        self.assertEqual(ports, [22])
        # A server that workers are connected to listens at more than that, for them alone.
        self.assertGreater(len(self.listeners(machines["server-0"])), 1)
        for source, wanted in ((ec2_lab.OUTSIDE, [22]), (ec2_lab.STRANGER, [])):
            found = cloud_test.CloudJobs.all_open_ports(self, source, machines["server-0"]["private_address"])
            self.assertEqual(found, wanted, f"from {source}")
        console = self.start(PSCLOUD, "console", *there)
        url = until(lambda: console.out.read_text().strip(), lambda: self.story(console))
        api = Api(url.partition("/#")[0], url.partition("token=")[2])
        self.assertTrue(api.json("/api/about")["controller"])
        self.assertEqual(api.json(f"/api/runs/{run}")["state"], "running")
        self.assertEqual(api.ask("GET", "/api/runs", token="0" * 64)[0], 401)
        status, _, log = api.ask("GET", f"/api/runs/{run}/logs/server-0")
        self.assertIn(status, (200, 206))
        self.assertTrue(log)

    def listeners(self, machine):
        """The ports of TCP that something listens at there, as its kernel tells; 0A: it listens."""
        first = self.lab.machine(machine["instance"]).first_process()
        table = pathlib.Path(f"/proc/{first}/net/tcp").read_text().splitlines()[1:]
        return {int(line.split()[1].rpartition(":")[2], 16) for line in table if line.split()[3] == "0A"}

    def private_key(self):
        return (self.folder("blue") / "id").read_text().splitlines()[2]

    def check_job_of_the_laptop(self, machines, user):
        go = "/tmp/all-go"
        job = self.start(PSCLOUD, "run", "--on", "blue", "--name", "all", "--workers", 3, "--secret", "HIDDEN", "--",
                         "sh", "-c", f"uname -n; while ! [ -e {go} ]; do sleep 0.05; done", HIDDEN="hidden-value")
        for n in range(3):
            self.until_says("all", f"worker-{n}", "\n", job)
        self.check_processes(machines, [user["SecretAccessKey"], self.private_key(), "hidden-value"])
        self.lab.machine(machines["worker-0"]["instance"]).run(["touch", go])
        self.ends(job)

    def check_processes(self, machines, secrets):
        """No list of processes has them: on no machine, nor, of command lines, on the laptop, whose user has them."""
        lists = {name: [command + environment for command, environment in
                        self.processes_on(self.lab.machine(each["instance"])).values()]
                 for name, each in machines.items()}
        lists["laptop"] = [command for command, _ in self.processes_of_laptop().values()]
        for name, texts in lists.items():
            self.assertTrue(texts, name)
            for text in texts:
                for secret in secrets:
                    self.assertNotIn(secret.encode(), text, name)

    def check_secrets(self, controller, machines, user):
        """Neither the account's keys nor the cluster's private one are on the controller, and lent ones in no file."""
        lent = self.lab.federation.last["SecretAccessKey"]
        secrets = [user["SecretAccessKey"], self.private_key(), lent]
        self.check_processes(machines, secrets)
        root = pathlib.Path(f"/proc/{controller.first_process()}/root")
        for top in (root / ec2_lab.HOME, root / "tmp", root / "run"):
            for path in top.rglob("*"):
                if path.is_file() and path.stat().st_size < 1 << 20:
                    text = path.read_bytes()
                    for secret in secrets:
                        self.assertNotIn(secret.encode(), text, path)

    def check_lent_keys(self, machines):
        """They end what is the cluster's, and nothing else."""
        lent = self.lab.federation.last
        self.lab.boots = False  # it need not run
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "pscloud:id", "Value": "other"}]}]
        other = self.lab.ec2.run_instances(ImageId=self.lab.image["ImageId"], MinCount=1, MaxCount=1,
                                           TagSpecifications=tags)["Instances"][0]
        refused = self.start(PSCLOUD, "cluster", "down", "--id", "other", "--timeout", 1, "--settle", 0,
                             AWS_ACCESS_KEY_ID=lent["AccessKeyId"], AWS_SECRET_ACCESS_KEY=lent["SecretAccessKey"],
                             AWS_SESSION_TOKEN=lent["SessionToken"])
        self.ends(refused, 1)
        self.assertIn("lack the permission ec2:TerminateInstances", self.story(refused))
        self.assertIn("`pscloud cluster down --id other` tries again", self.story(refused))
        self.assertIn(other["InstanceId"], [each["InstanceId"] for each in self.lab.instances()])
        self.lab.ec2.terminate_instances(InstanceIds=[other["InstanceId"]])
        for interface in other["NetworkInterfaces"]:
            self.lab.ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        self.lab.boots = True

    def test_a_job_that_fails_is_taken_down_too_though_its_controller_was_killed(self):
        """By its launcher, with the role of the controller's machine."""
        saves = {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": "*"}
        role = self.give_role("pilot", {**ROLE_POLICY, "Statement": [*ROLE_POLICY["Statement"], saves]})
        self.up("red", 1, "--controller", "--controller-profile", "pilot", "--placement")
        controller = self.machines_of("red")["controller-0"]["instance"]
        wrong = self.start(PSCLOUD, "run", "--on", "red", "--detach", "--workers", 1, "--", "./no_such_program")
        wrong.wait(60)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("no_such_program", self.story(wrong))
        # Who is there to be told can try again, and one run may come after another.
        self.pscloud("run", "--on", "red", "--detach", "--keep-cluster", "--name", "kept", "--linger", 0,
                     "--workers", 1, "--", "sh", "-c", STAY)
        self.assertEqual(self.pscloud("stop", "kept", "--controller", "kept"), "kept interrupted\n")
        until(lambda: not self.controllers_on(self.lab.machine(controller)), "the end of the controller")
        self.assertEqual(len(self.lab.instances()), 2)
        store, _ = self.make_store()
        store.users[role["AccessKeyId"]] = User(role["SecretAccessKey"], role["SessionToken"])
        self.detach("red", "fails", "run", "--logs-to", "s3://private/logs", "--workers", 1, "--", "sh", "-c",
                    "while ! [ -e /tmp/go ]; do sleep 0.05; done; echo over; exit 7", AWS_ENDPOINT_URL_S3=store.url)
        self.assertNotIn("GetFederationToken", self.lab.calls)
        first, = self.first_controllers(self.lab.machine(controller))
        os.kill(first, signal.SIGKILL)
        until(lambda: len(self.controllers_on(self.lab.machine(controller))) == 1, "its launcher alone")
        self.lab.machine(self.machines_of("red")["node-0"]["instance"]).run(["touch", "/tmp/go"])
        self.until_gone()
        self.assertEqual(json.loads(store.get("private", "logs/fails/state.json"))["state"], "failed")
        self.assertEqual(store.get("private", "logs/fails/logs/worker-0.log"), b"over\n")
        self.assertIn("machines: all gone", store.get("private", "logs/fails/launcher.log").decode())
        self.assert_controller_was_last(controller)
        self.cluster_down("red")
        self.assert_empty()

    def test_ctrl_c_at_the_question_makes_nothing(self):
        terminal, other = pty.openpty()
        self.addCleanup(os.close, terminal)
        said = self.home / "asked.err"
        words = [str(word) for word in self.up_words("paper", 1, "--controller") if word != "-y"]
        with open(said, "wb") as err:
            asked = subprocess.Popen(words, stdin=other, stderr=err, env=self.environment)
        os.close(other)
        self.addCleanup(asked.wait)
        self.addCleanup(asked.kill)
        until(lambda: "make this?" in said.read_text(), said.read_text)
        asked.send_signal(signal.SIGINT)
        self.assertEqual(asked.wait(SECONDS), 130)
        self.assertIn("nothing was made", said.read_text())
        self.assert_empty()

    def test_a_controller_that_ec2_does_not_end_powers_itself_off(self):
        self.up("grey", 1, "--controller")
        controller = self.machines_of("grey")["controller-0"]["instance"]
        # Without keys for it nothing begins, and nothing ends.
        for fault, code in (((403, "AccessDenied"), 2), ("lost", 3), ((400, "Throttling"), 3),
                            ((503, "RequestLimitExceeded"), 3)):
            with self.faults(lambda _, action, __: fault if action == "GetFederationToken" else None):
                refused = self.start(PSCLOUD, "run", "--on", "grey", "--detach", "--workers", 1, "--", "true")
                self.ends(refused, code)
            self.assertIn("--controller-profile needs no keys of yours", self.story(refused), fault)
            self.assertEqual(self.controllers_on(self.lab.machine(controller)), [])
        self.assertEqual(len(self.lab.instances()), 2)

        def refuse(_, action, form):
            own = action == "TerminateInstances" and form["InstanceId.1"] == controller
            return (403, "UnauthorizedOperation") if own else None
        with self.faults(refuse):
            self.detach("grey", "short", "run", "--workers", 1, "--", "true")
            self.until_gone()
        self.cluster_down("grey")
        self.assert_empty()

    def test_without_its_controller_the_machines_end_themselves(self):
        self.up("green", 1, "--controller", "--idle", "20s")
        machines = self.machines_of("green")
        self.detach("green", "stays", "run", "--workers", 1, "--", "sh", "-c", STAY)
        until(lambda: "up" in self.pscloud("logs", "stays", "--controller", "stays"), "the run")
        controller = self.lab.machine(machines["controller-0"]["instance"])
        for pid in self.controllers_on(controller):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not self.lab.instances(), "the machines' own end", 60)
        self.cluster_down("green")
        self.assert_empty()


class SpotControlled(Controlled):
    """Spot machines that are taken away while a controller has the run."""

    def root(self, name):
        """The files of the controller's machine."""
        machine = self.lab.machine(self.machines_of(name)["controller-0"]["instance"])
        return pathlib.Path(f"/proc/{machine.first_process()}/root")

    def state_of(self, name):
        return self.root(name) / ec2_lab.HOME / ".local/state/pscloud"

    def said(self, name):
        return (self.state_of(name) / "runs/clicks/launcher.log").read_text()

    def story_of(self, name):
        """For who wants to know why."""
        logs = sorted((self.state_of(name) / "runs/clicks/logs").iterdir())
        return self.said(name) + "".join(f"{path.name}:\n{path.read_text()[-2000:]}\n" for path in logs)

    def until_said(self, name, words):
        until(lambda: words in self.said(name), lambda: self.story_of(name), 120)

    def train(self, name, *more, seconds=SECONDS):
        """A training on a server and two workers, which have both begun, and that has been given away."""
        self.give_reader(f"reader-{name}")
        script = self.home / "setup.sh"
        script.write_text("#!/bin/sh\ntouch /var/lib/pscloud/was-set-up\n")
        process = self.start(*self.up_words(name, 3, "--spot", "--instance-profile", f"reader-{name}", "--setup",
                                            script, "--controller", *more))
        self.ends(process, seconds=seconds)
        training = SlowTraining(self, {"ROLE": User(SECRET, TOKEN)}, ec2_lab.OUTSIDE)
        process = training.start(self, name, "clicks", "--detach", "--linger", 0, "--logs-to", "s3://private/logs")
        self.ends(process, seconds=seconds)
        lent = self.lab.federation.last  # for logs, and to nothing else of the store's
        training.store.users[lent["AccessKeyId"]] = User(lent["SecretAccessKey"], lent["SessionToken"],
                                                         {"s3:GetObject"})
        addresses = {each["private_address"] for each in self.machines_of(name).values() if each["role"] == "worker"}
        until(lambda: addresses <= set(training.readers), lambda: self.story_of(name), seconds)
        return training

    def take_away(self, name, training):
        """EC2 takes a worker's machine; the worker reads data on its new one, which is returned."""
        training.pace_s = 3
        machines = self.machines_of(name)
        self.lab.warn(machines["worker-1"]["instance"], 100)
        self.until_said(name, "worker-1 on worker-1 is drained")
        self.assertIn("ck/checkpoint-1", training.checkpoints())
        self.lab.ec2.terminate_instances(InstanceIds=[machines["worker-1"]["instance"]])
        self.until_said(name, "worker-1 begins once more, on worker-2")
        known = {each["instance"] for each in machines.values()}
        new, = [each for each in self.lab.instances() if each["InstanceId"] not in known]
        before = len(training.readers)  # the address may have been that of the machine which is gone
        until(lambda: new["PrivateIpAddress"] in training.readers[before:], lambda: self.story_of(name), 60)
        return new

    def check_end(self, name, training, controller):
        """Everything is gone, the controller last, and the training was good."""
        training.hurry.set()
        self.until_gone()
        self.assert_controller_was_last(controller)
        state = json.loads(training.store.get("private", "logs/clicks/state.json"))
        self.assertEqual(state["state"], "done")
        moved = next(each for each in state["tasks"] if each["task"] == "worker-1")
        self.assertEqual((moved["host"], moved["attempt"], moved["state"]), ("worker-2", 1, "done"))
        log = training.store.get("private", "logs/clicks/logs/worker-0.log").decode()
        training.check_line(self, next(line[line.index("{"):] for line in log.splitlines() if '{"examples"' in line))
        self.cluster_down(name)
        self.assert_empty()


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudControllerSpot(SpotControlled):
    def test_a_machine_that_is_taken_away_is_replaced_by_the_controller_and_goes_with_the_rest(self):
        passes = {"Effect": "Allow", "Action": ["iam:PassRole"], "Resource": "*"}
        user = self.lab.new_user("spotter", {**POLICY, "Statement": [*POLICY["Statement"], passes]})
        self.environment.update(self.lab.variables(user))
        training = self.train("violet")
        machines = self.machines_of("violet")
        ledgers = []

        def look(_, action, form):
            self.forms.append((action, form))
            if action == "RunInstances":
                ledgers.append((self.state_of("violet") / "clusters/violet/ledger.jsonl").read_text())
        self.kill_laptop()
        self.forms.clear()
        with self.faults(look):
            new = self.take_away("violet", training)
            self.check_new_machine(new, ledgers)
            self.check_what_lent_keys_make()
            self.check_end("violet", training, machines["controller-0"]["instance"])

    def check_new_machine(self, new, ledgers):
        """It is of the cluster, and stood in the ledger before it was asked for."""
        tags = {tag["Key"]: tag["Value"] for tag in new["Tags"]}
        state = json.loads((self.folder("violet") / "state.json").read_text())
        self.assertEqual((tags["pscloud:id"], tags["pscloud:role"]), (state["plan"]["id"], "worker"))
        self.assertEqual(new["InstanceLifecycle"], "spot")
        self.lab.machine(new["InstanceId"]).run(["test", "-e", "/var/lib/pscloud/was-set-up"])
        self.assertEqual(len(ledgers), 1)
        kinds = [json.loads(line)["kind"] for line in ledgers[0].splitlines()]
        self.assertEqual(sorted(kinds), ["instances", "spot_requests"])

    def check_what_lent_keys_make(self):
        """Such a machine, and no other."""
        key = {"HTTP_AUTHORIZATION": f"Credential={self.lab.federation.last['AccessKeyId']}/"}
        form = next(form for action, form in self.forms if action == "RunInstances")
        self.assertIsNone(self.lab.federation.refusal(key, "RunInstances", form))
        id_tag = next(name for name, value in form.items() if value == "pscloud:id").replace("Key", "Value")
        for change in ({"InstanceType": "c5.24xlarge"}, {"IamInstanceProfile.Name": "other"}, {id_tag: "other"},
                       {"ImageId": "ami-other"}, {"NetworkInterface.1.SubnetId": "subnet-other"},
                       {"NetworkInterface.1.SecurityGroupId.1": "sg-other"}, {"KeyName": "other"}):
            self.assertIsNotNone(self.lab.federation.refusal(key, "RunInstances", {**form, **change}), change)

    def test_a_launcher_that_is_killed_while_it_replaces_leaves_nothing_behind(self):
        self.give_role("pilot-spot", {**ROLE_POLICY, "Statement": [
            *ROLE_POLICY["Statement"],
            {"Effect": "Allow", "Action": ["iam:PassRole", "s3:PutObject"], "Resource": "*"}]})
        self.train("amber", "--controller-profile", "pilot-spot")
        machines = self.machines_of("amber")
        controller = self.lab.machine(machines["controller-0"]["instance"])
        asked = []

        def kill(_, action, form):
            self.forms.append((action, form))
            if action == "RunInstances":
                asked.append(form)
                for pid in set(self.controllers_on(controller)) - set(self.first_controllers(controller)):
                    os.kill(pid, signal.SIGKILL)  # its launcher; and then what that asked for is done
        with self.faults(kill):
            self.lab.warn(machines["worker-1"]["instance"], 100)
            until(lambda: asked, lambda: self.story_of("amber"), 60)
            self.until_gone()
        self.assertEqual(len(asked), 1)
        self.assert_controller_was_last(machines["controller-0"]["instance"])
        self.cluster_down("amber")
        self.assert_empty()


if __name__ == "__main__":
    unittest.main()
