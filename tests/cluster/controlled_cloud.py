"""What the tests of clusters with a controller share: who runs where, and what is asked of a store and of EC2."""

import contextlib
import json
import os
import pathlib
import signal
import threading

import ec2_lab

import cloud_test
from cloud_test import SECRET, TOKEN, TRAIN
from launch_harness import PSCLOUD, SECONDS, until
from s3_server import S3Server, User


class Hold:
    """Lets a store wait with its answers about these keys until it is told to go on."""

    after = False

    def __init__(self, path):
        self.path, self.asked, self.go = path, threading.Event(), threading.Event()

    def wants(self, _, path):
        if self.path in path and not self.go.is_set():
            self.asked.set()
            self.go.wait(60)
        return False


class RefuseOnce:
    """Of a store: the first that is put where the path ends so is not taken, for good."""

    after, status = False, 403

    def __init__(self, path):
        self.path, self.refused = path, 0

    def wants(self, method, path):
        self.refused += method == "PUT" and path.endswith(self.path)
        return self.refused == 1 and method == "PUT" and path.endswith(self.path)


class Controlled(cloud_test.Cloud):
    def setUp(self):
        super().setUp()
        self.lab.profiles = {}
        self.forms = []
        self.lab.on_call = lambda _, action, form: self.forms.append((action, form))

    def machines_of(self, name):
        state = json.loads((self.folder(name) / "state.json").read_text())
        return {each["name"]: each for each in state["machines"]}

    @staticmethod
    def processes(are_wanted):
        """(command line, environment) by process id, of those for which that says yes."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                both = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
                if are_wanted(process, *both):
                    found[int(process.name)] = both
            except OSError:
                pass
        return found

    def processes_on(self, machine):
        space = os.readlink(f"/proc/{machine.first_process()}/ns/pid")
        return self.processes(lambda process, *_: os.readlink(process / "ns/pid") == space)

    def processes_of_laptop(self):
        """All that runs for this test's user: it, and the ssh's that it has started."""
        mark = str(self.home).encode()
        return self.processes(lambda process, command, environment: mark in command + environment
                              and int(process.name) != os.getpid())

    def controllers_on(self, machine):
        """The processes of controllers, with their launchers."""
        return [pid for pid, (command, _) in self.processes_on(machine).items() if b"\0controller\0--take" in command]

    def first_controllers(self, machine):
        """Those of them that no other one has started: without the launchers."""
        mine = self.controllers_on(machine)
        parents = {pid: int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                   for pid in mine}
        return [pid for pid in mine if parents[pid] not in mine]

    def kill_laptop(self):
        for pid in self.processes_of_laptop():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def detach(self, name, run, *words, seconds=SECONDS, **variables):
        process = self.start(PSCLOUD, *words[:1], "--on", name, "--detach", "--name", run, "--linger", 0, *words[1:],
                             **variables)
        self.ends(process, seconds=seconds)
        self.assertEqual(process.out.read_text(), f"{run}\n")
        self.assertIn(f"the cluster {name} is taken down", self.story(process))

    def until_gone(self):
        until(lambda: not self.lab.left(), lambda: f"an empty account: {self.lab.left()} {self.forms[-5:]}", 180)

    def assert_controller_was_last(self, machine):
        removals = [(action, form) for action, form in self.forms if action.startswith(("Terminate", "Delete"))]
        kinds = [action for action, _ in removals]
        for action in ("DeleteSecurityGroup", "DeleteSubnet", "DeleteKeyPair"):
            self.assertIn(action, kinds)
        self.assertEqual((removals[-1][0], removals[-1][1]["InstanceId.1"]), ("TerminateInstances", machine))
        self.assertEqual([form["InstanceId.1"] for action, form in removals if action == "TerminateInstances"]
                         .count(machine), 1)

    def make_store(self):
        store = S3Server(host=ec2_lab.OUTSIDE)
        self.addCleanup(store.stop)
        store.buckets = {"private": {}}
        store.users = {"ROLE": User(SECRET, TOKEN),
                       self.environment["AWS_ACCESS_KEY_ID"]: User(self.environment["AWS_SECRET_ACCESS_KEY"])}
        self.pscloud("data", "generate", "train", "--examples", 2000, "--keys", 500, "--files", 2)
        for path in self.work.glob("train-*"):
            store.put("private", f"clicks/{path.name}", path.read_bytes())
        store.put("private", "config/online.conf", TRAIN.encode())
        hold = Hold("clicks")
        store.faults.append(hold)
        self.addCleanup(hold.go.set)
        return store, hold

    def give_role(self, name, policy):
        """A role with this policy, for machines by the profile of that name."""
        keys = self.lab.federation.role_keys(policy, name)
        self.lab.profiles[name] = {"iam/security-credentials": name, f"iam/security-credentials/{name}": {
            "AccessKeyId": keys["AccessKeyId"], "SecretAccessKey": keys["SecretAccessKey"],
            "Token": keys["SessionToken"], "Expiration": "2099-01-01T00:00:00Z"}}
        self.lab.iam.create_instance_profile(InstanceProfileName=name)
        return keys

    def give_reader(self, name):
        """A role that the store knows."""
        self.lab.profiles[name] = {"iam/security-credentials": name, f"iam/security-credentials/{name}": {
            "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}}
        self.lab.iam.create_instance_profile(InstanceProfileName=name)
