#!/usr/bin/env python3
"""The adder on PyTorch: RPC over TensorPipe. The worker calls a function of the server with the gradient; its result is
the parameters. --api names the transport: uv (sockets), or what TensorPipe chooses by itself; they are close.
"""

import fcntl
import os
import pathlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import adder

parameters: Any = None  # of a server: RPC calls functions of this module
# RPC calls from many threads. Without the lock two workers' additions lose some of each other's.
lock = threading.Lock()
arrived = 0  # of the first server: how often workers have come to a meeting

SIOCGIFADDR = 0x8915


def push(gradient: Any) -> None:
    with lock:
        parameters.add_(gradient)


def arrive(count: int) -> int:
    global arrived
    with lock:
        arrived += count
        return arrived


def add(gradient: Any) -> Any:
    with lock:
        parameters.add_(gradient)
    return parameters


def read() -> Any:
    return parameters


class RpcAdder:
    def __init__(self, job: adder.Job) -> None:
        import torch
        from torch.distributed import rpc
        self.names, self.rpc = [f"server{rank}" for rank in range(job.servers)], rpc
        self.ones = torch.ones(job.part)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        calls = [self.rpc.rpc_async(name, function, args=arguments) for name in self.names]
        return [call.wait() for call in calls]

    def step(self) -> Any:
        return self.call(add, self.ones)

    def push(self) -> None:
        self.call(push, self.ones)

    def read(self) -> Any:
        return self.call(read)

    def values(self, got: Any) -> list[Any]:
        return [part.numpy() for part in got]


class Meeting:
    """Where workers of several machines wait for each other."""

    def __init__(self, job: adder.Job) -> None:
        from torch.distributed import rpc
        self.rpc, self.workers, self.meetings, self.timeout_s = rpc, job.workers, 0, job.timeout_s

    def meet(self) -> None:
        self.meetings += 1
        self.rpc.rpc_sync("server0", arrive, args=(1,))
        adder.wait_for_all(lambda: self.rpc.rpc_sync("server0", arrive, args=(0,)), self.meetings * self.workers,
                           self.timeout_s)


def interface_to(host: str, port: int) -> str:
    """The name of the interface by which this machine reaches that one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((host, port))  # sends nothing
        mine = socket.inet_aton(one.getsockname()[0])
        for _, name in socket.if_nameindex():
            try:
                if fcntl.ioctl(one, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))[20:24] == mine:
                    return name
            except OSError:
                continue  # it has no address
    raise OSError(f"no interface leads to {host}")


def join(job: adder.Job, role: str, rank: int, meet_at: str, interface: str) -> None:
    """Returns when all are there."""
    os.environ.update(CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME=interface, TP_SOCKET_IFNAME=interface)
    from torch.distributed import rpc
    transports = {"uv": {"_transports": ["uv"]}, "default": {}}[job.api]
    options = rpc.TensorPipeRpcBackendOptions(init_method=meet_at, rpc_timeout=job.timeout_s, **transports)
    rpc.init_rpc(f"{role}{rank}", rank=rank if role == "server" else job.servers + rank,
                 world_size=job.servers + job.workers, rpc_backend_options=options)


def hold(job: adder.Job, rank: int, meet_at: str, interface: str) -> None:
    global parameters
    import torch
    parameters = torch.zeros(job.part)
    join(job, "server", rank, meet_at, interface)
    threading.Event().wait()


def serve(job: adder.Job, rank: int, store: str) -> None:
    hold(job, rank, f"file://{store}", "lo")


def learn(job: adder.Job, rank: int, store: str, meet: Callable[[], None]) -> adder.WorkerRun:
    join(job, "worker", rank, f"file://{store}", "lo")
    return adder.measure(job, RpcAdder(job), meet)


def work(job: adder.Job, folder: pathlib.Path) -> str:
    runs = adder.run_processes(job, folder, serve, learn, str(folder / "store"))
    return adder.report("torch", adder.installed("torch"), job, runs, f"TensorPipe RPC, transport {job.api}")


def task(job: adder.Job) -> None:
    """One process of a job whose launcher speaks as torchrun does."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    rank, interface = int(os.environ["ROLE_RANK"]), interface_to(host, port)
    if os.environ["ROLE_NAME"] == "server":
        hold(job, rank, "env://", interface)
    join(job, "worker", rank, "env://", interface)
    adder.say(f"ready {adder.installed('torch')}, TensorPipe RPC, transport {job.api}")
    adder.tell_end(adder.measure(job, RpcAdder(job), Meeting(job).meet, adder.tell_sample))


if __name__ == "__main__":
    told = adder.read_job(__doc__.split("\n")[0], warmup=5, apis=("uv", "default"))
    if told.task:
        adder.run_task("torch", task, told)
    adder.run_script(work, told)
