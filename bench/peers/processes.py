"""Whoever starts processes here ends them: also those that its children started and then left alone.

A benchmark that leaves a server behind spoils the next one. So the program adopts every orphan among its descendants
(Linux: PR_SET_CHILD_SUBREAPER) and, however its work ends, kills what is left of them.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILL_SECONDS = 10


def prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def end_with_parent() -> None:
    """This process is killed when the one that started it ends: also when that one was killed and could not tidy."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(ancestor: int) -> dict[int, str]:
    """The children of `ancestor`, their children and so on, each with the letter of its state; `Z` is a zombie."""
    parents, states = {}, {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name of the program, in brackets, may hold anything: what follows its last bracket is regular.
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        parents[int(folder.name)], states[int(folder.name)] = int(parent), state

    def descends(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == ancestor:
                return True
        return False

    return {process: state for process, state in states.items() if descends(process)}


def end_descendants() -> None:
    """Kills all descendants of this process; returns when they are gone. One may start another while we look: again."""
    deadline = time.monotonic() + KILL_SECONDS
    while left := descendants(os.getpid()):
        for process, state in left.items():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            if state == "Z":
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(left)} do not end though they were killed")
        time.sleep(0.01)


@contextlib.contextmanager
def ends_descendants(timeout_s: float = 0) -> Iterator[None]:
    """Around the work of a whole program: when it ends, by itself, by an error, by Ctrl-C, by SIGTERM or after
    `timeout_s` (0: no limit), nothing that it started runs any more."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)

    def on_sigterm(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    def on_alarm(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {timeout_s:g} s")

    previous = signal.signal(signal.SIGTERM, on_sigterm), signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, previous[0])
        signal.signal(signal.SIGALRM, previous[1])
        end_descendants()
