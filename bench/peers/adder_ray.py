#!/usr/bin/env python3
"""The adder on Ray: servers are actors, each a process; tensors go through Ray's object store.

A push copies the gradient into the store, the server reads it there without a copy, adds, and returns the parameters:
a second copy into the store, which the worker reads in place. One call does both. The store needs a warm-up: until each
of its pages has been touched by all processes, iterations take about twice as long, and single ones ten times. Between
machines the stores send each other what is not there.
"""

import asyncio
import contextlib
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import adder
import processes

ACTOR = {"num_cpus": 0}
NAMESPACE = "adder"


class Meeting:
    """An actor at which workers wait for each other."""

    def __init__(self, workers: int) -> None:
        self.workers, self.here, self.left, self.all_here = workers, 0, 0, asyncio.Event()

    async def meet(self) -> None:
        self.here += 1
        if self.here == self.workers:
            self.here = 0
            self.all_here.set()
            self.all_here = asyncio.Event()
        else:
            await self.all_here.wait()

    async def leave(self, count: int) -> bool:
        """Whether all have left."""
        self.left += count
        return self.left == self.workers


class Server:
    def __init__(self, part: int) -> None:
        import numpy
        self.parameters = numpy.zeros(part, dtype=numpy.float32)

    def add(self, gradient: Any) -> Any:
        self.parameters += gradient
        return self.parameters

    def push(self, gradient: Any) -> None:
        self.parameters += gradient

    def read(self) -> Any:
        return self.parameters


class ActorAdder:
    def __init__(self, job: adder.Job, servers: list[Any]) -> None:
        import numpy
        import ray
        self.servers, self.get = servers, ray.get
        self.ones = numpy.ones(job.part, dtype=numpy.float32)

    def step(self) -> Any:
        return self.get([server.add.remote(self.ones) for server in self.servers])

    def push(self) -> None:
        self.get([server.push.remote(self.ones) for server in self.servers])

    def read(self) -> Any:
        return self.get([server.read.remote() for server in self.servers])

    def values(self, got: Any) -> list[Any]:
        return got


class Worker:
    """An actor too, where one script runs all."""

    def __init__(self, job: adder.Job, servers: list[Any], meeting: Any) -> None:
        import ray
        self.job, self.adder = job, ActorAdder(job, servers)
        self.meet = lambda: ray.get(meeting.meet.remote())

    def run(self) -> adder.WorkerRun:
        return adder.measure(self.job, self.adder, self.meet)


