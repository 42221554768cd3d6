"""Clusters of real processes for tests: starts nodes, waits for what they say, and leaves nothing behind.

A test makes a Cluster, starts nodes in any order and waits for lines. No wait is without a deadline, no port is fixed,
and whatever still runs at the end of a test is killed by its own process id. PSCLOUD_BUILD names the build folder;
builds with sanitizers get more time.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

# The same tests run over sockets and, where CMakeLists.txt says so, a second time through shared memory.
SHARED_MEMORY = os.environ.get("PSCLOUD_TEST_SHARED_MEMORY", "0")
BUILD = pathlib.Path(os.environ.get("PSCLOUD_BUILD", "build/release")).resolve()
PSCLOUD = BUILD / "pscloud"
COUNTER_WORKER = BUILD / "tests/cluster/counter_worker"

# A line of the log at level warning or error; a complaint of a sanitizer.
COMPLAINT = re.compile(r"^\d\d:\d\d:\d\d\.\d+ [WE] |^pscloud: ")
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: |CHECK failed")


def sanitizers():
    """What the build was made with: "address,undefined", "thread" or nothing."""
    version = subprocess.run([PSCLOUD, "version", "--json"], stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(version.stdout)["build"].partition("sanitizers ")[2]


SANITIZERS = sanitizers()
SLOW = 4 if SANITIZERS else 1  # deadlines of tests are multiplied by this
SECONDS = 20 * SLOW  # the usual deadline


def until(condition, what, seconds=SECONDS):
    """Polls until condition() is true and returns its value; fails with `what` when time is over."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what() if callable(what) else what}")
        time.sleep(0.01)


class Process:
    """One node: its lines as they come, and its end."""

    def __init__(self, name, command, environment):
        self.name = name
        self.out = []
        self.err = []
        self.process = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process.poll() is None

    def story(self):
        lines = [f"{self.name} ({'runs' if self.running() else f'ended with {self.process.returncode}'}):"]
        return "\n".join(lines + [f"    {line}" for line in self.out[-15:] + self.err[-40:]])

    def events(self, kind):
        """The JSON lines of this kind that it has said."""
        found = []
        for line in list(self.out):
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the last line of one that was killed
            if event.get("event") == kind:
                found.append(event)
        return found

    def event(self, kind, wanted=lambda event: True, seconds=SECONDS):
        """Waits for the first such line."""
        def found():
            return next((event for event in self.events(kind) if wanted(event)), None)
        return until(lambda: found() or (not self.running() and not self.read_on() and (found() or self.fail(kind))),
                     lambda: f"'{kind}' of {self.story()}", seconds)

    def read_on(self):
        """After its end: takes in what is left of its lines."""
        for reader in self.readers:
            reader.join(5)

    def fail(self, wanted):
        raise AssertionError(f"waited for {wanted}, but {self.story()}")

    def says(self, pattern, seconds=SECONDS):
        """Waits for a line on stderr that matches."""
        return until(lambda: next((line for line in list(self.err) if re.search(pattern, line)), None),
                     lambda: f"'{pattern}' from {self.story()}", seconds)

    def lines(self, pattern):
        return [line for line in list(self.err) if re.search(pattern, line)]

    def complaints(self):
        return [line for line in self.err if COMPLAINT.search(line)]

    def acked(self):
        """What is certain: so many pushes have been acknowledged."""
        return max((event["acked"] for event in self.events("acked")), default=0)

    def counts_on(self, more=20, seconds=SECONDS):
        """Waits until so many more pushes have been acknowledged than by now."""
        wanted = self.acked() + more
        return self.event("acked", lambda event: event["acked"] >= wanted, seconds)

    def finish(self):
        """Tells a counter_worker to come to its end."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)
        self.read_on()

    def ends(self, seconds=SECONDS):
        """Waits for its end; its exit code."""
        until(lambda: not self.running(), lambda: f"the end of {self.story()}", seconds)
        self.read_on()
        return self.process.returncode

    def clean_up(self):
        if self.running():
            self.process.kill()  # one that is stopped too
            self.process.wait()
        self.read_on()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def reserve_port():
    """A free port of loopback, ours until the socket is closed. Who sets SO_REUSEADDR may listen there meanwhile."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def http_get(address, path):
    """Status and text of the answer."""
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


