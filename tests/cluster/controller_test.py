"""`pscloud run --controller`: a controller looks after a run while nobody else does. Here on this machine; with `Lab`,
on a host that is reached by a real ssh (labs/ssh_lab.py)."""

import json
import os
import pathlib
import signal
import ssl
import sys
import unittest

from console_harness import Api, Events
from launch_harness import PSCLOUD, LaunchTest, marked_processes, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))

import machines  # noqa: E402
import ssh_lab  # noqa: E402

STAY = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done"
# An ssh to this machine, which takes its time: until there is a file.
SLOW_SSH = """#!/bin/sh
while ! [ -e {go} ]; do sleep 0.02; done
for last; do :; done
exec sh -c "$last"
"""
TRAIN = """
training_data {{ format: TEXT text: LIBSVM file: "{data}-.*" }}
model_output {{ format: TEXT file: "{model}" }}
loss {{ type: LOGIT }}
learning_rate {{ type: DECAY alpha: 0.1 beta: 1 }}
async_sgd {{ algo: FTRL minibatch: 100 }}
"""


class ControllerCase(LaunchTest):
    """What both have in common: how a controller is started from here and asked."""

    where = ("local",)

    def start_run(self, name, *words, linger=600, workers=2, **variables):
        """Comes back when the command has."""
        out = self.pscloud("run", "--detach", "--controller", *self.where, "--linger", linger, "--name", name,
                           "--workers", workers, *words, **variables)
        self.assertEqual(out, f"{name}\n")
        access = json.loads((self.home / "controllers" / f"{name}.json").read_text())
        ca = self.home / f"{name}.pem"
        ca.write_text(access["ca"])
        self.addCleanup(self.end_controller, name)
        return access, ca

    def end_controller(self, name):
        self.start(PSCLOUD, "stop", name, "--at-once", "--controller", name).wait(60)


