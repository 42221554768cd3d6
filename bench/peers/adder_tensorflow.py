#!/usr/bin/env python3
"""The adder on TensorFlow: a ps job over gRPC. --api session builds a graph and runs it once for each iteration; eager
is for one worker, because each eager client has variables of its own on the servers.
"""

import contextlib
import importlib.metadata
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

import adder

Cluster = dict[str, list[str]]


def free_addresses(count: int) -> list[str]:
    """On ports that the system gave. TensorFlow takes only numbers and does not share a port, so they are let go again:
    all at once, so that no two are the same. Should another program take one in between, TensorFlow says so."""
    with contextlib.ExitStack() as sockets:
        bound = [sockets.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in bound]


def tensorflow() -> Any:
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):  # gRPC would ask it for 127.0.0.1
        os.environ.pop(name, None)
    import tensorflow
    return tensorflow


class SessionAdder:
    """One graph: add to the variables on the servers, then copy them to variables of this worker."""

    def __init__(self, job: adder.Job, rank: int, target: str) -> None:
        tf1 = tensorflow().compat.v1
        tf1.disable_eager_execution()
        here = f"/job:worker/task:{rank}"
        steps, reads, self.copies, shared, mine = [], [], [], [], []
        for part in range(job.servers):
            with tf1.device(f"/job:ps/task:{part}"):
                shared.append(tf1.get_variable(f"parameters{part}", [job.part], initializer=tf1.zeros_initializer(),
                                               use_resource=True))
            with tf1.device(here):
                # A variable: a constant would be folded into the graph of the server.
                ones = tf1.get_variable(f"gradient{rank}_{part}", [job.part], initializer=tf1.ones_initializer(),
                                        use_resource=True)
                copy = tf1.get_variable(f"copy{rank}_{part}", [job.part], initializer=tf1.zeros_initializer(),
                                        use_resource=True)
                gradient = ones.read_value()
            mine += [ones, copy]
            self.copies.append(copy)
            reads.append(copy.assign(shared[-1].read_value(), read_value=False))
            with tf1.device(f"/job:ps/task:{part}"):
                added = shared[-1].assign_add(gradient, read_value=False)
                with tf1.control_dependencies([added]):
                    result = shared[-1].read_value()
            with tf1.device(here):
                steps.append(copy.assign(result, read_value=False))
        self.step_op, self.read_op = tf1.group(*steps), tf1.group(*reads)
        self.session = tf1.Session(target)
        self.session.run(tf1.variables_initializer(mine))
        if rank == 0:
            self.session.run(tf1.variables_initializer(shared))
        self.step_call = self.session.make_callable(self.step_op)

    def step(self) -> None:
        self.step_call()

    def read(self) -> None:
        self.session.run(self.read_op)

    def values(self, _got: None) -> list[Any]:
        return self.session.run(self.copies)


class EagerAdder:
    def __init__(self, job: adder.Job) -> None:
        self.tf = tensorflow()
        self.shared, self.ones = [], []
        for part in range(job.servers):
            with self.tf.device(f"/job:ps/replica:0/task:{part}"):
                self.shared.append(self.tf.Variable(self.tf.zeros([job.part])))
            with self.tf.device("/job:worker/replica:0/task:0/cpu:0"):
                self.ones.append(self.tf.ones([job.part]))

    def step(self) -> Any:
        for part, (variable, ones) in enumerate(zip(self.shared, self.ones)):
            with self.tf.device(f"/job:ps/replica:0/task:{part}"):
                variable.assign_add(ones, read_value=False)
        return self.read()

    def read(self) -> Any:
        with self.tf.device("/job:worker/replica:0/task:0/cpu:0"):
            copies = [self.tf.identity(variable) for variable in self.shared]
        for copy in copies:
            copy._numpy_internal()  # waits for it; eager calls only begin
        return copies

    def values(self, got: Any) -> list[Any]:
        return [copy.numpy() for copy in got]


def serve(_job: adder.Job, rank: int, cluster: Cluster) -> None:
    tensorflow().distribute.Server(cluster, job_name="ps", task_index=rank)
    threading.Event().wait()


def learn(job: adder.Job, rank: int, cluster: Cluster, meet: Callable[[], None]) -> adder.WorkerRun:
    tf = tensorflow()
    if job.api == "eager":
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster), job_name="worker", task_index=rank)
        return adder.measure(job, EagerAdder(job), meet)
    server = tf.distribute.Server(cluster, job_name="worker", task_index=rank)
    return adder.measure(job, SessionAdder(job, rank, server.target), meet)


def work(job: adder.Job) -> str:
    if job.api == "eager" and job.workers > 1:
        raise ValueError("--api eager is for one worker")
    addresses = free_addresses(job.servers + job.workers)
    cluster = {"ps": addresses[:job.servers], "worker": addresses[job.servers:]}
    runs = adder.run_processes(job, serve, learn, cluster)
    return adder.report("tensorflow", importlib.metadata.version("tensorflow-cpu"), job, runs, f"gRPC, {job.api}")


if __name__ == "__main__":
    sys.exit(adder.run_script(work, adder.read_job(__doc__.split("\n")[0], warmup=5, apis=("session", "eager"))))
