#!/usr/bin/env python3
"""`pscloud cluster` on an EC2 whose instances really run (labs/ec2_lab.py): up, jobs on it, down, and the account empty
again, whatever fails or is killed in between."""

import contextlib
import json
import pathlib
import resource
import selectors
import signal
import socket
import stat
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ec2_lab  # noqa: E402

ec2_lab.enter_environment()  # before others are imported there

from launch_harness import PSCLOUD, SECONDS, LaunchTest, until  # noqa: E402
from s3_server import S3Server, User  # noqa: E402

POLICY = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "cloud-policy.json").read_text())
IP_BIND_ADDRESS_NO_PORT = 24  # of Linux; Python has no name for it
SECRET = "wJalrXUtnFEMI+bPxRfiCYzEXAMPLE/KEY"
TOKEN = "FwoGZXIvYXdzE/+="
TRAIN = """
training_data { format: TEXT text: LIBSVM file: "s3://private/clicks/train-.*" }
model_output { format: TEXT file: "s3://private/model/clicks" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 100 }
"""
# Says where it runs. A server is stopped with the last worker: workers wait until it has said so.
WHO = """import os, socket, time
print(socket.gethostname(), flush=True)
if os.environ["PSCLOUD_ROLE"] == "server":
    host, port = os.environ["PSCLOUD_LISTEN"].rsplit(":", 1)
    listener = socket.create_server((host, int(port)))
    while True:
        listener.accept()
host, port = os.environ["PSCLOUD_SERVER_ADDRESSES"].rsplit(":", 1)
deadline = time.monotonic() + 60
while socket.socket().connect_ex((host, int(port))) != 0:
    assert time.monotonic() < deadline, "the server does not listen"
    time.sleep(0.05)
"""