class Local(ControllerCase):
    def controllers(self):
        """Their processes: those whose home is this test's."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (f"PSCLOUD_HOME={self.home}".encode() in (process / "environ").read_bytes()
                        and b"\0controller\0--take\0" in (process / "cmdline").read_bytes()):
                    found.append(int(process.name))
            except OSError:
                pass
        return found

    def test_it_serves_over_tls_and_ends_after_the_run(self):
        script = self.work / "say.sh"
        script.write_text("#!/bin/sh\necho shipped\n" + STAY)
        script.chmod(0o755)
        (self.work / "here.json").write_text('{"target": "local", "cost_usd_per_hour": 3600}')
        access, ca = self.start_run("going", "--on", "here.json", "--file", "say.sh", "--secret", "SECRET", "--",
                                    "./say.sh", linger=0, SECRET="hidden-value")
        script.unlink()  # it has its own
        self.assertEqual(oct((self.home / "controllers/going.json").stat().st_mode & 0o777), "0o600")
        api = Api(access["url"], access["token"], str(ca))
        self.assertTrue(api.json("/api/about")["controller"])
        self.assertEqual(api.ask("GET", "/api/runs", token="0" * 64)[0], 401)
        with self.assertRaises(ssl.SSLError):
            Api(access["url"], access["token"]).ask("GET", "/api/runs")  # who does not know its CA
        there = ("--controller", "going")
        until(lambda: "shipped" in self.pscloud("logs", "going", *there), "the first lines")
        status = self.pscloud("status", "going", *there)
        self.assertIn("running", status)
        self.assertRegex(status, r"\ncost \d+\.\d\d USD, 3600\.00 an hour\n")
        self.check_console("going")
        for pid in self.controllers():
            for what in ("cmdline", "environ"):
                shown = pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
                self.assertNotIn(b"hidden-value", shown)
                self.assertNotIn(access["token"].encode(), shown)
        seen = []
        stream = Events(api, "/api/runs/going/stream?logs=all&from=start", lambda name, data: seen.append(name))
        self.assertEqual(api.ask("POST", "/cleanup", body=b"")[2], b"cleanup in progress")
        stream.join(30)
        self.assertIn("end", seen)
        until(lambda: not self.controllers(), "the end of the controller")
        self.assertEqual(self.state("going")["state"], "interrupted")
        self.assertEqual(list(self.home.glob("controller-*")), [])  # keys and files are gone

    def check_console(self, run):
        """The page stands on the loopback of who looks at it: no browser knows the CA of a controller."""
        console = self.start(PSCLOUD, "console", "--controller", run)
        url = until(lambda: console.out.read_text().strip(), lambda: self.story(console))
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/#token=")
        page = Api(url.partition("/#")[0], url.partition("token=")[2])
        self.assertIn(b"<!doctype html>", page.ask("GET", "/", token="")[2].lower())
        self.assertTrue(page.json("/api/about")["controller"])
        self.assertEqual(page.ask("GET", "/api/runs", token="0" * 64)[0], 401)
        self.assertEqual(page.post("/api/runs/nobody/stop", Origin=f"http://127.0.0.1:{page.port}")[0], 404)
        self.assertEqual(page.post("/api/runs/nobody/stop", Origin="http://evil.example")[0], 403)
        seen = []
        stream = Events(page, f"/api/runs/{run}/stream?logs=all&from=start", lambda name, data: seen.append(name))
        until(lambda: "lines" in seen, "a stream over it")
        console.send_signal(signal.SIGINT)
        self.ends(console)
        stream.join(30)
        self.assertFalse(stream.is_alive())

    def test_paddles_paths_mean_the_controllers_own_run(self):
        older, ca = self.start_run("older", "--", "sh", "-c", STAY, linger=0, workers=1)
        newer, newer_ca = self.start_run("newer", "--", "sh", "-c", STAY, linger=0, workers=1)
        api = Api(older["url"], older["token"], str(ca))
        self.assertEqual(api.ask("POST", "/cleanup", body=b"")[2], b"cleanup in progress")
        until(lambda: not (self.run_folder("older") / "open").exists(), "the end of the run whose controller was asked")
        self.assertEqual(self.state("older")["state"], "interrupted")
        until(lambda: len(self.controllers()) == 2, "the end of that controller")  # one, and its launcher
        self.assertEqual(self.state("newer")["state"], "running")
        # Nor does a controller end for the sake of another's run.
        third, third_ca = self.start_run("third", "--", "sh", "-c", STAY, workers=1)
        api = Api(newer["url"], newer["token"], str(newer_ca))
        self.assertEqual(api.post("/api/runs/third/cleanup")[0], 202)
        until(lambda: self.state("third")["state"] == "interrupted", "the end of the third run")
        self.assertEqual(self.state("newer")["state"], "running")

    def test_a_launcher_that_is_killed_is_cleaned_up_after(self):
        access, ca = self.start_run("killed", "--", "sh", "-c", f"setsid sleep 1000 & {STAY}", linger=0)
        os.kill(int((self.run_folder("killed") / "lock").read_text()), signal.SIGKILL)
        until(lambda: not (self.run_folder("killed") / "open").exists(), "what is left to be removed")
        until(lambda: not self.controllers(), "the end of the controller")
        self.assertEqual(self.state("killed")["state"], "lost")
        self.assertEqual(list(self.home.glob("controller-*")), [])

    def test_a_controller_that_is_killed_leaves_the_run_to_its_launcher(self):
        go = self.home / "go"
        self.start_run("orphan", "--", "sh", "-c", f"while ! [ -e {go} ]; do sleep 0.02; done", workers=1)
        launcher = int((self.run_folder("orphan") / "lock").read_text())
        for pid in self.controllers():
            if pid != launcher:
                os.kill(pid, signal.SIGKILL)
        until(lambda: self.controllers() == [launcher], "the end of the controller")
        go.write_text("")
        until(lambda: not (self.run_folder("orphan") / "open").exists(), "the end of the run")
        self.assertEqual(self.state("orphan")["state"], "done")
        until(lambda: not self.controllers(), "the end of the launcher")
        self.assertEqual(list(self.home.glob("controller-*")), [])  # keys and files are gone

    def test_who_is_killed_before_it_was_told_leaves_no_run(self):
        """Nobody would ever have the token."""
        go, tools = self.home / "go", self.home / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(SLOW_SSH.format(go=go))
        (tools / "ssh").chmod(0o755)
        laptop = self.start(PSCLOUD, "run", "--controller", "local", "--on", "ssh:somewhere", "--name", "never",
                            "--workers", 1, "--", "sh", "-c", STAY,
                            PATH=f"{tools}:{self.environment['PATH']}", HOME=str(self.home))
        until(lambda: (self.run_folder("never") / "state.json").exists(), lambda: self.story(laptop))
        self.kill(laptop)
        go.write_text("")
        until(lambda: not self.controllers(), "the end of the controller")
        self.assertFalse((self.run_folder("never") / "open").exists())
        self.assertEqual(self.state("never")["state"], "interrupted")
        self.assertEqual(marked_processes(self.state("never")["job"]), {})

    def test_training_goes_on_in_the_folder_of_who_asks(self):
        self.pscloud("data", "generate", "data", "--examples", 500, "--keys", 100)
        (self.work / "clicks.conf").write_text(TRAIN.format(data="data", model="model/clicks"))
        self.pscloud("train", "clicks.conf", "--workers", 2, "--controller", "local", "--linger", 0)
        until(lambda: not self.controllers(), "the end of the controller")
        self.assertEqual(self.state("clicks")["state"], "done")
        self.assertTrue(list((self.work / "model").glob("clicks*")))

    def test_a_job_that_cannot_start_is_told_at_once(self):
        run = self.start(PSCLOUD, "run", "--controller", "local", "--name", "wrong", "--workers", 1, "--",
                         "./no_such_program")
        run.wait(60)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no_such_program", self.story(run))
        self.assertEqual(list(self.home.glob("controller*")), [])
        until(lambda: not self.controllers(), "the end of the controller")


@unittest.skipIf(ssh_lab.missing(), ssh_lab.missing())
class Lab(ControllerCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = ssh_lab.SshLab(3)
        cls.outside = staticmethod(lambda words: cls.lab.outside_command(*words))

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def setUp(self):
        super().setUp()
        first, *others = [{"address": machine.address, "name": machine.name} for machine in self.lab.machines]
        self.where = (str(self.lab.cluster_file(self.home / "controller.json", hosts=[first])),)
        # What HOST finds there is its own: its keys, and the hosts that it knows.
        self.others = self.lab.cluster_file(self.home / "others.json", hosts=others, options={})
        self.before = set(self.lab.processes_of(self.lab.first))
        self.there = self.lab.root_of(self.lab.first) / ssh_lab.HOME / ".local/state/pscloud"

    def test_a_run_goes_on_without_the_laptop_and_ends_well(self):
        script = self.work / "work.sh"
        script.write_text("#!/bin/sh\nuname -n\nwhile ! [ -e /tmp/go ]; do sleep 0.02; done\necho finished\n")
        script.chmod(0o755)
        (self.lab.root_of(self.lab.first) / "tmp/go").unlink(missing_ok=True)
        access, ca = self.start_run("alone", "--file", "work.sh", "--", "./work.sh", linger=2)
        self.assertIn(self.lab.first.address, access["url"])
        self.assertEqual(self.pscloud("logs", "alone", "worker-1", "--controller", "alone"), "host1\n")
        # The laptop is gone: its network too, and whatever it has started there through ssh.
        self.lab.cut_off(self.lab.first)
        for pid, (command, _) in self.lab.processes_of(self.lab.first).items():
            if pid not in self.before and "sshd:" in command:
                os.kill(pid, signal.SIGKILL)
        (self.lab.root_of(self.lab.first) / "tmp/go").write_text("")
        state = self.there / "runs/alone/state.json"
        until(lambda: json.loads(state.read_text())["state"] == "done", state.read_text)
        self.assertEqual((self.there / "runs/alone/logs/worker-0.log").read_text(), "host1\nfinished\n")
        until(lambda: not set(self.lab.processes_of(self.lab.first)) - self.before,
              lambda: f"the end of {self.lab.processes_of(self.lab.first)}")
        self.assertEqual(list(self.there.glob("controller-*")), [])
        self.lab.plug_in(self.lab.first)

    def give_key(self):
        """The controller's host may log in on the others."""
        folder = self.lab.root_of(self.lab.first) / ssh_lab.HOME / ".ssh"
        for name, source in (("id_ed25519", self.lab.key), ("known_hosts", self.lab.known_hosts)):
            (folder / name).write_bytes(source.read_bytes())
            (folder / name).chmod(0o600)
            os.chown(folder / name, machines.USER, machines.USER)
            self.addCleanup((folder / name).unlink)

    def until_alone(self, before):
        until(lambda: not any(set(self.lab.processes_of(machine)) - before[machine] for machine in self.lab.machines),
              lambda: f"the end of {[self.lab.processes_of(machine) for machine in self.lab.machines]}")

    def test_it_places_tasks_on_other_hosts(self):
        self.give_key()
        before = {machine: set(self.lab.processes_of(machine)) for machine in self.lab.machines}
        script = self.work / "work.sh"
        script.write_text("#!/bin/sh\nuname -n\n")
        script.chmod(0o755)
        self.start_run("afar", "--on", self.others, "--file", "work.sh", "--", "./work.sh", linger=0)
        state = self.there / "runs/afar/state.json"
        until(lambda: json.loads(state.read_text())["state"] == "done", state.read_text)
        hosts = {(self.there / f"runs/afar/logs/worker-{n}.log").read_text() for n in range(2)}
        self.assertEqual(hosts, {"host2\n", "host3\n"})
        self.until_alone(before)

    def test_it_trains_on_other_hosts(self):
        self.give_key()
        before = {machine: set(self.lab.processes_of(machine)) for machine in self.lab.machines}
        common = self.lab.common
        self.pscloud("data", "generate", common / "data", "--examples", 500, "--keys", 100)
        (self.work / "clicks.conf").write_text(TRAIN.format(data=common / "data", model=common / "model/clicks"))
        self.pscloud("train", "clicks.conf", "--workers", 2, "--on", self.others, "--controller", *self.where,
                     "--linger", 0)
        state = self.there / "runs/clicks/state.json"
        until(lambda: json.loads(state.read_text())["state"] == "done", state.read_text)
        self.assertTrue(list((common / "model").glob("clicks*")))
        self.until_alone(before)

    def test_a_key_that_it_lacks_is_told_at_once(self):
        run = self.start(PSCLOUD, "run", "--controller", *self.where, "--on", self.others, "--name", "locked",
                         "--workers", 2, "--", "true")
        run.wait(60)
        self.assertEqual(run.returncode, 3, self.story(run))
        self.assertIn("host key is not known", self.story(run))


if __name__ == "__main__":
    unittest.main()
