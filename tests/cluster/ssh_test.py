"""`pscloud run` and `psd_run` on four hosts by ssh: real sshds, each on a machine of its own (labs/ssh_lab.py)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import killed_launchers
from harness import SLOW
from killed_launchers import KilledLaunchers
from launch_harness import PSCLOUD, SECONDS, LaunchTest, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))

import ssh_lab  # noqa: E402

ARGUMENTS = ["a b", "'\"", "$HOME", "*", "two\nlines", "\\", "", "`id`", "~", "-x", "; true"]
SAY = "import sys, json; print(json.dumps(sys.argv[1:]))"
STAY = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done"
# All workers connect to all servers, at the addresses they were told.
TALK = r"""
import os, socket, sys
role, me = os.environ["PSCLOUD_ROLE"], os.environ["PSCLOUD_LISTEN"].rsplit(":", 1)
if role == "server":
    listener = socket.create_server((me[0], int(me[1])))
    for _ in range(int(os.environ["PSCLOUD_WORKERS"])):
        listener.accept()[0].sendall(b"hello from " + os.uname().nodename.encode())
else:
    for address in os.environ["PSCLOUD_SERVER_ADDRESSES"].split(","):
        host, port = address.rsplit(":", 1)
        for attempt in range(500):
            try:
                connection = socket.create_connection((host, int(port)), 10)
                break
            except ConnectionRefusedError:
                import time
                time.sleep(0.02)
        print(connection.makefile().read(), flush=True)
