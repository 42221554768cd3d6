#!/usr/bin/env python3
"""The adder on Ray: servers and workers are actors, each a process; tensors go through Ray's object store.

A push copies the gradient into the store, the server reads it there without a copy, adds, and returns the parameters:
a second copy into the store, which the worker reads in place. One call does both. The store needs a warm-up: until each
of its pages has been touched by all processes, iterations take about twice as long,
and single ones ten times.
"""

import asyncio
import os
import pathlib
from typing import Any

import adder


class Meeting:
    """An actor at which workers wait for each other."""

    def __init__(self, workers: int) -> None:
        self.workers, self.here, self.all_here = workers, 0, asyncio.Event()

    async def meet(self) -> None:
        self.here += 1
        if self.here == self.workers:
            self.here = 0
            self.all_here.set()
            self.all_here = asyncio.Event()
        else:
            await self.all_here.wait()


class Server:
    def __init__(self, job: adder.Job) -> None:
        import numpy
        self.parameters = numpy.zeros(job.part, dtype=numpy.float32)

    def add(self, gradient: Any) -> Any:
        self.parameters += gradient
        return self.parameters

    def read(self) -> Any:
        return self.parameters


class Worker:
    def __init__(self, job: adder.Job, servers: list[Any], meeting: Any) -> None:
        import numpy
        import ray
        self.job, self.servers, self.get = job, servers, ray.get
        self.ones = numpy.ones(job.part, dtype=numpy.float32)
        self.meet = lambda: ray.get(meeting.meet.remote())

    def step(self) -> Any:
        return self.get([server.add.remote(self.ones) for server in self.servers])

    def read(self) -> Any:
        return self.get([server.read.remote() for server in self.servers])

    def values(self, got: Any) -> list[Any]:
        return got

    def run(self) -> adder.WorkerRun:
        return adder.measure(self.job, self, self.meet)


def work(job: adder.Job, folder: pathlib.Path) -> str:
    # Before the import: no reports to its makers; the store's pages are there from the start.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_preallocate_plasma_memory="1")
    import ray
    # Room for what is on its way at once, twice for each worker and direction, and as much again.
    store = max(256 << 20, int(8 * job.workers * job.size_mb * 1e6))
    # "local" begins a cluster of our own, on ports that the system gives, even where another one runs.
    ray.init(address="local", num_cpus=job.servers + job.workers, object_store_memory=store, _temp_dir=str(folder),
             _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    actor = {"num_cpus": 0}
    meeting = ray.remote(Meeting).options(**actor).remote(job.workers)
    servers = [ray.remote(Server).options(**actor).remote(job) for _ in range(job.servers)]
    workers = [ray.remote(Worker).options(**actor).remote(job, servers, meeting) for _ in range(job.workers)]
    runs = ray.get([worker.run.remote() for worker in workers])
    return adder.report("ray", ray.__version__, job, runs, "actors; reads without a copy from the warm object store")


if __name__ == "__main__":
    adder.run_script(work, adder.read_job(__doc__.split("\n")[0], warmup=40, apis=("actor",)))
