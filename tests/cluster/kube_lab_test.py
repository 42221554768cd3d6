#!/usr/bin/env python3
"""Jobs on a real Kubernetes of two nodes (tests/labs/kube_lab.py), by a user who may do no more than docs/kubernetes.md
says. Afterwards nothing of ours may be left in the name space, nor a process on a node.

`make test-kubernetes` builds Kubernetes (the first time ten minutes) in build/kubernetes; without it this is skipped.
"""

import base64
import json
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "labs"))
import killed_launchers
from kube_lab import NAMESPACE, RIGHTS, KubeLab, make_image, missing
from queue_cases import BUILD, FarLaunchers, until
from swarm_test import ENTRYPOINT, model_in
from train_test import BATCH, CONFIG

SECONDS = 180
SKIPPED = 77  # CMakeLists.txt knows it
SECRETS = {f"TOKEN_{name}": f"{number}-very-secret" for name, number in (("A", "first"), ("B", "second"))}
WITH_KUBECTL = {"PATH": "/opt/kubernetes:/usr/local/bin:/usr/bin:/bin"}
NODE = r"host[23]"


class OnKubernetes(FarLaunchers, unittest.TestCase):
    longMessage = True
    on = "kubernetes"
    home = "/shared/home"

    @classmethod
    def setUpClass(cls):
        began = time.monotonic()
        cls.lab = KubeLab(2, binds={BUILD: "/opt/pscloud"})
        cls.addClassCleanup(cls.lab.down)
        print(f"two nodes after {time.monotonic() - began:.1f} s", flush=True)
        cls.lab.first.run(["ln", "-s", "/opt/pscloud/pscloud", "/usr/local/bin/pscloud"], user=0)
        cls.lab.first.run(["mkdir", cls.home, "/shared/images"])
        cls.add_image("box")

    @classmethod
    def add_image(cls, name, command=()):
        """An image with a shell and an ENTRYPOINT of its own, for both nodes."""
        path = cls.lab.shared / f"images/{name}.tar"
        make_image(path, f"test/{name}:1", {"start": ENTRYPOINT}, ("sh", "sleep", "cat", "ls", "stat", "env", "seq"),
                   ["/start"], command)
        cls.lab.load(path)

    def said(self, *words, code=0, **options):
        """What pscloud says, which ends with this code."""
        done = self.pscloud(*words, seconds=SECONDS, **options)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def run_box(self, name, *words, on="kubernetes", **options):
        return self.said("run", "--on", on, "--image", "test/box:1", "--name", name, "--stop-grace", 3, *words,
                         **options)

    def start_box(self, name, *words, more="", grace=3, before=(), variables=None):
        return self.start("run", "--on", f"kubernetes:image=test/box:1{more}", "--name", name, "--stop-grace", grace,
                          *words, before=before, variables=variables)

    def log(self, run, task):
        path = self.run_of(run) / "logs" / f"{task}.log"
        return path.read_text() if path.exists() else ""

    def until_says(self, run, word, *tasks):
        for task in tasks:
            until(lambda task=task: word in self.log(run, task),
                  lambda task=task: f"'{word}' of {task}: {self.log(run, task)} {self.lab.kubectl('get', 'pods')}",
                  SECONDS)

    def hosts_of(self, run):
        return {task["task"]: task["host"] for task in self.state(run)["tasks"]}

    def nothing_is_left(self):
        # What the cluster itself makes for a Service or a StatefulSet it removes by itself, a moment later.
        until(lambda: not self.lab.left(), lambda: f"end of {self.lab.left()}", 30)
        for node in self.lab.nodes:
            until(lambda node=node: not self.lab.containers(node),
                  lambda node=node: f"end of {self.lab.containers(node)} on {node.name}", 30)
        self.assertEqual(self.lab.first.processes(), [])


