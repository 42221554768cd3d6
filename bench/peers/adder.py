"""The adder, as every peer runs it: what its script is told, the loop that is timed, and what it prints.

One iteration of a worker: push a gradient of ones; the servers add it; get all parameters into the worker's memory. The
tensor is cut into equal parts, one for each server. In async mode the workers do not wait for each other; in sync mode
several of them push, meet, get, and meet again.

A script by itself starts all processes on this machine. With --task it is one of them, which `pscloud bench adder --on`
has started on some machine, and a worker prints lines that this reads (src/cli/bench/bench_adder_gather.h).
"""

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import processes

FLOATS_PER_MB = 250_000
NOT_INSTALLED = 77  # exit code of a task that cannot begin
OTHERS_SAY_SO_S = 5  # how long it stays: its end is the run's, and machines that start a little later lack it as well
NAN = float("nan")


@dataclass(frozen=True)
class Job:
    servers: int
    workers: int
    size_mb: float
    iters: int
    warmup: int
    timeout_s: float
    api: str  # which of the peer's ways; each script has its own
    mode: str = "async"
    task: bool = False

    @property
    def in_steps(self) -> bool:
        return self.mode == "sync" and self.workers > 1

    @property
    def part(self) -> int:
        """Floats of one server."""
        floats = round(self.size_mb * FLOATS_PER_MB)
        if floats < self.servers or floats % self.servers != 0:
            raise ValueError(f"{floats} floats cannot be cut into {self.servers} equal parts; choose another --size-mb")
        return floats // self.servers


@dataclass
class WorkerRun:
    iteration_ms: list[float] = field(default_factory=list)
    values_ok: bool = True


class Adder(Protocol):
    """A worker's end of a peer."""

    def step(self) -> Any:
        """Pushes, waits until the servers have added, gets all parameters. Only this is timed."""

    def push(self) -> None:
        """Pushes and waits until the servers have added."""

    def read(self) -> Any:
        """Gets all parameters."""

    def values(self, got: Any) -> list[Any]:
        """What step() or read() gave, as numpy arrays."""


def all_are(parts: list[Any], value: float) -> bool:
    # Not (part == value).all(): that makes an array of answers, whose fresh memory would disturb the next iteration.
    return all(part.min() == value == part.max() for part in parts)


def iterate(job: Job, adder: Adder, meet: Callable[[], None]) -> tuple[Any, list[float]]:
    """What the worker has got, and milliseconds of push, get and all."""
    start = time.perf_counter()
    if not job.in_steps:
        got = adder.step()
        return got, [NAN, NAN, (time.perf_counter() - start) * 1e3]
    adder.push()
    pushed = time.perf_counter()
    meet()
    all_pushed = time.perf_counter()
    got = adder.read()
    read = time.perf_counter()
    meet()
    return got, [(pushed - start) * 1e3, (read - all_pushed) * 1e3, (time.perf_counter() - start) * 1e3]


def measure(job: Job, adder: Adder, meet: Callable[[], None],
            tell: Callable[[list[float]], None] = lambda _: None) -> WorkerRun:
    """One worker's part. `meet` returns when all workers have called it. `tell` gets milliseconds of push, get and all,
    and seconds of CPU, of each iteration that counts."""
    run = WorkerRun()
    for i in range(job.warmup + job.iters):
        if i in (0, job.warmup):
            meet()
        cpu = time.process_time()
        got, times = iterate(job, adder, meet)
        cpu = time.process_time() - cpu
        if i >= job.warmup:
            run.iteration_ms.append(times[-1])
            tell([*times, cpu])
        # Else, with several, any value between ours and everybody's is right, and looking costs the others.
        if job.workers == 1 or job.in_steps:
            run.values_ok &= all_are(adder.values(got), (i + 1) * job.workers)
        del got  # its memory is free for the next
        if job.in_steps:
            meet()  # or the next iteration of others would wait for this look
    meet()
    run.values_ok &= all_are(adder.values(adder.read()), (job.warmup + job.iters) * job.workers)
    meet()
    return run


def quantile(values: list[float], q: float) -> float:
    """As `pscloud bench adder` takes it."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def report(system: str, version: str, job: Job, runs: list[WorkerRun], note: str) -> str:
    times = [ms for run in runs for ms in run.iteration_ms]
    return json.dumps({
        "system": system, "version": version, "servers": job.servers, "workers": job.workers, "size_mb": job.size_mb,
        "iters": job.iters, "ms_p50": round(quantile(times, 0.5), 3), "ms_p95": round(quantile(times, 0.95), 3),
        "ms_min": round(min(times), 3), "values_ok": all(run.values_ok for run in runs), "note": note})


def read_job(about: str, warmup: int, apis: tuple[str, ...]) -> Job:
    """The flags of a script; the first of `apis` is the fastest."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--size-mb", type=float, default=100, help="of the tensor; 1 MB is 1,000,000 bytes")
    parser.add_argument("--iters", type=int, default=20, help="that are timed")
    parser.add_argument("--warmup", type=int, default=warmup, help=f"iterations before them [{warmup}]")
    parser.add_argument("--timeout-s", type=float, default=300, help="for all of it")
    parser.add_argument("--api", choices=apis, default=apis[0], help=f"[{apis[0]}]")
    parser.add_argument("--mode", choices=("sync", "async"), default="async", help="[async]")
    parser.add_argument("--task", action="store_true", help="be one task of a run of `pscloud bench adder`")
    flags = parser.parse_args()
    if min(flags.servers, flags.workers, flags.iters) < 1 or flags.warmup < 0:
        parser.error("--servers, --workers and --iters must be positive, --warmup not negative")
    return Job(**vars(flags))


