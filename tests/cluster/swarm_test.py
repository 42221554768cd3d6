#!/usr/bin/env python3
"""Jobs on a Docker Swarm of two real engines (tests/labs/swarm_lab.py): images that know nothing of us, arguments and
secrets, failures, a launcher that is killed, training. Afterwards nothing of ours may be left in the swarm."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "labs"))
import killed_launchers
import swarm_lab
from certificates import make_certificates
from killed_launchers import KilledLaunchers
from swarm_lab import until
from train_test import BATCH, CONFIG

BUILD = pathlib.Path(os.environ.get("PSCLOUD_BUILD", "build/release")).resolve()
PSCLOUD = BUILD / "pscloud"
SECONDS = 90
# What the image runs: a shell that says what it was given, then does as its first argument says.
ENTRYPOINT = r"""#!/bin/sh
for argument in "$@"; do echo "argument: [$argument]"; done
echo "role $PSCLOUD_ROLE rank ${PSCLOUD_RANK:-none} at $PSCLOUD_LISTEN"
trap 'read -r now rest < /proc/uptime; echo "told at $now"; echo "stopped kindly"; exit 0' TERM
case "$PSCLOUD_ROLE" in
server) nc -ll -p "${PSCLOUD_LISTEN##*:}" -e echo here & echo up; while :; do sleep 0.1; done ;;
esac
eval "$1"
"""
# A worker that would not wait for its server could be done, and with it the run, before the server has said a word.
FIND_SERVER = ('at=$PSCLOUD_SERVER_ADDRESSES; '
               'until [ "$(nc "${at%:*}" "${at#*:}" </dev/null)" = here ]; do sleep 0.1; done')


def setUpModule():
    reason = swarm_lab.missing()
    if reason is None and not shutil.which("busybox"):
        reason = "needs busybox-static (tools/setup.sh labs)"
    if reason:
        raise unittest.SkipTest(reason)
    global LAB, WORK
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-swarm-test-"))
    LAB = swarm_lab.SwarmLab(2)
    make_box(LAB)


def tearDownModule():
    if "LAB" in globals():
        LAB.down()
        shutil.rmtree(WORK)


def make_box(lab):
    """An image with a shell and an ENTRYPOINT of its own, for both nodes."""
    root = WORK / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "sleep", "cat", "ls", "stat", "printf", "env", "nc", "echo"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "start").write_text(ENTRYPOINT)
    (root / "start").chmod(0o755)
    subprocess.run(["tar", "-C", root, "-cf", WORK / "box.tar", "."], check=True)
    for node in lab.nodes:
        node.docker("import", "--change", 'ENTRYPOINT ["/start"]', WORK / "box.tar", "test/box:1")


class SwarmCase(unittest.TestCase):
    longMessage = True
    inside = []  # in front of each command

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        self.environment = {**os.environ, "PSCLOUD_HOME": str(self.home), "DOCKER_HOST": LAB.manager.host,
                            "TOKEN_A": "first-very-secret", "TOKEN_B": "second-very-secret",
                            "TOKEN_C": "third-very-secret"}
        self.addCleanup(self.assert_nothing_left)

    def pscloud(self, *arguments, code=0):
        done = subprocess.run([*self.inside, PSCLOUD, *map(str, arguments)], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)
        story = f"{arguments}\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, code, story)
        return done.stdout + done.stderr

    def start(self, *arguments, before=()):
        process = subprocess.Popen([*before, PSCLOUD, *map(str, arguments)], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_box(self, *arguments, **more):
        return self.pscloud("run", "--on", "swarm", "--image", "test/box:1", "--stop-grace", 3, *arguments, **more)

    def log(self, run, task):
        return (self.home / "runs" / run / "logs" / f"{task}.log").read_text()

    def until_says(self, run, task, word):
        path = self.home / "runs" / run / "logs" / f"{task}.log"
        until(lambda: path.exists() and word in path.read_text(), f"word of {task}", SECONDS)

    def leftovers(self):
        manager = LAB.manager
        left = [manager.docker(kind, "ls", "--quiet") for kind in ("service", "secret", "config")]
        left.append(manager.docker("network", "ls", "--quiet", "--filter", "label=pscloud.job"))
        left += [node.docker("ps", "--all", "--quiet") for node in LAB.nodes]
        return [each for each in left if each]

    def assert_nothing_left(self):
        # An engine takes a moment to remove the container of a task that is gone.
        until(lambda: not self.leftovers(), lambda: f"end of {self.leftovers()}", SECONDS)


class SwarmJobs(KilledLaunchers, SwarmCase):
    """What holds for jobs anywhere."""

    def test_an_image_of_others_runs_as_it_is(self):
        words = ["with space", "'single' \"double\"", "two\nlines", "$HOME", "*", "{{.Node.ID}}", "$(ls)", ""]
        self.environment["ODD"] = "{{.Service.Name}} {\"a\":{\"b\":{}}}"
        self.run_box("--name", "odd", "--servers", 1, "--workers", 2, "--env", "ODD", "--",
                     f"env; {FIND_SERVER}; echo done", *words)
        for worker in ("worker-0", "worker-1"):
            log = self.log("odd", worker)
            for word in words:
                self.assertIn(f"argument: [{word}]\n", log)
            self.assertIn('ODD={{.Service.Name}} {"a":{"b":{}}}\n', log)
            self.assertIn("done\n", log)
            self.assertIn(f"at {worker}:20000", log)
        self.assertEqual(self.log("odd", "server-0").splitlines()[-1], "stopped kindly")
        status = json.loads(self.pscloud("status", "--json"))
        self.assertIn("stopped", json.dumps(status))

    def test_an_image_without_a_command_runs_its_own(self):
        for node in LAB.nodes:
            node.docker("import", "--change", 'ENTRYPOINT ["/start"]', "--change", 'CMD ["echo mine", "own"]',
                        WORK / "box.tar", "test/own:1")
        self.pscloud("run", "--on", "swarm:image=test/own:1", "--name", "own", "--workers", 1)
        self.assertIn("argument: [own]\n", self.log("own", "worker-0"))
        self.assertIn("mine\n", self.log("own", "worker-0"))

    def test_secrets_are_files_and_stand_nowhere_else(self):
        secrets = [word for name in ("A", "B", "C") for word in ("--secret", f"TOKEN_{name}")]
        command = ("ls -l /run/secrets; cat $TOKEN_A_FILE $TOKEN_B_FILE $TOKEN_C_FILE; echo .; echo ready; "
                   "sleep 600 & wait")
        process = self.start("run", "--on", "swarm:image=test/box:1", "--name", "hush", "--workers", 2, "--stop-grace",
                             3, *secrets, "--", command)
        for task in ("worker-0", "worker-1"):
            self.until_says("hush", task, "ready")
        shown = subprocess.run(["ps", "axeww"], stdout=subprocess.PIPE, text=True, check=True).stdout
        shown = "\n".join(line for line in shown.splitlines() if "TOKEN_A=" not in line)  # ours: that of the user
        # Those that are still there: the launcher's own calls to nodes come and go.
        services = LAB.manager.docker("service", "ls", "--quiet").split()
        shown += LAB.manager.docker("service", "inspect", *services, check=False)
        for node in LAB.nodes:
            shown += node.docker("inspect", *node.docker("ps", "--quiet").split(), check=False)
        for path in (self.home / "runs/hush").iterdir():
            if path.is_file():
                shown += path.read_text(errors="replace")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 130)
        self.assertIn("TOKEN_A_FILE=/run/secrets/TOKEN_A", shown)
        self.assertNotIn("very-secret", shown)
        log = self.log("hush", "worker-1")
        self.assertIn("first-very-secretsecond-very-secretthird-very-secret.", log)
        self.assertRegex(log, r"-r--------\s+1 0\s+0\s+.*TOKEN_A\n")

    def test_a_worker_that_fails_is_the_root_cause(self):
        command = 'if [ $PSCLOUD_RANK = 1 ]; then echo "cannot read data" >&2; exit 7; fi; sleep 60 & wait'
        said = self.run_box("--name", "bad", "--servers", 1, "--workers", 3, "--", command, code=1)
        self.assertRegex(said, r"worker-1 on node\d failed: exit code 7")
        self.assertIn("cannot read data", said)
        for task in ("server-0", "worker-0", "worker-2"):
            self.assertIn("role ", self.log("bad", task))

    def test_a_missing_image_is_named_with_its_node(self):
        said = self.pscloud("run", "--on", "swarm", "--image", "test/nobody:9", "--workers", 1, "--", "x", code=3)
        self.assertRegex(said, r"node\d has no image test/nobody:9")

    def begin(self, name, before):
        return self.start("run", "--on", "swarm:image=test/box:1", "--name", name, "--servers", 1, "--workers", 1,
                          "--secret", "TOKEN_A", "--stop-grace", 3, "--", "echo here; sleep 2", before=before)

    def down(self):
        self.assertTrue(self.leftovers())
        super().down()

    def nothing_is_left(self):
        self.assert_nothing_left()

    @unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        # From the fourth request on it asks for a network, a secret and two services.
        self.kill_at([1, ("fdatasync", 1), ("sendto", 5), ("sendto", 7), 3, 4, "running", "stopping"])

    def test_an_interruption_stops_all(self):
        process = self.start("run", "--on", "swarm:network=host,image=test/box:1", "--name", "cut", "--servers", 2,
                             "--workers", 1, "--stop-grace", 3, "--", "echo here; sleep 600 & wait")
        for task in ("worker-0", "server-0", "server-1"):
            self.until_says("cut", task, "role ")
        until(lambda: self.step_of("cut") == "running", "run of all", SECONDS)
        # On the nodes' own network everybody has an address of theirs.
        at = re.search(r"at 10\.77\.0\.[12]:(\d+)", self.log("cut", "worker-0"))
        self.assertTrue(at)
        # And a port that no other job can take, though that should start at the same moment.
        self.assertIn(f"pscloud-port-{at[1]}", LAB.manager.docker("config", "ls", "--format", "{{.Name}}").split())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 130)
        # On both nodes: that of the engine we speak to, and one that only the swarm reaches.
        for task in ("worker-0", "server-0", "server-1"):
            self.assertEqual(self.log("cut", task).splitlines()[-1], "stopped kindly", task)

    def test_servers_are_told_when_the_last_worker_has_ended(self):
        # One on each node: those of a job go to the nodes in turn. The image's user may do nothing with its engine.
        for node in LAB.nodes:
            node.docker("import", "--change", 'ENTRYPOINT ["/start"]', "--change", "USER 1000:1000", "--change",
                        "WORKDIR /bin", WORK / "box.tar", "test/user:1")
        # A busy machine can make it later, and nothing makes it sooner: one of three is proof.
        for number in range(3):
            run = f"told{number}"
            self.pscloud("run", "--on", "swarm:network=host,image=test/user:1", "--name", run, "--servers", 2,
                         "--workers", 1, "--", 'sleep 2; read -r now rest < /proc/uptime; echo "ended at $now"')
            ended = float(self.log(run, "worker-0").rsplit("ended at ", 1)[1])
            tasks = {task["task"]: task for task in self.status_of(run)["tasks"]}
            self.assertEqual({tasks[f"server-{n}"]["host"] for n in (0, 1)}, {"node1", "node2"})
            took = {}
            for task in ("server-0", "server-1"):
                took[tasks[task]["host"]] = float(self.log(run, task).split("told at ")[1].split()[0]) - ended
                self.assertEqual(tasks[task]["state"], "stopped")
            print("SIGTERM after", {host: f"{seconds:.2f} s" for host, seconds in sorted(took.items())}, flush=True)
            if max(took.values()) < 1:
                return
        self.fail("each time it took more than a second")

    def test_who_cannot_be_asked_on_its_node_is_ended_by_the_swarm(self):
        for socket in ("/nowhere/docker.sock", "off"):
            with self.subTest(socket):
                name = f"slow{len(socket)}"
                self.pscloud("run", "--on", f"swarm:network=host,image=test/box:1,socket={socket}", "--name", name,
                             "--servers", 2, "--workers", 1, "--", FIND_SERVER.replace(
                                 "$PSCLOUD_SERVER_ADDRESSES", "${PSCLOUD_SERVER_ADDRESSES%,*}"))
                for task in ("server-0", "server-1"):
                    self.assertEqual(self.log(name, task).splitlines()[-1], "stopped kindly", task)

    def test_a_second_interruption_kills_on_all_nodes(self):
        process = self.start("run", "--on", "swarm:network=host,image=test/box:1", "--name", "deaf", "--workers", 2,
                             "--stop-grace", 60, "--", "trap 'echo no' TERM; echo here; while :; do sleep 0.1; done")
        for task in ("worker-0", "worker-1"):
            self.until_says("deaf", task, "here\n")
        until(lambda: self.step_of("deaf") == "running", "run of all", SECONDS)
        process.send_signal(signal.SIGINT)
        for task in ("worker-0", "worker-1"):
            self.until_says("deaf", task, "no\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(45), 130)

    def test_others_are_not_touched(self):
        LAB.manager.docker("service", "create", "--quiet", "--detach", "--name", "precious", "--label",
                           "pscloud.job=no", "--no-resolve-image", "test/box:1", "sleep 600")
        try:
            self.run_box("--name", "polite", "--workers", 1, "--", "echo hi")
            self.assertIn("precious", LAB.manager.docker("service", "ls", "--format", "{{.Name}}"))
        finally:
            LAB.manager.docker("service", "rm", "precious")


class SwarmWays(SwarmCase):
    """Ways to an engine, the image of pscloud, and training."""

    def test_an_engine_is_reached_by_tls(self):
        self.environment.update(DOCKER_HOST=f"tcp://{LAB.manager.address}:2376", DOCKER_TLS_VERIFY="1",
                                DOCKER_CERT_PATH=str(LAB.certificates))
        self.inside = LAB.manager.enter()
        self.run_box("--name", "tls", "--workers", 1, "--", "echo by tls")
        self.assertIn("by tls\n", self.log("tls", "worker-0"))
        # Who does not prove who he is gets nothing; nor does a server that others have signed.
        other = self.home / "other"
        other.mkdir()
        make_certificates(other, LAB.manager.address)
        for kind, end in (("cert", "pem"), ("key", "key")):
            (other / f"{kind}.pem").symlink_to(f"client.{end}")
        self.environment["DOCKER_CERT_PATH"] = str(other)
        said = self.run_box("--workers", 1, "--", "echo", code=1)
        self.assertIn("certificate", said)

    @unittest.skipUnless(os.path.exists("/usr/sbin/sshd"), "needs openssh-server")
    def test_an_engine_is_reached_by_ssh(self):
        # A real ssh to a real sshd, which listens nowhere: ssh starts it and talks to it by a pipe.
        ssh = self.home / "ssh"
        ssh.mkdir(mode=0o700)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / name], check=True)
        (ssh / "authorized").write_text((ssh / "user.pub").read_text())
        (ssh / "known").write_text("lab " + (ssh / "host.pub").read_text())
        (ssh / "sshd").write_text("\n".join((f"HostKey {ssh}/host", f"AuthorizedKeysFile {ssh}/authorized", "UsePAM no",
                                             "StrictModes no", "PermitRootLogin yes", "PidFile none",
                                             f"SetEnv DOCKER_HOST={LAB.manager.host}", "")))
        (ssh / "config").write_text("\n".join(("Host lab", f" ProxyCommand /usr/sbin/sshd -i -f {ssh}/sshd",
                                               f" IdentityFile {ssh}/user", f" UserKnownHostsFile {ssh}/known",
                                               " StrictHostKeyChecking yes", "")))
        wrapper = ssh / "bin/ssh"
        wrapper.parent.mkdir()
        wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {ssh}/config "$@"\n')
        wrapper.chmod(0o755)
        self.environment.update(PATH=f"{wrapper.parent}:{os.environ['PATH']}", DOCKER_HOST="ssh://root@lab")
        self.run_box("--name", "far", "--workers", 2, "--", "echo by ssh")
        self.assertIn("by ssh\n", self.log("far", "worker-1"))
        (ssh / "known").write_text("")
        said = self.run_box("--workers", 1, "--", "echo", code=3)
        self.assertIn("ssh://root@lab", said)

    def load_our_image(self):
        hosts = [word for node in LAB.nodes for word in ("--load", node.host)]
        self.pscloud("image", "build", "test/pscloud:1", *hosts)

    def test_our_image_is_the_same_each_time_and_runs(self):
        for name in ("one", "two"):
            self.pscloud("image", "build", "test/pscloud:1", "--output", self.home / f"{name}.tar")
        self.assertEqual((self.home / "one.tar").read_bytes(), (self.home / "two.tar").read_bytes())
        self.load_our_image()
        said = self.pscloud("run", "--on", "swarm:image=test/pscloud:1", "--name", "own-image", "--workers", 2, "--",
                            "pscloud", "version")
        self.assertIn("pscloud", self.log("own-image", "worker-1"), said)

    def test_training_is_that_of_here(self):
        data = self.home / "data"
        data.mkdir()
        self.pscloud("data", "generate", data / "train", "--examples", 20000, "--keys", 5000, "--files", 3)
        for name, text in (("one", CONFIG), ("all", BATCH)):
            for where in ("here", "there"):
                (data / where).mkdir(exist_ok=True)
                config = text.replace('"train-', f'"{data}/train-').replace('"model"', f'"{data}/{where}/model"')
                (data / f"{name}-{where}.conf").write_text(config)
        self.load_our_image()
        on = ("--on", f"swarm:image=test/pscloud:1,mount={data}", "--servers", 2, "--json")
        # Online training with one worker makes the same model, to the byte; batch training with any number.
        self.pscloud("train", data / "one-here.conf", "--servers", 2, "--workers", 1)
        self.pscloud("train", data / "one-there.conf", *on, "--workers", 1)
        self.assertEqual(model_in(data / "there"), model_in(data / "here"))
        here = json.loads(self.pscloud("train", data / "all-here.conf", "--servers", 2, "--workers", 3,
                                       "--json").splitlines()[0])
        there = self.pscloud("train", data / "all-there.conf", *on, "--name", "batch", "--workers", 3)
        there = json.loads(next(line for line in there.splitlines() if line.startswith("{")))
        self.assertEqual(there["examples"], here["examples"])
        self.assertEqual(there["objective"], here["objective"])
        self.assertEqual(model_in(data / "there"), model_in(data / "here"))
        for task in ("scheduler-0", "server-0", "server-1", "worker-0", "worker-1", "worker-2"):
            self.assertNotIn("PRIVATE KEY", self.log("batch", task))


def model_in(folder):
    """The weights, whoever wrote them where."""
    lines = sorted(line for part in folder.glob("model_S*") for line in part.read_text().splitlines())
    assert len(lines) > 100, folder
    return lines


if __name__ == "__main__":
    unittest.main(verbosity=2)