class KubeJobs(OnKubernetes):
    def setUp(self):
        self.addCleanup(self.nothing_is_left)

    # ---- what a task is given

    def test_words_arrive_as_they_are(self):
        words = ["with space", "'single' \"double\"", "two\nlines", "$HOME", "$(HOME)", "$$", "*", "{{x}}", "$(ls)", ""]
        odd = "$(PATH) $$ {\"a\":{\"b\":{}}}"
        self.run_box("odd", "--workers", 2, "--env", "ODD", "--", "env; echo done", *words,
                     variables={"ODD": odd})
        for index in (0, 1):
            log = self.log("odd", f"worker-{index}")
            for word in words:
                self.assertIn(f"argument: [{word}]\n", log)
            self.assertIn(f"ODD={odd}\n", log)
            self.assertRegex(log, rf"at odd-j\w+-worker-{index}\.odd-j\w+:20000\n")
            self.assertEqual(log.splitlines()[-1], "done")

    def test_an_image_without_a_command_runs_its_own(self):
        self.add_image("own", ["echo mine", "own"])
        self.said("run", "--on", "kubernetes:image=test/own:1", "--name", "own", "--workers", 1)
        self.assertIn("argument: [own]\n", self.log("own", "worker-0"))
        self.assertIn("mine\n", self.log("own", "worker-0"))

    def test_secrets_are_files_and_stand_nowhere_else(self):
        flags = [word for name in SECRETS for word in ("--secret", name)]
        command = "ls -lL /run/secrets; cat $TOKEN_A_FILE $TOKEN_B_FILE; echo .; echo ready; sleep 5"
        process = self.start_box("hush", "--workers", 2, *flags, "--", command, variables=SECRETS)
        self.until_says("hush", "ready", "worker-0", "worker-1")
        shown = subprocess.run(["ps", "axeww"], stdout=subprocess.PIPE, text=True, check=True).stdout
        shown = "\n".join(line for line in shown.splitlines() if "TOKEN_A=" not in line)  # ours: that of the user
        shown += self.lab.kubectl("get", "jobs,pods,services", "--output=json")
        for path in self.run_of("hush").iterdir():
            if path.is_file():
                shown += path.read_text(errors="replace")
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertIn("/run/secrets/TOKEN_A", shown)
        for secret in SECRETS.values():
            self.assertNotIn(secret, shown)
            self.assertNotIn(base64.b64encode(secret.encode()).decode(), shown)
        self.assertIn("first-very-secretsecond-very-secret.", self.log("hush", "worker-1"))
        self.assertRegex(self.log("hush", "worker-1"), r"-r--------\s+1 0\s+0\s+.*TOKEN_A\n")

    def test_another_user_reads_his_secrets_too(self):
        said = self.run_box("user", "--workers", 1, "--secret", "TOKEN_A", "--", "cat $TOKEN_A_FILE; echo .",
                            on="kubernetes:user=1000:1000", variables=SECRETS)
        self.assertIn("first-very-secret.\n", self.log("user", "worker-0"), said)

    def test_files_are_in_the_working_directory(self):
        (self.lab.shared / "notes.txt").write_text("to be read")
        self.run_box("files", "--workers", 1, "--file", "/shared/notes.txt", "--", "cat notes.txt; echo .")
        self.assertIn("to be read.\n", self.log("files", "worker-0"))

    # ---- what comes back

    def test_each_line_comes_once_and_whole(self):
        # More than a node keeps in one piece, a line that is cut into many there, and one that does not end.
        # It stays a while: of one that ends at once containerd may lose what it has not read (docs/kubernetes.md).
        command = "seq 1 20000; echo $(seq 1 20000) | cat; printf 'no end'; sleep 3"
        self.run_box("lines", "--workers", 2, "--", command)
        numbers = [str(number) for number in range(1, 20001)]
        for task in ("worker-0", "worker-1"):
            lines = self.log("lines", task).splitlines()
            first = lines.index("1")
            self.assertEqual(lines[first:first + 20000], numbers)
            self.assertEqual("".join(lines[first + 20000:]).replace(" ", ""), "".join(numbers) + "noend")

    def test_servers_are_told_when_the_last_worker_has_ended(self):
        self.run_box("told", "--servers", 2, "--workers", 1, "--",
                     'sleep 1; read -r now rest < /proc/uptime; echo "ended at $now"')
        ended = float(self.log("told", "worker-0").rsplit("ended at ", 1)[1])
        tasks = {task["task"]: task for task in self.state("told")["tasks"]}
        for task in ("server-0", "server-1"):
            took = float(self.log("told", task).split("told at ")[1].split()[0]) - ended
            print(f"SIGTERM on {tasks[task]['host']} after {took:.2f} s", flush=True)
            # The node looks at its containers once a second.
            self.assertLess(took, 4)
            self.assertEqual(tasks[task]["state"], "stopped")

    def test_a_worker_that_fails_is_the_root_cause(self):
        self.lab.first.run(["mkdir", "/shared/bad"])
        command = ('if [ $PSCLOUD_RANK = 1 ]; then until [ -e /bad/go ]; do sleep 0.1; done; '
                   'echo "cannot read data" >&2; exit 7; fi; sleep 600 & wait')
        process = self.start_box("bad", "--servers", 1, "--workers", 3, "--", command, more=",mount=/shared/bad:/bad")
        tasks = ("server-0", "worker-0", "worker-1", "worker-2")
        self.until_says("bad", "role ", *tasks)
        until(lambda: self.step_of("bad") == "running", "run of all", SECONDS)
        (self.lab.shared / "bad/go").touch()
        self.assertEqual(process.wait(SECONDS), 1)
        said = process.stdout.read()
        self.assertRegex(said, rf"worker-1 on {NODE} failed: exit code 7; stopping the rest")
        self.assertIn("cannot read data", said.split("worker-1 on", 1)[1])
        for task in tasks:
            wanted = "cannot read data" if task == "worker-1" else "stopped kindly"
            self.assertEqual(self.log("bad", task).splitlines()[-1], wanted, task)

    def test_a_server_that_fails_is_the_root_cause(self):
        make_image(self.lab.shared / "images/bare.tar", "test/bare:1", {}, ("sh",), ["/bin/sh", "-c"])
        self.lab.load(self.lab.shared / "images/bare.tar")
        (self.lab.shared / "job.json").write_text(json.dumps({"roles": {
            "server": {"count": 1, "image": "test/bare:1", "command": ["echo no room; exit 9"]},
            "worker": {"count": 1, "image": "test/box:1", "command": ["sleep 60 & wait"]}}}))
        said = self.said("run", "--on", "kubernetes", "--job", "/shared/job.json", "--name", "full", code=1)
        self.assertRegex(said, rf"server-0 on {NODE} failed: exit code 9")
        self.assertIn("no room", said)

    def test_a_missing_image_is_named_with_its_node(self):
        said = self.said("run", "--on", "kubernetes", "--image", "test/nobody:9", "--workers", 1, "--", "x", code=3)
        self.assertRegex(said, rf"{NODE} cannot get the image test/nobody:9")

    def test_who_may_not_is_told_so(self):
        said = self.said("run", "--on", "kubernetes:image=test/box:1,namespace=default", "--workers", 1, "--", "x",
                         code=2)
        self.assertIn('User "psuser" cannot list resource "pods"', said)

    # ---- its end

    def begin(self, name, before):
        return self.start_box(name, "--servers", 1, "--workers", 1, "--secret", "TOKEN_A", "--", "echo here; sleep 2",
                              before=before, variables=SECRETS)

    def down(self):
        self.assertTrue(self.lab.left())
        self.said("down")

    @unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        self.kill_at([1, 2, 3, ("fdatasync", 1), ("sendto", 6), "running"],
                     [4, 5, ("sendto", 8), ("sendto", 10), "stopping"])

    def interrupt(self, run):
        self.lab.first.run(["kill", "-INT", (self.run_of(run) / "lock").read_text().split()[0]])

    def test_ctrl_c_stops_all(self):
        process = self.start_box("cut", "--servers", 2, "--workers", 1, "--", "echo here; sleep 600 & wait")
        self.until_says("cut", "role ", "worker-0", "server-0", "server-1")
        until(lambda: self.step_of("cut") == "running", "run of all", SECONDS)
        began = time.monotonic()
        self.interrupt("cut")
        self.assertEqual(process.wait(SECONDS), 130)
        print(f"all was stopped {time.monotonic() - began:.1f} s after Ctrl-C", flush=True)
        for task in ("worker-0", "server-0", "server-1"):
            self.assertEqual(self.log("cut", task).splitlines()[-1], "stopped kindly", task)

    def test_a_second_ctrl_c_does_not_wait(self):
        # The launcher, that is: the node goes on with the grace that it was given first.
        process = self.start_box("twice", "--servers", 1, "--workers", 1, "--",
                                 "trap '' TERM; echo here; while :; do sleep 1; done", grace=25)
        self.until_says("twice", "here", "worker-0")
        until(lambda: self.step_of("twice") == "running", "run of all", SECONDS)
        began = time.monotonic()
        self.interrupt("twice")
        self.until_says("twice", "stopped kindly", "server-0")
        self.interrupt("twice")
        self.assertEqual(process.wait(SECONDS), 130)
        self.assertLess(time.monotonic() - began, 20)

    def test_others_are_not_touched(self):
        self.lab.kubectl("create", "service", "clusterip", "precious", "--tcp=80")
        self.lab.kubectl("label", "service", "precious", "pscloud.job=no")
        try:
            self.run_box("polite", "--workers", 1, "--", "echo hi")
            self.said("down")
            self.assertIn("precious", self.lab.kubectl("get", "services"))
        finally:
            self.lab.kubectl("delete", "service", "precious")

    # ---- ways to it

    def test_a_kubeconfig_that_is_yaml_is_read_by_kubectl(self):
        yaml = self.lab.first.run(["kubectl", "config", "view", "--raw", "--output=yaml"],
                                  variables=WITH_KUBECTL).stdout
        self.assertTrue(yaml.startswith("apiVersion:"), yaml)
        (self.lab.shared / "config.yaml").write_text(yaml)
        self.run_box("yaml", "--workers", 1, "--", "echo hi",
                     variables={**WITH_KUBECTL, "KUBECONFIG": "/shared/config.yaml"})
        self.assertIn("hi\n", self.log("yaml", "worker-0"))

    def test_a_launcher_in_a_pod_uses_its_account(self):
        self.load_our_image()
        self.give_rights("launcher", RIGHTS, f"--serviceaccount={NAMESPACE}:launcher")
        self.lab.kubectl("create", "serviceaccount", "launcher")
        self.addCleanup(self.lab.kubectl, "delete", "pod/launcher", "serviceaccount/launcher")
        self.lab.kubectl("create", "--filename", "-", given=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "launcher"},
            "spec": {"serviceAccountName": "launcher", "restartPolicy": "Never", "containers": [
                {"name": "launcher", "image": "test/pscloud:1", "env": [{"name": "PSCLOUD_HOME", "value": "/pscloud"}],
                 "command": ["pscloud", "run", "--on", "kubernetes:image=test/box:1", "--workers", "2", "--",
                             "echo hi"]}]}}))
        until(lambda: self.phase("launcher") in ("Succeeded", "Failed"), lambda: self.phase("launcher"), SECONDS)
        said = self.lab.kubectl("logs", "launcher")
        self.assertEqual(self.phase("launcher"), "Succeeded", said)
        self.assertIn("2 done", said)

    def test_connect_opens_a_shell_in_a_task(self):
        # What docs/kubernetes.md says of `pscloud connect`.
        self.give_rights("shell", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                                   {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]}],
                         "--user=psuser")
        self.start_box("shell", "--workers", 1, "--", "echo here; sleep 600 & wait")
        self.until_says("shell", "here", "worker-0")
        command = self.lab.first.command(["script", "-qec", "pscloud connect shell worker-0", "/dev/null"],
                                         variables={"PSCLOUD_HOME": self.home, **WITH_KUBECTL})
        shell = subprocess.run(command, input="echo I am $PSCLOUD_ROLE $PSCLOUD_RANK\nexit\n", text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        self.assertIn("I am worker 0", shell.stdout)
        self.said("stop", "shell")

    def give_rights(self, name, rules, whom):
        self.lab.give_rights(name, rules, whom)
        self.addCleanup(self.lab.kubectl, "delete", f"role/{name}", f"rolebinding/{name}")

    def phase(self, pod):
        return self.lab.kubectl("get", "pod", pod, "--output=jsonpath={.status.phase}")

    # ---- training

    def load_our_image(self):
        self.said("image", "build", "test/pscloud:1", "--output", "/shared/images/pscloud.tar")
        self.lab.load(self.lab.shared / "images/pscloud.tar")

    def test_training_is_that_of_here(self):
        self.load_our_image()
        self.lab.first.run(["mkdir", "/shared/train", "/shared/train/here", "/shared/train/there"])
        self.said("data", "generate", "/shared/train/train", "--examples", 20000, "--keys", 5000, "--files", 3)
        for name, text in (("one", CONFIG), ("all", BATCH)):
            for where in ("here", "there"):
                config = text.replace('"train-', '"/shared/train/train-')
                config = config.replace('"model"', f'"/shared/train/{where}/model"')
                (self.lab.shared / f"train/{name}-{where}.conf").write_text(config)
        on = ("--on", "kubernetes:image=test/pscloud:1,mount=/shared/train:/shared/train", "--servers", 2, "--json")
        # One worker makes the same model, to the byte; several find the same optimum.
        self.said("train", "/shared/train/one-here.conf", "--servers", 2, "--workers", 1)
        self.said("train", "/shared/train/one-there.conf", *on, "--workers", 1)
        self.assertEqual(model_in(self.lab.shared / "train/there"), model_in(self.lab.shared / "train/here"))
        here, there = (json.loads(next(line for line in said.splitlines() if line.startswith("{"))) for said in (
            self.said("train", "/shared/train/all-here.conf", "--json"),
            self.said("train", "/shared/train/all-there.conf", *on, "--name", "batch", "--workers", 3)))
        self.assertEqual(there["examples"], here["examples"])
        self.assertAlmostEqual(there["objective"] / here["objective"], 1, delta=1e-3)
        for task in ("scheduler-0", "server-0", "server-1", "worker-0", "worker-1", "worker-2"):
            self.assertNotEqual(self.log("batch", task), "", task)
            self.assertNotIn("PRIVATE KEY", self.log("batch", task))


class KubePowerCut(OnKubernetes):
    """Has a lab of its own, which it breaks."""

    def test_a_node_that_is_lost_is_the_cause(self):
        process = self.start_box("cut", "--servers", 2, "--workers", 3, "--", "echo here; sleep 600 & wait")
        tasks = [f"server-{n}" for n in range(2)] + [f"worker-{n}" for n in range(3)]
        self.until_says("cut", "role ", *tasks)
        until(lambda: self.step_of("cut") == "running", "run of all", SECONDS)
        victim = next(node for node in self.lab.nodes if node.name == self.hosts_of("cut")["worker-0"])
        self.assertEqual(set(self.hosts_of("cut").values()), {"host2", "host3"})
        began = time.monotonic()
        victim.pull_plug()
        victim.process.stdin.close()
        self.lab.machines.remove(victim)
        self.assertEqual(process.wait(SECONDS), 1)
        said = process.stdout.read()
        print(f"ended {time.monotonic() - began:.1f} s after the power cut", flush=True)
        self.assertRegex(said, rf"{victim.name} does not answer")
        self.assertNotIn("left", said)
        for task in tasks:
            self.assertIn("role ", self.log("cut", task))
        self.nothing_is_left()


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}; `make test-kubernetes` builds Kubernetes and runs this")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