def run_script(work: Callable[[Job, pathlib.Path], str], job: Job) -> NoReturn:
    """A script's main: prints the line that `work` gives, and leaves no process and no file behind. `work` gets a
    folder, whose name is short because sockets may stand in it."""
    code = 0
    try:
        # The folder goes after the processes, which might still write to it.
        with (tempfile.TemporaryDirectory(prefix="adder-", ignore_cleanup_errors=True) as folder,
              processes.ends_descendants(job.timeout_s)):
            line = work(job, pathlib.Path(folder))
        print(line)
        code = 0 if json.loads(line)["values_ok"] else 1
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except Exception as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {type(error).__name__}: {error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # libraries that close down in their own way miss the processes that we ended; Ray crashes then


def installed(*names: str) -> str:
    """The version of the first of these packages that is there; another may have a module of the same name."""
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of an unknown version"


def say(line: str) -> None:
    """To the launcher."""
    print(f"adder {line}", flush=True)


def tell_sample(figures: list[float]) -> None:
    say("sample " + " ".join(f"{figure:.6g}" for figure in figures))


def tell_end(run: WorkerRun) -> None:
    say("values ok" if run.values_ok else "values wrong")


def run_task(module: str, work: Callable[[Job], None], job: Job) -> NoReturn:
    """A script's main as a task: `work` does this process's part and, if it is a worker's, tells what it found."""
    if importlib.util.find_spec(module) is None:
        say("missing")
        time.sleep(OTHERS_SAY_SO_S)
        sys.exit(NOT_INSTALLED)
    work(job)
    sys.stderr.flush()
    os._exit(0)  # libraries that close down on their own may wait for others


def retry(what: Callable[[], Any], errors: Any, timeout_s: float, pause_s: float = 0.1) -> Any:
    """What it returns when it raises none of these any more."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return what()
        except errors:
            if time.monotonic() > deadline:
                raise
            time.sleep(pause_s)


def wait_for_all(count: Callable[[], int], wanted: int, timeout_s: float) -> None:
    """Until so many have come to a meeting. Short pauses: the next iteration begins with it."""
    def all_are_there() -> None:
        if (here := count()) < wanted:
            raise TimeoutError(f"{here} of {wanted} have come within {timeout_s:g} s")
    retry(all_are_there, TimeoutError, timeout_s, 0.0002)


def dial(address: str, timeout_s: float) -> socket.socket:
    """Connects when somebody listens there: programs that import large libraries begin at different times."""
    host, _, port = address.rpartition(":")
    return retry(lambda: socket.create_connection((host.strip("[]"), int(port)), 5), OSError, timeout_s)


def wait_until_open(addresses: list[str], timeout_s: float) -> None:
    for address in addresses:
        dial(address, timeout_s).close()


ServerMain = Callable[[Job, int, Any], None]
WorkerMain = Callable[[Job, int, Any, Callable[[], None]], WorkerRun]


def run_processes(job: Job, folder: pathlib.Path, server: ServerMain, worker: WorkerMain,
                  where: Any) -> list[WorkerRun]:
    """Runs each server and each worker as a process and gives what the workers found. `where` goes to all of them,
    their logs to `folder`. The servers are not asked to stop: run_script() ends them."""
    context = multiprocessing.get_context("spawn")
    everybody, workers = [], []
    for role, main, count in (("server", server, job.servers), ("worker", worker, job.workers)):
        for rank in range(count):
            ours, theirs = context.Pipe()
            name = f"{role} {rank}"
            process = context.Process(target=enter, args=(main, role, job, rank, where, theirs, folder / name),
                                      name=name, daemon=True)
            process.start()
            theirs.close()
            everybody.append((process, ours))
            if role == "worker":
                workers.append(ours)
    try:
        # All workers say the same things in the same order: that they are at a meeting, and last what they found.
        while True:
            said = [receive(connection, everybody) for connection in workers]
            if all(isinstance(word, WorkerRun) for word in said):
                return said
            for connection in workers:
                connection.send("go")
    except ChildProcessError as error:
        name = str(error).split(":")[0]
        tail = (folder / name).read_text(errors="replace").strip().split("\n")[-15:]
        raise ChildProcessError("\n  ".join([str(error), *tail])) from None


def receive(connection: multiprocessing.connection.Connection, everybody: list[Any]) -> Any:
    """What a worker says next; ChildProcessError, with the name first, if anybody ends before that."""
    sentinels = {process.sentinel: process for process, _ in everybody}
    ready = multiprocessing.connection.wait([connection, *sentinels])
    if connection in ready:
        try:
            return connection.recv()
        except EOFError:
            ready = multiprocessing.connection.wait(list(sentinels))
    ended = sentinels[next(end for end in ready if end in sentinels)]
    ended.join()
    raise ChildProcessError(f"{ended.name}: ended with {ended.exitcode}; its last lines:")


def enter(main: Callable[..., Any], role: str, job: Job, rank: int, where: Any, connection: Any,
          log: pathlib.Path) -> None:
    """A process begins here. What libraries write to stdout and stderr goes to its log."""
    processes.end_with_parent()
    with open(log, "w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if role == "server":
        main(job, rank, where)
        return

    def meet() -> None:
        connection.send("here")
        connection.recv()

    connection.send(main(job, rank, where, meet))
    connection.recv()  # until we are ended: libraries that close down on their own may wait for servers that do not
