#!/usr/bin/env python3
"""Runs the adder of pscloud and of its peers, in turn, and shows how they compare.

    make bench-peers                          builds, installs the peers in build/peers/venv, runs five rounds
    bench/peers/run.py --quick                a small run that only shows that everything works
    bench/peers/run.py --redraw --publish     puts the last results into docs/benchmarks.md

Writes results.json, adder.md and adder.svg to build/peers. Exit codes: 0 done, 1 something failed (its row says so),
2 nothing could be measured, 130 interrupted.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import chart
import environment
import processes
import report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- adder: begin -->", "<!-- adder: end -->"
SHAPES = [(1, 1), (1, 2), (2, 1)]  # servers, workers
STOP_SECONDS = 20  # a script that was told to stop has this long


@dataclass(frozen=True)
class System:
    key: str
    label: str
    command: tuple[str, ...]  # in front of --servers and the rest
    ours: bool = False


def ours(key: str, label: str, *flags: str) -> System:
    return System(key, label, ("pscloud", "bench", "adder", "--json", *flags), ours=True)


def peer(key: str, label: str, *command: str) -> System:
    return System(key, label, ("python", *command))


# In the order of a round; the table has ours first. `pscloud` and `python` stand for those that main() finds.
SYSTEMS = [
    ours("lent", "pscloud, shared memory, lent", "--transport", "shm", "--lent"),
    ours("lent2", "pscloud, lent, 2 threads", "--transport", "shm", "--lent", "--server-threads", "2"),
    ours("shm", "pscloud, shared memory", "--transport", "shm"),
    peer("ray", "Ray", "adder_ray.py"),
    ours("tcp", "pscloud, TCP", "--transport", "tcp"),
    peer("torch", "PyTorch RPC", "adder_torch.py"),
    ours("tls", "pscloud, TLS", "--transport", "tls"),
    peer("tensorflow", "TensorFlow", "adder_tensorflow.py"),
]


def say(text: str) -> None:
    print(f"bench-peers: {text}", file=sys.stderr, flush=True)


def prepare(folder: pathlib.Path) -> pathlib.Path:
    return environment.prepare(folder, HERE / "requirements.txt")


def find_line(output: str) -> dict[str, Any] | None:
    """The last line that is a JSON object. Libraries may have said something else before."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def run_once(command: list[str], timeout_s: float) -> dict[str, Any]:
    """What the command printed, or {"error": why not}. Whatever it started has ended."""
    # Files, not pipes: the end of a pipe comes when the last process that has it ends, which may be a forgotten one.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=HERE, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                   start_new_session=True)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            return {"error": f"not done after {timeout_s:g} s"}
        finally:
            processes.end_descendants()
            process.poll()
        output.seek(0)
        errors.seek(0)
        found = find_line(output.read().decode(errors="replace"))
        said = [line.strip()[:200] for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    if found and found.get("values_ok") is False:
        return {"error": "values are wrong: not iterations x workers"}
    if code != 0 or not found or "ms_p50" not in found:
        words = " ... ".join([said[0], *said[1:][-1:]]) if said else "it said nothing"
        return {"error": f"exit code {code}: {words}"}
    return found


def run_rounds(systems: list[System], programs: dict[str, str], flags: argparse.Namespace, save: Any) -> list[dict]:
    """All rounds, each system after the other, so that a slow minute of the machine meets all. After each run `save`
    gets all so far."""
    plan = [(number, shape, system) for number in range(1, flags.rounds + 1) for shape in SHAPES for system in systems]
    runs: list[dict] = []
    started = time.monotonic()
    for done, (number, (servers, workers), system) in enumerate(plan):
        program, *rest = system.command
        command = [programs[program], *rest, "--servers", str(servers), "--workers", str(workers),
                   "--size-mb", f"{flags.size_mb:g}", "--iters", str(flags.iters)]
        if system.ours and workers > 1:
            command += ["--mode", "async"]  # as the peers: workers do not wait for each other
        result = run_once(command, flags.timeout_s)
        runs.append({**result, "round": number, "key": system.key, "servers": servers, "workers": workers})
        save(runs)
        left_s = (time.monotonic() - started) / (done + 1) * (len(plan) - done - 1)
        shown = result.get("error") or f"{report.number(result['ms_p50'])} ms"
        left = f"{left_s / 60:.0f} min" if left_s >= 90 else f"{left_s:.0f} s"
        say(f"{done + 1}/{len(plan)}  round {number}  {report.shape_name((servers, workers))}  {system.label}: {shown} "
            f" ({left} left)")
    return runs


def conditions(flags: argparse.Namespace, version: str) -> dict[str, Any]:
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "cpu": cpu,
            "cores": len(os.sched_getaffinity(0)), "memory_gb": round(memory / 2**30), "kernel": platform.release(),
            "load": f"{os.getloadavg()[0]:.1f}", "ours": version, "rounds": flags.rounds, "size_mb": flags.size_mb,
            "iters": flags.iters, "command": shlex.join(["bench/peers/run.py", *sys.argv[1:]])}


