#!/usr/bin/env python3
"""The adder on PyTorch: RPC over TensorPipe. The worker calls a function of the server with the gradient; its result is
the parameters. --api names the transport: uv (sockets), or what TensorPipe chooses by itself; they are close.
"""

import importlib.metadata
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import adder

parameters: Any = None  # of a server: RPC calls functions of this module
# RPC calls from many threads. Without the lock two workers' additions lose some of each other's.
lock = threading.Lock()


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

    def read(self) -> Any:
        return self.call(read)

    def values(self, got: Any) -> list[Any]:
        return [part.numpy() for part in got]


def join(job: adder.Job, role: str, rank: int, store: str) -> None:
    """Returns when all are there; they meet in the file `store`."""
    os.environ.update(CUDA_VISIBLE_DEVICES="", GLOO_SOCKET_IFNAME="lo", TP_SOCKET_IFNAME="lo")
    from torch.distributed import rpc
    transports = {"uv": {"_transports": ["uv"]}, "default": {}}[job.api]
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{store}", rpc_timeout=job.timeout_s, **transports)
    rpc.init_rpc(f"{role}{rank}", rank=rank if role == "server" else job.servers + rank,
                 world_size=job.servers + job.workers, rpc_backend_options=options)


def serve(job: adder.Job, rank: int, store: str) -> None:
    global parameters
    import torch
    parameters = torch.zeros(job.part)
    join(job, "server", rank, store)
    threading.Event().wait()


def learn(job: adder.Job, rank: int, store: str, meet: Callable[[], None]) -> adder.WorkerRun:
    join(job, "worker", rank, store)
    return adder.measure(job, RpcAdder(job), meet)


def work(job: adder.Job, folder: pathlib.Path) -> str:
    runs = adder.run_processes(job, folder, serve, learn, str(folder / "store"))
    return adder.report("torch", importlib.metadata.version("torch"), job, runs, f"TensorPipe RPC, transport {job.api}")


if __name__ == "__main__":
    adder.run_script(work, adder.read_job(__doc__.split("\n")[0], warmup=5, apis=("uv", "default")))