"""
# A server says when it is told to stop, a worker when it ends.
TIMES = """if [ "$PSCLOUD_ROLE" = server ]; then trap 'date +%s.%N; exit 0' TERM; while :; do sleep 0.02; done; fi
sleep 2; date +%s.%N"""
LOST_AFTER_S = 4
CONFIG = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 50 }
"""
BATCH = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
penalty { type: L1 lambda: 10 }
darlin { max_pass_of_data: 40 epsilon: 1e-5 }
"""


@unittest.skipIf(ssh_lab.missing(), ssh_lab.missing())
class SshTest(KilledLaunchers, LaunchTest):
    @classmethod
    def setUpClass(cls):
        cls.lab = ssh_lab.SshLab(4)
        cls.outside = staticmethod(lambda words: cls.lab.outside_command(*words))

    @classmethod
    def tearDownClass(cls):
        folder = cls.lab.folder
        cls.lab.down()
        assert not folder.exists()

    def setUp(self):
        super().setUp()
        self.cluster = self.lab.cluster_file(self.home / "cluster.json")
        # A host that is as it was before its first job.
        self.before = {machine.name: set(self.lab.processes_of(machine)) for machine in self.lab.machines}

    def left_on(self, machine):
        return {pid: text for pid, text in self.lab.processes_of(machine).items()
                if pid not in self.before[machine.name]}

    def assert_nothing_left(self, *but):
        for machine in self.lab.machines:
            if machine in but:
                continue
            until(lambda: not self.left_on(machine), lambda: f"the end of {self.left_on(machine)} on {machine.name}")
            root = self.lab.root_of(machine)
            files = [path for path in root.glob("tmp/*") if path.name != self.lab.folder.name]
            self.assertEqual(files, [], machine.name)
            self.assertEqual(list((root / ssh_lab.HOME).glob(".cache/pscloud/jobs/*")), [], machine.name)
            self.assertEqual(list((root / ssh_lab.HOME).glob(".cache/pscloud/*.[0-9]*")), [], machine.name)

    def run_on(self, *words, cluster=None, code=0, **variables):
        return self.ends(self.start(PSCLOUD, "run", "--on", cluster or self.cluster, *words, **variables), code)

    def test_arguments_arrive_as_they_are(self):
        self.run_on("--name", "args", "--workers", 4, "--", "python3", "-c", SAY, *ARGUMENTS)
        for number in range(4):
            self.assertEqual(json.loads(self.log("args", f"worker-{number}")), ARGUMENTS)
        # Bytes that are no text too, there and back.
        self.run_on("--name", "bytes", "--workers", 4, "--secret", "ODD", "--env", "ODD2=\udcff", "--", "sh", "-c",
                    'printf "%s\\n" "$1" "$ODD2"; cat "$ODD_FILE"', "-", "\udcfe\udcc3(", ODD="\udcff\udcc3(")
        for number in range(4):
            log = (self.run_folder("bytes") / f"logs/worker-{number}.log").read_bytes()
            self.assertEqual(log, b"\xfe\xc3(\n\xff\n\xff\xc3(\n")
        self.assert_nothing_left()

    def test_tasks_reach_each_other_and_hosts_need_nothing_of_ours(self):
        self.run_on("--name", "talk", "--servers", 2, "--workers", 3, "--", "python3", "-c", TALK)
        for number in range(3):
            self.assertEqual(sorted(self.log("talk", f"worker-{number}").split("\n")),
                             ["", "hello from host1", "hello from host2"])
        self.run_on("--name", "own", "--workers", 4, "--", "pscloud", "version")
        self.assertIn("pscloud", self.log("own", "worker-3"))
        self.assert_nothing_left()

    def test_servers_are_told_within_a_second_of_the_last_workers_end(self):
        # A busy machine can make it later, and nothing makes it sooner: one of three is proof.
        for run in ("told0", "told1", "told2"):
            done = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", run, "--servers", 2, "--workers", 3, "--",
                              "sh", "-c", TIMES)
            self.ends(done)
            self.assertIn("3 done, 2 stopped", self.story(done))
            # A shell whose `sleep` is ended says so too.
            times = {task: next(float(word) for word in self.log(run, task).split() if word[0].isdigit())
                     for task in ("server-0", "server-1", "worker-0", "worker-1", "worker-2")}
            took = (max(times["server-0"], times["server-1"]) -
                    max(times[f"worker-{number}"] for number in range(3)))
            print(f"the servers heard of the last worker's end after {took:.2f} s", flush=True)
            if took < 1 * SLOW:
                break
        self.assertLess(took, 1 * SLOW)
        self.assert_nothing_left()

    def test_the_first_failure_is_the_cause(self):
        run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", "fails", "--servers", 1, "--workers", 2, "--",
                         "sh", "-c", f'[ "$PSCLOUD_TASK" = worker-1 ] || {{ {STAY}; }}; '
                         "echo something is wrong here >&2; exit 7")
        self.ends(run, 1)
        self.assertIn("worker-1 on host3 failed: exit code 7; stopping the rest", self.story(run))
        self.assertIn("the last lines of worker-1:\n    something is wrong here\n", self.story(run))
        state = self.state("fails")
        self.assertEqual(state["root_cause"], "worker-1")
        self.assertEqual([task["state"] for task in state["tasks"]], ["stopped", "stopped", "failed"])
        self.assert_nothing_left()

    def test_tasks_are_measured_where_they_run(self):
        self.run_on("--name", "seen", "--workers", 4, "--", "sh", "-c", "sleep 1.5")
        rows = [line.split(",") for line in (self.run_folder("seen") / "samples.csv").read_text().splitlines()]
        for number in range(4):
            figures = {name for _, task, name, _ in rows if task == f"worker-{number}"}
            self.assertLessEqual({"cpu_percent", "memory_bytes"}, figures)
        self.assert_nothing_left()

    def test_many_tasks_start_within_seconds(self):
        self.run_on("--name", "warm", "--workers", 4, "--", "true")  # the bundle is copied once
        start = time.monotonic()
        self.run_on("--quiet", "--name", "many", "--workers", 64, "--", "true")
        took = time.monotonic() - start
        print(f"64 tasks on 4 hosts, from the command to its end: {took:.1f} s", flush=True)
        self.assertLess(took, 10)
        self.assert_nothing_left()

    def test_no_secret_is_in_any_process_list(self):
        secrets = {f"SECRET_{n}": f"hidden-{n}-{os.getpid()}" for n in range(3)}
        flags = [word for name in secrets for word in ("--secret", name)]
        run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", "secret", *flags, "--workers", 4, "--", "sh",
                         "-c", f'cat "$SECRET_0_FILE" "$SECRET_1_FILE" "$SECRET_2_FILE"; echo; {STAY}', **secrets)
        for number in range(4):
            self.until_says("secret", f"worker-{number}", "up", run)
            self.assertIn("".join(secrets.values()), self.log("secret", f"worker-{number}"))
        looked_at = 0
        for machine in self.lab.machines:
            for words, variables in self.lab.processes_of(machine).values():
                looked_at += 1
                for value in secrets.values():
                    self.assertNotIn(value, words + variables)
        self.assertGreater(looked_at, 12)
        run.send_signal(signal.SIGINT)
        self.ends(run, 130)
        self.assert_nothing_left()

    def test_ctrl_c_twice_ends_at_once(self):
        run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", "twice", "--workers", 4, "--stop-grace", 50,
                         "--", "sh", "-c", "trap 'echo no' TERM; echo up; while :; do sleep 0.02; done")
        for number in range(4):
            self.until_says("twice", f"worker-{number}", "up", run)
        run.send_signal(signal.SIGINT)
        for number in range(4):
            self.until_says("twice", f"worker-{number}", "no", run)
        began = time.monotonic()
        run.send_signal(signal.SIGINT)
        self.ends(run, 130)
        self.assertLess(time.monotonic() - began, 10 * SLOW)
        self.assertEqual({task["exit_code"] for task in self.state("twice")["tasks"]}, {137})
        self.assert_nothing_left()

    def test_nothing_is_left_when_the_launcher_is_killed(self):
        for wait_for_end in (True, False):
            name = f"killed-{wait_for_end}".lower()
            run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", name, "--workers", 4, "--", "sh", "-c",
                             f"setsid sleep 1000 & sleep 1000 & {STAY}")
            for number in range(4):
                self.until_says(name, f"worker-{number}", "up", run)
            self.kill(run)
            if wait_for_end:
                self.assert_nothing_left()  # the agents see to it
            self.pscloud("down")
            self.assert_nothing_left()
            self.assertIn(name, self.pscloud("status", "--all"))

    def begin(self, name, before):
        return self.start(*before, PSCLOUD, "run", "--on", self.cluster, "--name", name, "--servers", 1, "--workers", 1,
                          "--", "sh", "-c", killed_launchers.SCRIPT)

    def nothing_is_left(self):
        self.assert_nothing_left()

    @unittest.skipIf(killed_launchers.missing(), killed_launchers.missing())
    def test_kill_9_at_each_step_leaves_nothing_that_down_does_not_remove(self):
        self.kill_at([1, 2, ("fdatasync", 2), 4, 5, ("write", 4), ("write", 8), ("write", 16), "running", "stopping"])

    def test_down_finds_what_killed_agents_have_left(self):
        run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", "agents", "--workers", 4, "--", "sh", "-c",
                         f"setsid sleep 1000 & {STAY}")
        for number in range(4):
            self.until_says("agents", f"worker-{number}", "up", run)
        run.send_signal(signal.SIGSTOP)  # it must not clean up meanwhile
        for machine in self.lab.machines:
            for pid, (words, _) in self.left_on(machine).items():
                if "\0task\0" in words:
                    os.kill(pid, signal.SIGKILL)
        self.kill(run)
        self.assertTrue(any(self.left_on(machine) for machine in self.lab.machines))
        self.pscloud("down")
        self.assert_nothing_left()

    def test_a_host_that_is_cut_off_is_named(self):
        cluster = self.lab.cluster_file(self.home / "short.json", options={
            "ssh_config": str(self.lab.ssh_config), "lost_after": str(LOST_AFTER_S)})
        run = self.start(PSCLOUD, "run", "--on", cluster, "--name", "cut", "--workers", 4, "--stop-grace", 1, "--",
                         "sh", "-c", STAY)
        for number in range(4):
            self.until_says("cut", f"worker-{number}", "up", run)
        third = self.lab.machines[2]
        self.lab.cut_off(third)
        try:
            self.ends(run, 1)
            self.assertIn("host3 is lost", self.story(run))
            self.assertIn("left: perhaps processes on host3", self.story(run))
            self.assert_nothing_left(third)
            # Its agent hears nothing any more and ends the task by itself.
            until(lambda: not [words for words, _ in self.left_on(third).values() if "sshd" not in words],
                  lambda: f"the end of {self.left_on(third)}")
        finally:
            self.lab.plug_in(third)
        until(lambda: self.lab.answers(third), "host3")
        self.pscloud("down")
        self.assertNotIn("left", self.pscloud("status"))

    def test_what_is_wrong_with_hosts_is_said_before_anything_starts(self):
        hosts = [{"address": self.lab.machines[0].address, "name": "good"},
                 {"address": self.lab.machines[1].address, "name": "stranger", "user": "nobody-here"},
                 {"address": f"{self.lab.network}.77", "name": "nobody"}]
        cluster = self.lab.cluster_file(self.home / "wrong.json", hosts=hosts)
        run = self.start(PSCLOUD, "run", "--on", cluster, "--workers", 3, "--", "touch", "/tmp/started")
        self.ends(run, 3)
        self.assertIn("stranger: does not accept the key of the user nobody-here", self.story(run))
        self.assertRegex(self.story(run), "nobody: .*(No route to host|timed out)")
        self.assert_nothing_left()
        missing = self.start(PSCLOUD, "run", "--on", self.cluster, "--workers", 4, "--", "no-such-program")
        self.ends(missing, 2)
        self.assertIn("host2: 'no-such-program': there is no such program in PATH", self.story(missing))

    def test_a_host_key_is_taken_only_when_that_is_said(self):
        known = self.home / "known_hosts"
        config = self.home / "ssh_config"
        config.write_text(self.lab.ssh_config.read_text().replace(str(self.lab.known_hosts), str(known)))
        cluster = self.lab.cluster_file(self.home / "new.json", options={"ssh_config": str(config)})
        run = self.start(PSCLOUD, "run", "--on", cluster, "--workers", 4, "--", "true")
        self.ends(run, 3)
        self.assertIn("host1: its host key is not known", self.story(run))
        self.assertIn("--accept-new-host-keys", self.story(run))
        self.run_on("--accept-new-host-keys", "--workers", 4, "--", "true", cluster=cluster)
        self.run_on("--workers", 4, "--", "true", cluster=cluster)  # they are known now
        keys = known.read_text().splitlines()
        known.write_text("\n".join([keys[0].split()[0] + " " + " ".join(keys[1].split()[1:])] + keys[1:]) + "\n")
        changed = self.start(PSCLOUD, "run", "--on", cluster, "--accept-new-host-keys", "--workers", 4, "--", "true")
        self.ends(changed, 3)
        self.assertIn("its host key is not the one that is known", self.story(changed))

    def test_hosts_that_do_not_reach_each_other_are_named(self):
        second = self.lab.machines[1]
        second.run(["ip", "route", "add", "blackhole", self.lab.machines[0].address], user=0, folder="/")
        try:
            run = self.start(PSCLOUD, "run", "--on", self.cluster, "--workers", 4, "--", "true")
            self.ends(run, 3)
            self.assertIn("host2 does not reach host1 at", self.story(run))
        finally:
            second.run(["ip", "route", "del", "blackhole", self.lab.machines[0].address], user=0, folder="/")

    def test_files_are_copied_once_and_are_in_the_folder_of_each_task(self):
        (self.work / "lib").mkdir()
        (self.work / "lib" / "part.py").write_text("WORD = 'imported'\n")
        (self.work / "main.py").write_text("import sys; sys.path.insert(0, 'lib'); import part; print(part.WORD)\n")
        (self.work / "big.bin").write_bytes(os.urandom(5 << 20))
        files = ["--file", "main.py", "--file", "lib", "--file", "big.bin"]
        for name in ("first", "second"):
            self.run_on("--name", name, *files, "--workers", 8, "--", "sh", "-c", "python3 main.py; wc -c < big.bin")
            for number in range(8):
                self.assertEqual(self.log(name, f"worker-{number}"), f"imported\n{5 << 20}\n")
        for machine in self.lab.machines:
            cache = self.lab.root_of(machine) / ssh_lab.HOME / ".cache/pscloud/files"
            self.assertEqual(len(list(cache.iterdir())), 3)
        self.assert_nothing_left()

    def test_old_copies_of_the_program_are_removed_and_the_one_in_use_is_not(self):
        caches = [self.lab.root_of(machine) / ssh_lab.HOME / ".cache/pscloud" for machine in self.lab.machines]
        self.run_on("--name", "first", "--workers", 4, "--", "true")
        ours = {path.name for path in caches[0].glob("*") if len(path.name) == 32}
        month_ago = time.time() - 30 * 86400
        for cache in caches:
            for number in range(6):
                copy = cache / f"{number:032x}"
                copy.mkdir()
                for name in ("pscloud", "ready"):
                    (copy / name).touch()
                    os.utime(copy / name, (month_ago + number, month_ago + number))
                    os.chown(copy / name, ssh_lab.machines.USER, ssh_lab.machines.USER)
                os.chown(copy, ssh_lab.machines.USER, ssh_lab.machines.USER)
        for run in [self.start(PSCLOUD, "run", "--on", self.cluster, "--workers", 4, "--", "true") for _ in range(3)]:
            self.ends(run)
        for cache in caches:
            self.assertEqual({path.name for path in cache.glob("*") if len(path.name) == 32},
                             ours | {f"{number:032x}" for number in (4, 5)})
            for number in (4, 5):
                shutil.rmtree(cache / f"{number:032x}")
        self.assert_nothing_left()

    def test_connect_opens_a_shell_on_the_host_of_a_task(self):
        run = self.start(PSCLOUD, "run", "--on", self.cluster, "--name", "shell", "--workers", 4, "--", "sh", "-c",
                         STAY)
        for number in range(4):
            self.until_says("shell", f"worker-{number}", "up", run)
        shell = subprocess.run(self.outside([str(PSCLOUD), "connect", "shell", "worker-2"]), env=self.environment,
                               input="hostname\n", capture_output=True, text=True, timeout=SECONDS)
        self.assertIn("host3", shell.stdout, shell.stderr)
        self.pscloud("stop", "shell")
        self.ends(run, 130)
        self.assert_nothing_left()

    def test_training_makes_the_model_that_it_makes_here(self):
        self.work = self.lab.common / "train"
        self.work.mkdir(mode=0o777)
        self.work.chmod(0o1777)
        self.addCleanup(shutil.rmtree, self.work)
        self.pscloud("data", "generate", "train", "--examples", 20000, "--keys", 5000, "--files", 3)
        (self.work / "online.conf").write_text(CONFIG)
        (self.work / "batch.conf").write_text(BATCH)

        def model():
            lines = sorted(line for path in self.work.glob("model_S*") for line in path.read_text().splitlines())
            for path in self.work.glob("model_S*"):
                path.unlink()
            self.assertGreater(len(lines), 100)
            return lines
        one = ["train", "online.conf", "--servers", 2, "--workers", 1]
        self.pscloud(*one)
        here = model()
        self.pscloud(*one, "--on", self.cluster)
        self.assertEqual(model(), here)
        three = ["train", "batch.conf", "--servers", 2, "--workers", 3, "--json"]
        alone = json.loads(self.pscloud(*three))
        here = model()
        there = json.loads(self.pscloud(*three, "--on", self.cluster, "--name", "three"))
        self.assertEqual(there["examples"], alone["examples"])
        self.assertEqual(there["objective"], alone["objective"])
        self.assertEqual(model(), here)
        logs = {path.name for path in (self.run_folder("three") / "logs").iterdir()}
        self.assertEqual(logs, {"scheduler-0.log", "server-0.log", "server-1.log", "worker-0.log", "worker-1.log",
                                "worker-2.log"})
        self.assert_nothing_left()

    def start_psd_run(self, out, command, **variables):
        binaries = self.home / "env"
        config = {"username": ssh_lab.USER, "pem_file": str(self.lab.key), "virtualenv": "/tmp/poseidon",
                  "worker_nodes": [machine.address for machine in self.lab.machines[:3]],
                  "server_nodes": [machine.address for machine in self.lab.machines[2:]],
                  "master_node": self.lab.machines[3].address,
                  "options": {"ssh_config": str(self.lab.ssh_config)}}
        for machine in self.lab.machines:
            programs = self.lab.root_of(machine) / "tmp/poseidon/bin"
            programs.mkdir(parents=True, exist_ok=True)
            for name in ("ps_master", "ps_server"):
                (programs / name).write_text(f"#!/bin/sh\necho {name} on $(hostname)\nexec sleep 1000\n")
                (programs / name).chmod(0o755)
            self.addCleanup(shutil.rmtree, programs.parent, ignore_errors=True)
        (self.home / "psd.json").write_text(json.dumps(config))
        psd_run = binaries / "psd_run"
        binaries.mkdir(exist_ok=True)
        if not psd_run.exists():
            psd_run.symlink_to(PSCLOUD)
        return self.start(psd_run, "-c", self.home / "psd.json", "-o", out, command, **variables)

    def psd_logs(self, out):
        """What is in the folder of logs, by name."""
        return {path.name: path.read_text() for path in (self.work / out).glob("poseidon_log_*/*")}

    def psd_run(self, out, command, **variables):
        self.ends(self.start_psd_run(out, command, **variables))
        return self.psd_logs(out)

    def test_psd_run_is_as_its_users_know_it(self):
        logs = self.psd_run("logs", "CLASS=x python3 -c 'import sys; print(sys.argv[1:])' --batch_size 32")
        self.assertEqual(sorted(logs), ["master.log", "server0.log", "server1.log", "worker0.log", "worker1.log",
                                        "worker2.log"])
        self.assertEqual(logs["master.log"], "ps_master on host4\n")
        self.assertEqual(logs["server1.log"], "ps_server on host4\n")
        address = f"tcp://{self.lab.machines[3].address}:5555"
        for number in range(3):
            flags = ["--batch_size", "32", "--distributed", "--master_address", address, "--client_id", str(number)]
            self.assertEqual(logs[f"worker{number}.log"], f"{flags}\n")
        story = (self.work / "poseidon_run.log").read_text().splitlines()
        self.assertRegex(story[0], r"^\S+ \S+ run psd-run on ssh: 1 scheduler, 2 servers, 3 workers$")
        self.assertRegex(story[-1], r"^\S+ \S+ run psd-run done, exit code 0$")

    def test_psd_run_has_its_logs_while_it_runs_and_after_kill_9(self):
        run = self.start_psd_run("logs", "echo begun; sleep 1000 #")
        until(lambda: [self.psd_logs("logs").get(f"worker{number}.log") for number in range(3)] == ["begun\n"] * 3,
              lambda: f"the logs: {self.psd_logs('logs')} {self.story(run)}")
        self.assertIn("run psd-run on ssh", (self.work / "poseidon_run.log").read_text())
        self.kill(run)
        self.pscloud("down")
        shutil.rmtree(self.run_folder("psd-run"))
        self.assertEqual(self.psd_logs("logs")["worker2.log"], "begun\n")
        self.assertIn("run psd-run on ssh", (self.work / "poseidon_run.log").read_text())

    def test_psd_run_keeps_its_logs_on_another_file_system_too(self):
        home = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-launch-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        self.assertNotEqual(home.stat().st_dev, self.work.stat().st_dev)
        run = self.start_psd_run("logs", "echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo ended #",
                                 PSCLOUD_HOME=str(home))
        until(lambda: self.psd_logs("logs").get("worker1.log") == "begun\n", lambda: f"the log: {self.story(run)}")
        for machine in self.lab.machines:
            (self.lab.root_of(machine) / "tmp/go").touch()
            self.addCleanup((self.lab.root_of(machine) / "tmp/go").unlink)
        self.ends(run)
        shutil.rmtree(home)
        self.assertEqual(self.psd_logs("logs")["worker1.log"], "begun\nended\n")
        self.assertIn("done, exit code 0", (self.work / "poseidon_run.log").read_text())

    def test_psd_run_takes_a_command_for_each_worker(self):
        logs = self.psd_run("each", "echo first,echo second,echo third")
        self.assertIn("second --distributed", logs["worker1.log"])
        self.assertIn("third --distributed", logs["worker2.log"])

    def test_psd_run_says_when_a_list_does_not_fit_the_workers(self):
        run = self.start_psd_run("odd", "echo first,echo second")
        self.ends(run)
        self.assertIn("the command has 2 parts between commas, and there are 3 workers: each of them runs the whole as "
                      "one command\n", self.story(run))
        self.assertIn("first,echo second --distributed", self.psd_logs("odd")["worker2.log"])
        one = self.start_psd_run("one", "echo alone")
        self.ends(one)
        self.assertNotIn("parts", self.story(one))


if __name__ == "__main__":
    unittest.main()