def write(folder: pathlib.Path, results: dict[str, Any]) -> None:
    (folder / "adder.md").write_text(report.markdown(results))
    (folder / "adder.svg").write_text(chart.draw(results))


def publish(folder: pathlib.Path, root: pathlib.Path) -> None:
    page = root / "docs/benchmarks.md"
    text = f"![The table below as a chart](images/adder.svg)\n\n{(folder / 'adder.md').read_text()}"
    page.write_text(report.put_between(page.read_text(), BEGIN, END, text))
    shutil.copyfile(folder / "adder.svg", root / "docs/images/adder.svg")
    say("docs/benchmarks.md and docs/images/adder.svg show these results now")


def read_flags(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size-mb", type=float, default=100)
    parser.add_argument("--iters", type=int, default=20, help="that are timed in each run")
    parser.add_argument("--timeout-s", type=float, default=300, help="for each run")
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=[system.key for system in SYSTEMS],
                        help=f"some of: {' '.join(system.key for system in SYSTEMS)}")
    parser.add_argument("--quick", action="store_true", help="one round with 4 MB: does it work?")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/pscloud")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/peers", help="for results and the peers")
    parser.add_argument("--redraw", action="store_true", help="runs nothing: table and chart of the last results")
    parser.add_argument("--publish", action="store_true", help="also into docs/benchmarks.md")
    flags = parser.parse_args(arguments)
    if flags.quick and flags.publish:
        parser.error("--quick only shows that everything works; its figures are not for publishing")
    if flags.quick:
        flags.rounds, flags.size_mb, flags.iters = 1, 4, 5
    if flags.rounds < 1 or flags.iters < 1:
        parser.error("--rounds and --iters must be positive")
    return flags


def main(arguments: list[str]) -> int:
    flags = read_flags(arguments)
    flags.out.mkdir(parents=True, exist_ok=True)
    kept = flags.out / "results.json"
    if flags.redraw:
        results = json.loads(kept.read_text())
    else:
        if not flags.binary.exists():
            say(f"there is no {flags.binary}; make build makes it")
            return 2
        systems = [system for system in SYSTEMS if not flags.only or system.key in flags.only]
        programs = {"pscloud": str(flags.binary.resolve())}
        if any(not system.ours for system in systems):
            programs["python"] = str(prepare(flags.out / "venv"))
        version = subprocess.run([programs["pscloud"], "version"], check=True, capture_output=True, text=True)
        results = {"conditions": conditions(flags, version.stdout.strip().split("\n")[0]), "shapes": SHAPES,
                   "systems": [{"key": s.key, "label": s.label, "ours": s.ours}
                               for s in sorted(systems, key=lambda system: not system.ours)]}

        def save(runs: list[dict]) -> None:
            kept.write_text(json.dumps({**results, "runs": runs}, indent=1) + "\n")

        with processes.ends_descendants():
            results["runs"] = run_rounds(systems, programs, flags, save)
    write(flags.out, results)
    sys.stdout.write((flags.out / "adder.md").read_text())
    if flags.publish:
        publish(flags.out, ROOT)
    failed = sum("error" in run for run in results["runs"])
    say(f"{len(results['runs'])} runs, {failed} failed; table and chart: {flags.out}/adder.md and adder.svg")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted; results.json holds what was measured, --redraw shows it")
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        say(f"{shlex.join(map(str, error.cmd))} ended with exit code {error.returncode}")
        sys.exit(2)