def prepare() -> None:
    """Before Ray is imported: no reports to its makers; the store's pages are there from the start."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_preallocate_plasma_memory="1")


def store_bytes(job: adder.Job) -> int:
    """Room for what is on its way at once, twice for each worker and direction, and as much again."""
    return max(256 << 20, int(8 * job.workers * job.size_mb * 1e6))


def work(job: adder.Job, folder: pathlib.Path) -> str:
    prepare()
    import ray
    # "local" begins a cluster of our own, on ports that the system gives, even where another one runs.
    ray.init(address="local", num_cpus=job.servers + job.workers, object_store_memory=store_bytes(job),
             _temp_dir=str(folder), _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False,
             logging_level="ERROR")
    meeting = ray.remote(Meeting).options(**ACTOR).remote(job.workers)
    servers = [ray.remote(Server).options(**ACTOR).remote(job.part) for _ in range(job.servers)]
    workers = [ray.remote(Worker).options(**ACTOR).remote(job, servers, meeting) for _ in range(job.workers)]
    runs = ray.get([worker.run.remote() for worker in workers])
    return adder.report("ray", ray.__version__, job, runs, "actors; reads without a copy from the warm object store")


class Place:
    """This task among the others of its job, as `pscloud run` says in the environment. The first task of each machine
    runs its node of Ray; the first server, so of the whole job, the head. Servers are actors on the servers' machines,
    workers are processes of their own."""

    def __init__(self) -> None:
        lists = {role: os.environ[f"PSCLOUD_{role.upper()}_ADDRESSES"].split(",") for role in ("server", "worker")}
        self.role, self.rank = os.environ["PSCLOUD_ROLE"], int(os.environ["PSCLOUD_RANK"])
        self.head = lists["server"][0]
        self.servers = [address.rpartition(":")[0] for address in lists["server"]]
        everybody = [(role, rank, address.rpartition(":")[0]) for role, addresses in lists.items()
                     for rank, address in enumerate(addresses)]
        self.hosts = {host for _, _, host in everybody}
        self.host = next(host for role, rank, host in everybody if (role, rank) == (self.role, self.rank))
        first = next((role, rank) for role, rank, host in everybody if host == self.host)
        self.holds_node = first == (self.role, self.rank)
        self.is_head = self.role == "server" and self.rank == 0
        if self.host.startswith("127."):  # else Ray takes an address of the machine for its loopback
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # The path is the head's, on all machines; that of a socket in it must be short.
        self.folder = pathlib.Path(tempfile.gettempdir()) / f"adder-{os.environ['PSCLOUD_JOB']}"


@contextlib.contextmanager
def node(job: adder.Job, place: Place) -> Iterator[subprocess.Popen | None]:
    """Ray's processes of this machine, if they are this task's duty. They and their files are gone at the end."""
    if not place.holds_node:
        yield None
        return
    words = [f"--address={place.head}"]
    if place.is_head:
        words = ["--head", f"--port={place.head.rpartition(':')[2]}", "--include-dashboard=false",
                 f"--temp-dir={place.folder}", "--disable-usage-stats"]
        if importlib.util.find_spec("grpc"):  # then Ray has one service more, whose usual port another Ray may have
            with socket.create_server(("", 0)) as free:
                words.append(f"--ray-client-server-port={free.getsockname()[1]}")
    else:
        adder.wait_until_open([place.head], job.timeout_s)
    words += [f"--node-ip-address={place.host}", f"--num-cpus={job.servers + job.workers}",
              f"--object-store-memory={store_bytes(job)}", "--min-worker-port=0", "--max-worker-port=0", "--block"]
    try:
        with processes.ends_descendants():
            yield subprocess.Popen([sys.executable, "-m", "ray.scripts.scripts", "start", *words],
                                   stdin=subprocess.DEVNULL, stdout=sys.stderr)
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


def learn(job: adder.Job, place: Place) -> None:
    import ray
    adder.wait_until_open([place.head], job.timeout_s)
    adder.retry(lambda: ray.init(address=place.head, namespace=NAMESPACE, _node_ip_address=place.host,
                                 log_to_driver=False, logging_level="ERROR"), Exception, job.timeout_s)
    if place.rank == 0:
        def all_are_up() -> None:
            up = {each["NodeManagerAddress"] for each in ray.nodes() if each["Alive"]}
            if not place.hosts <= up:
                raise LookupError(f"no node of Ray on {sorted(place.hosts - up)}")
        adder.retry(all_are_up, LookupError, job.timeout_s)
        # Until the cluster ends: others may still talk to them when this worker has left.
        lasting = {**ACTOR, "lifetime": "detached"}
        there = [{f"node:{host}": 0.001} for host in place.servers]
        servers = [ray.remote(Server).options(**lasting, name=f"server{rank}", resources=where).remote(job.part)
                   for rank, where in enumerate(there)]
        ray.get([server.push.remote(0) for server in servers])  # they are up
        ray.remote(Meeting).options(**lasting, name="meeting", resources=there[0]).remote(job.workers)
    meeting = adder.retry(lambda: ray.get_actor("meeting"), ValueError, job.timeout_s)
    servers = [ray.get_actor(f"server{rank}") for rank in range(job.servers)]
    adder.say(f"ready {ray.__version__}, actors, object store")
    adder.tell_end(adder.measure(job, ActorAdder(job, servers), lambda: ray.get(meeting.meet.remote()),
                                 adder.tell_sample))
    ray.get(meeting.leave.remote(1))
    if not place.holds_node:
        return
    # Who ends a node ends the workers that use it: they go first.
    adder.wait_for_all(lambda: int(ray.get(meeting.leave.remote(0))), 1, job.timeout_s)
    ray.shutdown()
    time.sleep(0.5)  # they have said so before their own end, which nobody tells


def task(job: adder.Job) -> None:
    """One process of a job that our launcher has started. Only those who have the job's token may talk to its Ray:
    RAY_AUTH_TOKEN_PATH names it."""
    prepare()
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.pop("RAY_AUTH_TOKEN", None)  # of another cluster; it would win
    place = Place()
    with node(job, place) as started:
        if place.role == "worker":
            learn(job, place)
        elif started is None:
            threading.Event().wait()  # until it is told to end
        else:
            raise ChildProcessError(f"the node of Ray has ended with {started.wait()}")


if __name__ == "__main__":
    told = adder.read_job(__doc__.split("\n")[0], warmup=40, apis=("actor",))
    if told.task:
        adder.run_task("ray", task, told)
    adder.run_script(work, told)
