#!/usr/bin/env python3
"""The adder on TensorFlow: a ps job over gRPC. --api eager calls one operation after the other; eager_async the same
without waiting for each; session builds a graph and runs it once for each iteration, which took longer.
"""

import contextlib
import json
import os
import pathlib
import socket
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
        steps, pushes, reads, self.copies, shared, mine = [], [], [], [], [], []
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
                pushes.append(added)
                with tf1.control_dependencies([added]):
                    result = shared[-1].read_value()
            with tf1.device(here):
                steps.append(copy.assign(result, read_value=False))
        with tf1.device("/job:ps/task:0"):
            meeting = tf1.get_variable("meeting", [], tf1.int64, tf1.zeros_initializer(), use_resource=True)
            self.arrive_op, self.arrived_op = meeting.assign_add(1), meeting.read_value()
        shared.append(meeting)
        self.workers, self.meetings, self.timeout_s = job.workers, 0, job.timeout_s
        self.step_op, self.push_op, self.read_op = tf1.group(*steps), tf1.group(*pushes), tf1.group(*reads)
        self.session = tf1.Session(target)
        self.session.run(tf1.variables_initializer(mine))
        if rank == 0:
            self.session.run(tf1.variables_initializer(shared))
        self.step_call = self.session.make_callable(self.step_op)

    def step(self) -> None:
        self.step_call()

    def push(self) -> None:
        self.session.run(self.push_op)

    def read(self) -> None:
        self.session.run(self.read_op)

    def values(self, _got: None) -> list[Any]:
        return self.session.run(self.copies)

    def meet(self) -> None:
        """For workers that have no other way to wait for each other: each counts up a number of the first server."""
        self.meetings += 1
        not_made_yet = (tensorflow().errors.FailedPreconditionError, tensorflow().errors.NotFoundError)
        adder.retry(lambda: self.session.run(self.arrive_op), not_made_yet, self.timeout_s, 0.01)
        adder.wait_for_all(lambda: self.session.run(self.arrived_op), self.meetings * self.workers, self.timeout_s)


class EagerAdder:
    def __init__(self, job: adder.Job, rank: int) -> None:
        self.tf = tensorflow()
        self.here = f"/job:worker/replica:0/task:{rank}/cpu:0"
        self.servers = [f"/job:ps/replica:0/task:{part}/cpu:0" for part in range(job.servers)]
        with self.tf.device(self.here):
            self.ones = self.tf.ones([job.part])
        self.handles = []
        for server in self.servers:
            with self.tf.device(server):
                # By name, so that all workers have the same. A tf.Variable would be another for each.
                self.handles.append(self.tf.raw_ops.VarHandleOp(
                    dtype=self.tf.float32, shape=[job.part], shared_name="parameters"))

    def clear(self) -> None:
        for server, handle in zip(self.servers, self.handles):
            with self.tf.device(server):
                self.tf.raw_ops.AssignVariableOp(resource=handle, value=self.tf.zeros_like(self.ones))
        self.read()  # returns when it is done

    def begin_push(self) -> None:
        for server, handle in zip(self.servers, self.handles):
            with self.tf.device(server):
                self.tf.raw_ops.AssignAddVariableOp(resource=handle, value=self.ones)

    def step(self) -> Any:
        self.begin_push()
        return self.read()

    def push(self) -> None:
        self.begin_push()
        # A call only begins the work.
        from tensorflow.python.eager import context
        context.async_wait()

    def read(self) -> Any:
        copies = []
        for server, handle in zip(self.servers, self.handles):
            with self.tf.device(server):
                value = self.tf.raw_ops.ReadVariableOp(resource=handle, dtype=self.tf.float32)
            with self.tf.device(self.here):
                copies.append(self.tf.identity(value))
        # Calls only begin the work; who looks at the memory of the result waits for it, and copies nothing.
        return [memoryview(copy) for copy in copies]

    def values(self, got: Any) -> list[Any]:
        import numpy
        return [numpy.asarray(view) for view in got]


def serve(_job: adder.Job, rank: int, cluster: Cluster) -> None:
    tensorflow().distribute.Server(cluster, job_name="ps", task_index=rank)
    threading.Event().wait()


def learn(job: adder.Job, rank: int, cluster: Cluster, meet: Callable[[], None], **told: Any) -> adder.WorkerRun:
    tf = tensorflow()
    if job.api != "session":
        tf.config.experimental.set_synchronous_execution(job.api == "eager")
        # Not the other workers: a client would wait for them, and begin anew on the servers.
        mine = {"ps": cluster["ps"], "worker": {rank: cluster["worker"][rank]}}
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(mine), job_name="worker", task_index=rank)
        eager = EagerAdder(job, rank)
        if rank == 0:
            eager.clear()
        meet()
        return adder.measure(job, eager, meet, **told)
    return adder.measure(job, session_adder(job, rank, cluster), meet, **told)


def session_adder(job: adder.Job, rank: int, cluster: Cluster) -> SessionAdder:
    server = tensorflow().distribute.Server(cluster, job_name="worker", task_index=rank)
    return SessionAdder(job, rank, server.target)


def version() -> str:
    return adder.installed("tensorflow-cpu", "tensorflow")


def work(job: adder.Job, folder: pathlib.Path) -> str:
    addresses = free_addresses(job.servers + job.workers)
    cluster = {"ps": addresses[:job.servers], "worker": addresses[job.servers:]}
    runs = adder.run_processes(job, folder, serve, learn, cluster)
    return adder.report("tensorflow", version(), job, runs, f"gRPC, {job.api}")


def task(job: adder.Job) -> None:
    """One process of a job whose launcher speaks TensorFlow's language: TF_CONFIG says who it is."""
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, rank = config["cluster"], config["task"]["index"]
    if config["task"]["type"] == "ps":
        serve(job, rank, cluster)
    tensorflow()  # takes the longest
    adder.wait_until_open(cluster["ps"], job.timeout_s)
    # Eager operations are faster, but servers that get them from several workers at once crash now and then: of 2.21
    # one in ten runs of two workers, most of all when they push at the same moment.
    if job.workers == 1:
        adder.say(f"ready {version()}, gRPC, eager")
        run = learn(job, rank, cluster, lambda: None, tell=adder.tell_sample)
    else:
        session = session_adder(job, rank, cluster)
        session.meet()
        adder.say(f"ready {version()}, gRPC, session")
        run = adder.measure(job, session, session.meet, adder.tell_sample)
    adder.tell_end(run)


if __name__ == "__main__":
    ways = ("eager", "eager_async", "session")
    told = adder.read_job(__doc__.split("\n")[0], warmup=5, apis=ways)
    if told.task:
        adder.run_task("tensorflow", task, told)
    adder.run_script(work, told)