class Cloud(LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.lab = ec2_lab.Ec2Lab()

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def setUp(self):
        super().setUp()
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("AWS_")}
        self.environment.update(self.lab.variables(), USER="tester", no_proxy="*", HOME=str(self.home))
        self.addCleanup(self.reset)
        self.lab.calls.clear()

    def reset(self):
        self.lab.on_call = self.lab.after_call = None
        self.lab.calm()
        self.lab.boots = True
        self.lab.metadata = {}
        self.lab.spot_requests.clear()
        for instance in self.lab.instances():
            self.lab.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])

    def up_words(self, name, nodes=2, *more, settle=0):
        return (PSCLOUD, "cluster", "up", name, "--nodes", nodes, "--instance", "c5.large", "--image",
                self.lab.image["ImageId"], "--user", ec2_lab.USER, "--private", "-y", "--settle", settle, *more)

    def up(self, name, nodes=2, *more, code=0, **variables):
        process = self.start(*self.up_words(name, nodes, *more), **variables)
        self.ends(process, code)
        return self.story(process)

    def cluster_down(self, name, settle=0):
        return self.pscloud("cluster", "down", name, "--settle", settle)

    def folder(self, name):
        return self.home / "clusters" / name

    def assert_empty(self, what=""):
        until(lambda: not self.lab.left(), lambda: f"nothing left {what}: {self.lab.left()}", SECONDS)
        self.assertEqual([path for path in self.home.glob("clusters/*")], [], what)

    @contextlib.contextmanager
    def faults(self, choose):
        self.lab.on_call = choose
        try:
            yield
        finally:
            self.lab.on_call = None


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudJobs(Cloud):
    """With machines that run."""

    def open_ports(self, source, target, ports):
        """Of these, the ones that take a connection; the others are silent."""
        selector, found = selectors.DefaultSelector(), []
        sockets = []
        for port in ports:
            each = socket.socket()
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)  # there are more than ports of ours
            each.bind((source, 0))
            each.connect_ex((target, port))
            selector.register(each, selectors.EVENT_WRITE, port)
            sockets.append(each)
        for _ in range(5):
            for key, _ in selector.select(0.2):
                if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    found.append(key.data)
                selector.unregister(key.fileobj)
        for each in sockets:
            each.close()
        return sorted(found)

    def all_open_ports(self, source, target):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        step = min(most - 1000, 22000)  # of what is open at the same time
        return [port for first in range(1, 65536, step)
                for port in CloudJobs.open_ports(self, source, target, range(first, min(first + step, 65536)))]

    def test_a_cluster_comes_up_works_and_leaves_nothing(self):
        user = self.lab.new_user("least", POLICY)  # no more than the published policy
        self.environment.update(self.lab.variables(user))
        self.lab.metadata = {"iam/security-credentials": "reader", "iam/security-credentials/reader": {
            "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}}
        self.lab.iam.create_instance_profile(InstanceProfileName="reader")
        self.environment["PSCLOUD_UNRELATED"] = "1"
        self.lab.prices = {"c5.large": 0.5}
        self.addCleanup(self.lab.prices.clear)
        story = self.up("blue", 3, "--spot", "--max-price", "0.08", "--instance-profile", "reader")
        self.assertIn("worker", story)
        self.assertRegex(story, r"price +(more than )?\$")
        self.assertIn("worker-1 is ready", story)
        folder = self.folder("blue")
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        for path in folder.iterdir():
            if path.name != "id.pub":
                self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path.name)
        state = json.loads((folder / "state.json").read_text())
        machines = {each["name"]: each for each in state["machines"]}
        self.assertEqual(sorted(machines), ["server-0", "worker-0", "worker-1"])
        self.assertEqual([machines[name]["spot"] for name in sorted(machines)], [False, True, True])
        self.check_things(state)
        self.check_secrets(folder)
        self.check_ports(machines)
        self.check_jobs(machines)
        self.check_training()
        self.assertIn("3 machines go on", self.pscloud("cluster", "keep", "blue"))
        self.check_another_address(state, machines)
        listed = json.loads(self.pscloud("cluster", "ls", "--json"))["clusters"]
        self.assertEqual([(each["name"], each["state"], each["machines"]) for each in listed], [("blue", "up", 3)])
        shown = json.loads(self.pscloud("cluster", "show", "blue", "--json"))
        self.assertEqual([each["state"] for each in shown["machines"]], ["running"] * 3)
        self.assertIn("blue", self.pscloud("cluster", "ls", "--account"))
        self.assertIn("already", self.up("blue", code=2))
        self.assertIn("nothing is left", self.cluster_down("blue"))
        self.assert_empty()
        self.assertIn("nothing of pscloud's", self.pscloud("cluster", "ls", "--account"))

    def check_things(self, state):
        """Each thing was tagged when it was made, and asks for what it should."""
        cluster = state["plan"]["id"]
        live = self.lab.instances()
        self.assertEqual(len(live), 3)
        for each in live:
            tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
            self.assertEqual((tags["pscloud:id"], tags["pscloud:cluster"]), (cluster, "blue"))
            self.assertTrue(tags["pscloud:owner"].startswith("tester@"))
            self.assertRegex(tags["pscloud:expires"], r"^\d{4}-\d\d-\d\dT")
            self.assertIn(tags["pscloud:role"], ("server", "worker"))
            attribute = self.lab.ec2.describe_instance_attribute(
                InstanceId=each["InstanceId"], Attribute="instanceInitiatedShutdownBehavior")
            self.assertEqual(attribute["InstanceInitiatedShutdownBehavior"]["Value"], "terminate")
        self.assertNotIn("CreateTags", self.lab.calls)
        self.assertEqual([tags["pscloud:id"] for tags in self.lab.spot_requests.values()], [cluster] * 2)
        subnet = self.lab.ec2.describe_subnets(SubnetIds=[live[0]["SubnetId"]])["Subnets"][0]
        self.assertTrue(subnet["CidrBlock"].endswith("/28"), subnet["CidrBlock"])

    def check_secrets(self, folder):
        """The secrets of the user and the cluster's private key are where they must be, and nowhere else."""
        private = (folder / "id").read_text().splitlines()[2]
        secrets = [self.environment["AWS_SECRET_ACCESS_KEY"], private]
        for each in self.lab.instances():
            data = (self.lab.shared / f"{each['InstanceId']}.data").read_text()
            for secret in secrets:
                self.assertNotIn(secret, data)
        for path in self.home.rglob("*"):
            if path.is_file() and path.name != "id":
                for secret in secrets:
                    self.assertNotIn(secret, path.read_text(errors="replace"), path)

    def check_ports(self, machines):
        server, worker = (machines[name]["private_address"] for name in ("server-0", "worker-0"))
        listen = ("setsid python3 -c 'import socket,time; s=socket.create_server((\"0.0.0.0\", 7000)); "
                  "time.sleep(60)' >/dev/null 2>&1 &")
        shell = subprocess.run([PSCLOUD, "connect", "blue", "0.server"], env=self.environment, text=True,
                               input=listen + "\nhostname\nsleep 1\n", capture_output=True, timeout=SECONDS)
        self.assertIn(machines["server-0"]["instance"], shell.stdout, shell.stderr)
        ports = [*range(1, 1025), 7000, 8000]
        self.assertEqual(self.open_ports(ec2_lab.OUTSIDE, server, ports), [22])
        self.assertEqual(self.open_ports(ec2_lab.STRANGER, server, ports), [])
        inside = self.lab.machine(machines["worker-0"]["instance"])
        self.assertEqual(inside.address, worker)
        inside.run(["python3", "-c", f"import socket; socket.create_connection(('{server}', 7000), 5)"])

    def check_another_address(self, state, machines):
        """Whose machine was at another address when the cluster was made, and is here now."""
        group = next(each["GroupId"] for each in self.lab.ec2.describe_security_groups()["SecurityGroups"]
                     if state["plan"]["id"] in each["GroupName"])

        def rule(address):
            return [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": f"{address}/32"}]}]
        self.lab.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=rule(ec2_lab.STRANGER))
        self.lab.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=rule(ec2_lab.OUTSIDE))
        file = self.folder("blue") / "state.json"
        file.write_text(file.read_text().replace(f'"ssh_from":"{ec2_lab.OUTSIDE}/32"',
                                                 f'"ssh_from":"{ec2_lab.STRANGER}/32"'))
        server = machines["server-0"]["private_address"]
        until(lambda: self.open_ports(ec2_lab.STRANGER, server, [22]) == [22], "the way in from there")
        self.assertEqual(self.open_ports(ec2_lab.OUTSIDE, server, [22]), [])
        kept = self.pscloud("cluster", "keep", "blue", "--ssh-from")
        self.assertIn(f"blue: ssh from {ec2_lab.OUTSIDE}/32", kept)
        self.assertIn("3 machines go on", kept)
        until(lambda: self.open_ports(ec2_lab.STRANGER, server, [22]) == [], "the end of that way in")

    def check_jobs(self, machines):
        self.pscloud("run", "--on", "blue", "--name", "who", "--servers", 1, "--workers", 2, "--", "python3", "-c", WHO)
        self.assertEqual(self.log("who", "server-0").strip(), machines["server-0"]["instance"])
        status = json.loads(self.pscloud("status", "who", "--json"))
        self.assertGreaterEqual(status["cost_usd_per_hour"], 0.5)  # that of the server; spot machines may cost more
        self.assertAlmostEqual(status["cost_usd"], status["cost_usd_per_hour"] / 3.6e6 *
                               (status["ended_unix_ms"] - status["began_unix_ms"]), places=6)
        self.assertEqual({self.log("who", f"worker-{n}").strip() for n in range(2)},
                         {machines[f"worker-{n}"]["instance"] for n in range(2)})
        adder = json.loads(self.pscloud(*"bench adder --on blue --ps 1 --workers 2 --size-mb 1 --json".split()))
        self.assertEqual((adder["values_ok"], adder["hosts"]), (True, 3))

    def check_training(self):
        """Config, data and model in a store that checks signatures: ours by our keys, the machines' by their role."""
        store = S3Server(host=ec2_lab.OUTSIDE)
        self.addCleanup(store.stop)
        store.buckets, store.users = {"private": {}}, {"MINE": User(SECRET), "ROLE": User(SECRET, TOKEN)}
        self.pscloud("data", "generate", "train", "--examples", 2000, "--keys", 500, "--files", 2)
        for path in self.work.glob("train-*"):
            store.put("private", f"clicks/{path.name}", path.read_bytes())
        store.put("private", "config/online.conf", TRAIN.encode())
        mine = {"AWS_ACCESS_KEY_ID": "MINE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL_S3": store.url}
        result = json.loads(self.pscloud("train", "s3://private/config/online.conf", "--on", "blue", "--env",
                                         "AWS_ENDPOINT_URL_S3", "--json", **mine))
        self.assertEqual((result["examples"], len(self.state("online")["tasks"])), (2000, 4))  # two of them workers
        model = [key for key in store.buckets["private"] if key.startswith("model/clicks")]
        self.assertGreater(sum(len(store.get("private", key)) for key in model), 100)

    def test_a_setup_that_fails_is_shown_with_the_end_of_its_log(self):
        script = self.home / "setup.sh"
        script.write_text("#!/bin/sh\necho one of many lines\necho E: no such package >&2\nexit 7\n")
        story = self.up("broken", 2, "--setup", script, code=1)
        self.assertIn("the set-up script ended with code 7", story)
        self.assertIn("E: no such package", story)
        self.assertIn("nothing was left", story)
        self.assert_empty()

    def test_machines_that_hear_nothing_end_themselves_and_a_job_is_a_word(self):
        script = self.home / "setup.sh"
        script.write_text("#!/bin/sh\necho fine\n")
        self.up("idle", 2, "--idle", "8s", "--setup", script, "--controller")
        # To those without a task of it as well.
        self.pscloud("run", "--on", "idle", "--name", "one", "--workers", 1, "--", "sleep", "12")
        self.assertEqual({each["host"] for each in self.state("one")["tasks"]}, {"node-0"})
        self.assertEqual(len(self.lab.instances()), 3)
        until(lambda: not self.lab.instances(), "the machines' own end", SECONDS)
        shown = json.loads(self.pscloud("cluster", "show", "idle", "--json"))
        self.assertEqual([each["state"] for each in shown["machines"]], ["terminated"] * 3)
        self.cluster_down("idle")
        self.assert_empty()

    def test_two_clusters_do_not_touch_each_other(self):
        both = [self.start(*self.up_words(name)) for name in ("one", "two")]
        for process in both:
            self.ends(process)
        self.assertEqual(len(self.lab.instances()), 4)
        self.cluster_down("one")
        self.assertEqual({tag["Value"] for each in self.lab.instances() for tag in each["Tags"]
                          if tag["Key"] == "pscloud:cluster"}, {"two"})
        self.pscloud("run", "--on", "two", "--workers", 2, "--", "true")
        self.cluster_down("two")
        self.assert_empty()

    def test_calls_whose_answers_are_lost_or_throttled_are_made_once(self):
        for fault in ("lost", (503, "RequestLimitExceeded"), (400, "Throttling")):
            seen = set()

            def once(_, action, form):
                key = (action, form.get("ClientToken"), form.get("Filter.1.Name"))
                return None if key in seen or seen.add(key) else fault
            with self.subTest(fault=fault):
                with self.faults(once):
                    self.up("again", 3, "--servers", 1, "--placement")
                self.assertEqual(len(self.lab.instances()), 3)
                self.assertEqual({kind: len(things) for kind, things in self.lab.left().items()
                                  if kind not in ("volumes", "interfaces")},
                                 {"instances": 3, "subnets": 1, "groups": 1, "keys": 1, "placement": 1})
                self.cluster_down("again")
                self.assert_empty(fault)


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudFaults(Cloud):
    """Without machines that run: it is ended before they would."""

    def setUp(self):
        super().setUp()
        self.lab.boots = False

    def up_to_machines(self, *more):
        """Brings one up until its machines are known to run, and ends it; the calls that it made."""
        process = self.start(*self.up_words("first", 3, "--spot", "--placement", *more))
        until(lambda: "running" in self.story(process), lambda: self.story(process))
        calls = list(self.lab.calls)
        process.send_signal(signal.SIGINT)
        self.ends(process, 130)
        self.assertIn("nothing was left", self.story(process))
        self.assert_empty("after Ctrl-C")
        return calls

    def test_a_failure_of_any_call_leaves_nothing(self):
        zone = ("--zone", f"{ec2_lab.REGION}a")  # or another would be tried
        calls = self.up_to_machines("--controller", *zone)
        self.assertEqual(calls.count("RunInstances"), 3)
        self.assertGreater(len(calls), 15)
        first = calls.index("CreateSubnet") + 1
        kinds = {"refused": (400, "InvalidParameterValue"), "broken": (500, "InternalError"),
                 "no capacity": (500, "InsufficientInstanceCapacity"), "lost": "lost", "unsent": "lost before",
                 "throttled": None}
        throttles = ((503, "RequestLimitExceeded"), (400, "Throttling"))
        for kind, fault in kinds.items():
            # An answer that is lost on a connection that was used before is asked for once more by libcurl itself.
            once_more = kind in ("lost", "unsent")
            tries = 1 if kind == "refused" else int(self.environment["AWS_MAX_ATTEMPTS"]) + once_more
            for number in range(first, len(calls) + 1):
                action = calls[number - 1]
                if kind in ("no capacity", "unsent") and action != "RunInstances":
                    continue
                fault = throttles[number % 2] if kind == "throttled" else fault
                with self.subTest(kind=kind, call=number, action=action):
                    self.lab.calls.clear()
                    broken = []

                    def fail(at, asked, _):
                        # The same call again and again, as long as it is repeated.
                        again = broken and at == broken[-1] + 1 and asked == action and len(broken) < tries
                        if at == number or again:
                            broken.append(at)
                            return fault
                        return None
                    with self.faults(fail):
                        story = self.up(f"n{number}", 3, "--spot", "--placement", "--controller", *zone,
                                        code=1 if kind == "refused" else 3)
                    self.assertIn("nothing was left", story)
                    self.assert_empty(f"{kind} {action}")

    def test_kill_at_any_call_then_down_leaves_nothing(self):
        calls = self.up_to_machines("--controller")
        first = calls.index("CreateSubnet")
        for number in range(first, len(calls) + 1):  # one before the first that makes something, and all after it
            with self.subTest(call=number, action=calls[number - 1]):
                self.lab.calls.clear()
                started = threading.Event()
                holder = []

                def kill(at, *_):
                    if at == number:
                        started.wait(SECONDS)
                        self.kill(holder[0])  # and then what it asked for is done
                with self.faults(kill):
                    holder.append(self.start(*self.up_words("killed", 3, "--spot", "--placement", "--controller")))
                    started.set()
                    until(lambda: holder[0].poll() is not None, "the end")
                if self.folder("killed").exists():
                    listed = json.loads(self.pscloud("cluster", "ls", "--json"))["clusters"]
                    self.assertEqual([each["state"] for each in listed], ["broken"])
                    self.cluster_down("killed")
                self.assert_empty(f"{number} {calls[number - 1]}")

    def test_a_call_that_takes_effect_late_is_waited_for(self):
        """The launcher is killed, and EC2 does what it was asked for while `down` is at it."""
        go = threading.Event()
        holder = []

        def late(_, action, __):
            if action == "CreateSecurityGroup":
                self.kill(holder[0])
                threading.Timer(2, go.set).start()
                self.lab.lock.release()  # the lab goes on meanwhile
                try:
                    go.wait(SECONDS)
                finally:
                    self.lab.lock.acquire()
        with self.faults(late):
            holder.append(self.start(*self.up_words("late")))
            until(lambda: holder[0].poll() is not None, "the end")
        self.pscloud("cluster", "down", "late", "--settle", 6)
        self.assertTrue(go.is_set())
        self.assert_empty()

    def test_what_is_denied_is_named(self):
        actions = [action for each in POLICY["Statement"] for action in each["Action"]]
        tagging = set()

        def note(_, action, form):
            if "TagSpecification.1.ResourceType" in form:
                tagging.add(action)
        with self.faults(note):
            wanted = {f"ec2:{action}" for action in self.up_to_machines()}
        # Moto does not know this condition: things can be tagged in the moment they are made, and at no other.
        tags = [each for each in POLICY["Statement"] if "ec2:CreateTags" in each["Action"]]
        self.assertEqual([(each["Action"], set(each["Condition"])) for each in tags],
                         [(["ec2:CreateTags"], {"StringEquals"})])
        condition = tags[0]["Condition"]["StringEquals"]
        self.assertEqual(list(condition), ["ec2:CreateAction"])
        self.assertEqual(set(condition["ec2:CreateAction"]), tagging)
        self.assertEqual(wanted - set(actions), set())  # all that is called is in the policy
        # The lab's own placement groups know no permissions; what is looked at to the end is tried below.
        for number, denied in enumerate(sorted(wanted - {"ec2:CreatePlacementGroup", "ec2:DescribeInstances"})):
            with self.subTest(denied=denied):
                policy = {**POLICY, "Statement": [{**each, "Action": [a for a in each["Action"] if a != denied]}
                                                  for each in POLICY["Statement"]]}
                user = self.lab.new_user(f"user{number}", policy)
                process = self.start(*self.up_words("denied", 3, "--spot", "--timeout", 1),
                                     **self.lab.variables(user))
                self.ends(process, 3 if denied == "ec2:DescribeSpotPriceHistory" else 2)
                if denied != "ec2:DescribeSpotPriceHistory":
                    self.assertIn(f"lack the permission {denied};", self.story(process))
                else:
                    self.assertIn("unknown: denied", self.story(process))
                if self.folder("denied").exists():
                    self.cluster_down("denied")
                self.assert_empty(denied)

    def test_what_may_not_be_removed_is_left_and_named(self):
        policy = {**POLICY, "Statement": [{**each, "Action": [a for a in each["Action"] if a != "ec2:DeleteSubnet"]}
                                          for each in POLICY["Statement"]]}
        user = self.lab.new_user("keeper", policy)

        def refuse(_, action, __):
            return (400, "InvalidParameterValue") if action == "RunInstances" else None
        with self.faults(refuse):
            story = self.up("half", code=1, **self.lab.variables(user))
        self.assertIn("left: subnet: denied: the keys (from AWS_ACCESS_KEY_ID) lack the permission ec2:DeleteSubnet",
                      story)
        self.assertIn("`pscloud cluster down half` tries again", story)
        self.cluster_down("half")
        self.assert_empty()

    def test_a_plan_makes_nothing_and_wrong_keys_are_told(self):
        plan = json.loads(self.pscloud("cluster", "up", "paper", "--nodes", 20, "--instance", "c5.large", "--image",
                                       self.lab.image["ImageId"], "--user", "me", "--private", "--plan", "--json"))
        self.assertTrue(plan["subnet_cidr"].endswith("/27"), plan["subnet_cidr"])
        self.assertEqual(plan["groups"][0]["vcpus"], 2)
        self.assertFalse(plan["price_complete"])
        self.lab.prices = {"c5.large": 0.085}
        priced = self.pscloud("cluster", "up", "paper", "--nodes", 20, "--instance", "c5.large", "--image",
                              self.lab.image["ImageId"], "--user", "me", "--private", "--plan")
        self.assertIn("price    $1.7000 an hour", priced)
        self.assertEqual(plan["ssh_from"], f"{ec2_lab.OUTSIDE}/32")
        self.assert_empty()
        for kind, image in (("c5.large", "debian-12-*"), ("g4dn.xlarge", "Deep Learning Base OSS Nvidia Driver GPU")):
            nowhere = self.start(PSCLOUD, "cluster", "up", "paper", "--instance", kind, "--private", "--plan")
            self.ends(nowhere, 2)
            self.assertRegex(self.story(nowhere), rf"no image '{image.replace('*', '.*')}.*name one with --image")
        story = self.up("paper", code=2, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn("does not accept the keys (they come from AWS_ACCESS_KEY_ID)", story)
        self.assert_empty()
        unasked = self.start(*[word for word in self.up_words("paper") if word != "-y"])
        self.ends(unasked, 2)
        self.assertIn("nobody is there to be asked", self.story(unasked))
        self.assert_empty()


if __name__ == "__main__":
    unittest.main()
