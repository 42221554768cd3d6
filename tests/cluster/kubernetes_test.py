#!/usr/bin/env python3
"""Jobs on Kubernetes, as far as its API goes: kube_server.py checks what is sent and runs the pods as processes."""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import killed_launchers
import kube_server
from harness import until
from killed_launchers import KilledLaunchers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "labs"))
from certificates import make_certificates

BUILD = pathlib.Path(os.environ.get("PSCLOUD_BUILD", "build/release")).resolve()
PSCLOUD = BUILD / "pscloud"
SECONDS = 60
CHIEF = """for a in "$@"; do echo "[$a]"; done; cat $ROOT$TOKEN_FILE; echo; stat -c %a $ROOT$TOKEN_FILE; echo "$ODD" """
SERVER = "trap 'echo stopped kindly; exit 0' TERM; : > {folder}/up-$PSCLOUD_POD_INDEX; while :; do sleep 0.05; done"
# A worker that would not wait for the servers could be done, and with it the run, before these have begun.
FIND_SERVERS = "until [ -e {folder}/up-0 ] && [ -e {folder}/up-1 ]; do sleep 0.05; done"


class KubernetesTest(KilledLaunchers, unittest.TestCase):
    longMessage = True
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-kubernetes-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.cluster = kube_server.Cluster(pathlib.Path(tempfile.mkdtemp(dir=self.home)), "let-me-in")
        make_certificates(self.home, "127.0.0.1")
        self.server = kube_server.Server(self.cluster, self.home)
        self.addCleanup(self.server.stop)
        self.kubeconfig = self.home / "config"
        self.write_kubeconfig({"token": "let-me-in"})
        self.environment = {**os.environ, "PSCLOUD_HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig),
                            "TOKEN": "very-secret"}

    def write_kubeconfig(self, user):
        data = base64.b64encode((self.home / "ca.pem").read_bytes()).decode()
        self.kubeconfig.write_text(json.dumps({
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.server.url, "certificate-authority-data": data}}],
            "users": [{"name": "u", "user": user}]}))

    def pscloud(self, *arguments, code=0):
        done = subprocess.run([PSCLOUD, *map(str, arguments)], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def start_sleeper(self, name, script="echo here; exec sleep 600", grace=1):
        process = subprocess.Popen([PSCLOUD, "run", "--on", "kubernetes:image=test/any", "--name", name, "--servers",
                                    "1", "--workers", "1", "--stop-grace", str(grace), "--", "sh", "-c",
                                    script],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        log = self.home / "runs" / name / "logs/worker-0.log"
        until(lambda: log.exists() and "here" in log.read_text(), lambda: "worker")
        return process

    def log(self, run, task):
        return (self.home / "runs" / run / "logs" / f"{task}.log").read_text()

    def assert_nothing_left(self):
        self.assertEqual([pod.name for pod in self.cluster.pods if pod.runs()], [])
        self.assertEqual({kind: list(things) for kind, things in self.cluster.objects.items() if things}, {})

    def test_a_job_runs_and_leaves_nothing(self):
        job = self.home / "job.json"
        server = SERVER.format(folder=self.home)
        worker = f'{FIND_SERVERS.format(folder=self.home)}; echo "$TF_CONFIG"'
        job.write_text(json.dumps({
            "framework": "tensorflow",
            "roles": {"server": {"count": 2, "command": ["sh", "-c", server], "image": "test/any"},
                      "chief": {"count": 1, "image": "test/any",
                                "command": ["sh", "-c", CHIEF, "x", "a b", "'\"", "$(HOME)", "$$", "*", "two\nlines"]},
                      "worker": {"count": 3, "command": ["sh", "-c", worker], "image": "test/any"}}}))
        self.environment["ODD"] = "$(PATH) $$ {{x}}"
        self.pscloud("run", "--on", "kubernetes", "--job", job, "--name", "tf", "--secret", "TOKEN", "--env", "ODD")
        chief = self.log("tf", "chief-0")
        for word in ("[a b]", "['\"]", "[$(HOME)]", "[$$]", "[*]", "[two\nlines]", "very-secret\n400",
                     "$(PATH) $$ {{x}}"):
            self.assertIn(word + "\n", chief)
        for index in range(3):
            config = json.loads(self.log("tf", f"worker-{index}"))
            self.assertEqual(config["task"], {"type": "worker", "index": index})
            self.assertEqual(len(config["cluster"]["ps"]), 2)
            self.assertRegex(config["cluster"]["ps"][1], r"^tf-j\w+-server-1\.tf-j\w+:20000$")
        self.assertIn("stopped kindly", self.log("tf", "server-1"))
        self.assert_nothing_left()

    def test_a_worker_that_fails_is_the_root_cause(self):
        server = SERVER.format(folder=self.home)
        said = self.pscloud("run", "--on", "kubernetes", "--image", "test/any", "--name", "bad", "--servers", 1,
                            "--workers", 2, "--", "sh", "-c",
                            f'case $PSCLOUD_ROLE$PSCLOUD_RANK in server*) {server} ;; worker1) echo no data; exit 7 ;; '
                            '*) sleep 60 ;; esac', code=1)
        self.assertIn("worker-1 on node-a failed: exit code 7", said)
        self.assertIn("no data", said)
        self.assert_nothing_left()

    def test_logs_that_nobody_may_read_hold_no_run_up(self):
        self.cluster.logs_denied = True
        self.pscloud("run", "--on", "kubernetes:image=test/any", "--workers", 1, "--", "echo", "unheard")
        self.assert_nothing_left()

    def test_a_missing_image_is_named(self):
        said = self.pscloud("run", "--on", "kubernetes:image=test/missing", "--workers", 1, "--", "x", code=3)
        self.assertIn("node-a cannot get the image test/missing", said)
        self.assert_nothing_left()

    def test_a_lost_node_is_named(self):
        process = self.start_sleeper("cut")
        for pod in self.cluster.objects["pods"].values():
            pod.lose_node()
        out, _ = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 1, out)
        self.assertIn("node-a does not answer", out)
        self.assert_nothing_left()

    def test_a_second_ctrl_c_does_not_wait(self):
        process = self.start_sleeper("twice", "trap '' TERM; echo here; while :; do sleep 0.1; done", 50)
        for step in ("running", "stopping"):
            until(lambda step=step: self.step_of("twice") == step, step)
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, out)
        self.assertEqual(self.cluster.objects["pods"], {})

    def test_a_killed_launcher_is_cleaned_up_after(self):
        process = self.start_sleeper("dead")
        process.send_signal(signal.SIGKILL)
        process.wait()
        other = {"metadata": {"name": "precious", "labels": {"pscloud.job": "no"}}}
        self.cluster.objects["services"]["precious"] = other
        self.pscloud("down")
        self.assertEqual(list(self.cluster.objects["services"]), ["precious"])
        del self.cluster.objects["services"]["precious"]
        self.assert_nothing_left()

    def begin(self, name, before):
        process = subprocess.Popen([*before, PSCLOUD, "run", "--on", "kubernetes:image=test/any", "--name", name,
                                    "--servers", "1", "--workers", "1", "--secret", "TOKEN", "--stop-grace", "3", "--",
                                    "sh", "-c", killed_launchers.SCRIPT], env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def down(self):
        self.assertTrue(self.cluster.objects["pods"])
        super().down()

    def nothing_is_left(self):
        self.assert_nothing_left()

    @unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        self.kill_at([*range(1, 6), ("fdatasync", 1), ("sendto", 6), ("sendto", 8), ("sendto", 10), "running",
                      "stopping"])

    def test_what_is_not_text_is_refused_before_anything_is_made(self):
        said = self.pscloud("run", "--on", "kubernetes:image=test/any", "--workers", 1, "--", "echo", "\udcff", code=2)
        self.assertIn("the argument '\\xff' of worker-0 is not UTF-8, and Kubernetes takes nothing else", said)
        self.assertEqual(self.cluster.history, [])

    def test_a_certificate_is_as_good_as_a_token(self):
        encoded = {f"client-{name}-data": base64.b64encode((self.home / f"client.{end}").read_bytes()).decode()
                   for name, end in (("certificate", "pem"), ("key", "key"))}
        self.write_kubeconfig(encoded)
        self.pscloud("run", "--on", "kubernetes:image=test/any", "--name", "cert", "--workers", 1, "--", "echo", "hi")
        self.assertIn("hi", self.log("cert", "worker-0"))

    def test_who_may_not_is_told_so(self):
        self.write_kubeconfig({"token": "wrong"})
        said = self.pscloud("run", "--on", "kubernetes:image=test/any", "--workers", 1, "--", "x", code=2)
        self.assertIn("Unauthorized", said)
        self.write_kubeconfig({"token": "let-me-in"})
        said = self.pscloud("run", "--on", "kubernetes:image=test/any,namespace=other", "--workers", 1, "--", "x",
                            code=2)
        self.assertIn("forbidden in other", said)
        self.assertEqual(self.cluster.history, [])

    def test_the_plan_is_a_manifest(self):
        said = self.pscloud("run", "--plan", "--on", "kubernetes:image=test/any", "--secret", "TOKEN", "--servers", 1,
                            "--workers", 2, "--", "echo", "hi")
        manifest = json.loads(said[said.index('{"apiVersion"'):])
        plan = json.loads(self.pscloud("run", "--plan", "--json", "--on", "kubernetes:image=test/any", "--secret",
                                       "TOKEN", "--servers", 1, "--workers", 2, "--", "echo", "hi"))
        self.assertEqual(len(plan["tasks"]), 3)
        self.assertEqual(len(json.loads(plan["preview"])["items"]), len(manifest["items"]))
        self.assertEqual([item["kind"] for item in manifest["items"]],
                         ["Service", "Secret", "Secret", "StatefulSet", "Job"])
        self.assertNotIn("dmVyeS1zZWNyZXQ", said)  # very-secret
        self.assertEqual(self.cluster.history, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