class Cluster:
    """The nodes of one job on loopback, over TLS unless `insecure`."""

    def __init__(self, servers=2, workers=3, insecure=False, flags=()):
        self.processes = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-cluster-"))
        self.insecure = insecure
        self.workers = workers
        self.scheduler_flags = ["--servers", servers, "--workers", workers, *flags]
        self.port = reserve_port()
        self.address = f"127.0.0.1:{self.port.getsockname()[1]}"
        if not insecure:
            self.make_ca("ca", "blue")
            for role in ("scheduler", "server", "worker"):
                self.issue("ca", role, role)

    def make_ca(self, name, cluster):
        subprocess.run([PSCLOUD, "ca", "init", self.folder / name, "--cluster", cluster],
                       stdout=subprocess.PIPE, check=True, timeout=60)

    def issue(self, ca, role, out, *flags):
        """Makes the certificate of a node; the folder of it."""
        subprocess.run([PSCLOUD, "ca", "issue", self.folder / ca, "--role", role, "--out", self.folder / out, *flags],
                       stdout=subprocess.PIPE, check=True, timeout=60)
        return self.folder / out

    def environment(self, role, tls_dir=None, variables=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PSCLOUD_", "DMLC_"))}
        environment["PSCLOUD_SCHEDULER"] = self.address
        environment["PSCLOUD_JOIN_TIMEOUT_MS"] = str(1000 * SECONDS)
        environment["PSCLOUD_SHARED_MEMORY"] = SHARED_MEMORY
        if self.insecure:
            environment["PSCLOUD_INSECURE"] = "1"
        else:
            environment["PSCLOUD_TLS_DIR"] = str(tls_dir or self.folder / role)
        environment.update(variables or {})
        return environment

    def start(self, name, command, environment):
        process = Process(name, command, environment)
        self.processes.append(process)
        return process

    def node(self, role, *flags, name=None, tls_dir=None, variables=None):
        return self.start(name or role, [PSCLOUD, "node", "--role", role, "--json", *flags],
                          self.environment(role, tls_dir, variables))

    def scheduler(self, *flags):
        return self.node("scheduler", *self.scheduler_flags, *flags)

    def server(self, *flags, **more):
        return self.node("server", *flags, **more)

    def worker(self, tag=0, *flags, tls_dir=None, **variables):
        """A counter_worker; variables are like heartbeat_ms=100."""
        variables = {f"PSCLOUD_{name.upper()}": str(value) for name, value in variables.items()}
        return self.start(f"worker with tag {tag}", [COUNTER_WORKER, "--tag", tag, "--tags", self.workers + 1, *flags],
                          self.environment("worker", tls_dir, variables))

    def story(self):
        return "\n".join(process.story() for process in self.processes)

    def clean_up(self):
        for process in self.processes:
            process.clean_up()
        self.port.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def stdout_json(process):
    """The line by which `pscloud node --json` says where it is."""
    until(lambda: process.out or not process.running(), lambda: f"the address of {process.story()}")
    return json.loads(process.out[0]) if process.out else process.fail("its address")


class ClusterTest(unittest.TestCase):
    """A test with clusters, which end with it; shows what the nodes said if it fails."""

    longMessage = True

    def cluster(self, **options):
        cluster = Cluster(**options)
        self.addCleanup(self.end, cluster)
        return cluster

    def end(self, cluster):
        result = self._outcome.result
        failed = any(test is self for test, _ in result.failures + result.errors)
        cluster.clean_up()
        if failed:
            print(cluster.story(), flush=True)
        for process in cluster.processes:
            self.assertFalse([line for line in process.err if SANITIZER.search(line)], process.story())

    def running(self, cluster, worker_flags=(), server_flags=(), **variables):
        """Starts the whole job and waits until each worker counts: scheduler, servers and workers, by rank."""
        scheduler = cluster.scheduler()
        servers = [cluster.server(*server_flags, "--rank", rank) for rank in range(2)]
        workers = [cluster.worker(tag, *worker_flags, rank=tag, **variables) for tag in range(cluster.workers)]
        for worker in workers:
            worker.counts_on()
        return scheduler, servers, workers

    def finish(self, *workers):
        for worker in workers:
            worker.finish()
        for worker in workers:
            self.assertEqual(worker.ends(), 0, worker.story())

    def finish_in_turn(self, *workers):
        for worker in workers:
            self.finish(worker)

    def assert_ends_well(self, *nodes):
        for node in nodes:
            self.assertEqual(node.ends(), 0, node.story())

    def assert_no_complaint(self, *nodes):
        for node in nodes:
            self.assertEqual(node.complaints(), [], node.story())

    def assert_totals(self, workers, dead=None, seen_by=None):
        """Every push counted once. Of a dead worker, what was acknowledged counts, and perhaps what was under way."""
        exact = {worker: worker.event("done")["acked"] for worker in workers}
        low = dead.acked() if dead else 0
        high = dead.events("acked")[-1]["issued_most"] if dead else 0
        for worker in seen_by or workers:
            done = worker.event("done")
            for value in done["shared"]:
                self.assertGreaterEqual(value, sum(exact.values()) + low, worker.story())
                self.assertLessEqual(value, sum(exact.values()) + high, worker.story())
            for other, count in exact.items():
                self.assertEqual(done["own"][tag_of(other)], count, worker.story())
            if dead:
                self.assertGreaterEqual(done["own"][tag_of(dead)], low, worker.story())
                self.assertLessEqual(done["own"][tag_of(dead)], high, worker.story())


def tag_of(worker):
    return int(worker.name.split()[-1])


def stop(process):
    process.signal(signal.SIGSTOP)


def go_on(process):
    process.signal(signal.SIGCONT)


def children(pid):
    """Of the process, with their command lines."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def train_workers(pid):
    """The worker processes of a `pscloud train`."""
    return [child for child, words in children(pid).items() if "--as-worker" in words]
