#!/usr/bin/env python3
"""Measures pscloud on this machine, shows each figure with its spread, and names what got slower since the last time.

    make bench                        five rounds of everything, then the micro benchmarks
    bench/run.py --rounds 1           a quick look
    bench/run.py --only adder         what has this in its name
    bench/run.py --no-micro           without the micro benchmarks

In a round every benchmark runs once, so that a slow minute of the machine does not fall on one alone. Figures are
ratios to what the same work costs at least, measured in the same run, wherever there is such a limit. The runs of this
machine are kept in build/bench/history.json. Slower is what is so by more than a tenth, with no overlap: the median is
worse than every round of the last time, and the last median better than every round of this time.

Exit codes: 0 done, 1 a benchmark failed or had a wrong value, 2 wrong use.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"
HISTORY = ROOT / "build/bench/history.json"
KEPT = 50  # runs in the history
MARGIN = 0.1

ADDER = ["adder", "--iters", "20"]
# Name, command, and its figures: what to call them, the field of its JSON, whether higher is better.
CASES = [
    ("adder, shared memory, lent", [*ADDER, "--transport", "shm", "--lent"],
     [("/ add on one core", "ratio_to_limit", False), (", apart / add", "apart_ratio_to_limit", False)]),
    ("adder, shared memory", [*ADDER, "--transport", "shm"],
     [("/ add on one core", "ratio_to_limit", False), (", apart / add", "apart_ratio_to_limit", False)]),
    ("adder, lent, 2 threads", [*ADDER, "--transport", "shm", "--lent", "--server-threads", "2"],
     [("/ add on two cores", "ratio_to_limit", False)]),
    ("adder, TCP", [*ADDER, "--transport", "tcp"],
     [("/ raw socket", "ratio_to_limit", False), (", apart / raw socket", "apart_ratio_to_limit", False)]),
    ("adder, TLS", [*ADDER, "--transport", "tls"], [("/ raw socket", "ratio_to_limit", False)]),
    # Async: a barrier between push and pull measures how four processes wait for two cores, not what they move.
    ("adder, 2 servers, 2 workers", [*ADDER, "--transport", "shm", "--servers", "2", "--workers", "2",
                                     "--mode", "async"], [(", GB/s", "gb_per_s", True)]),
    ("sparse", ["sparse"], [(", Mkeys/s", "mkeys_per_s", True), ("/ plain array", "ratio_to_limit", False),
                            (", bytes a key", "server_bytes_per_key", False)]),
    ("sparse, known lists", ["sparse", "--cached"],
     [(", Mkeys/s", "mkeys_per_s", True), ("/ plain array", "ratio_to_limit", False)]),
    ("round trip, shared memory", ["rpc", "--transport", "shm"], [(", us", "us_p50", False)]),
    ("small request beside 100 MB", ["rpc", "--transport", "shm", "--beside-mb", "100"],
     [(", us", "beside_us_p50", False)]),
    ("small request beside 100 MB, TCP", ["rpc", "--transport", "tcp", "--beside-mb", "100"],
     [(", us", "beside_us_p50", False)]),
    ("round trip, TCP", ["rpc", "--transport", "tcp"], [("/ blocking socket", "ratio_to_limit", False)]),
]
# Ratios between two benchmarks of one round.
PAIRS = [
    ("adder, TLS / TCP", "adder, TLS", "adder, TCP", "ms_p50", False),
    ("adder, 2 and 2 / 1 and 1, GB/s", "adder, 2 servers, 2 workers", "adder, shared memory", "gb_per_s", True),
]


class Figure:
    """Of one thing: a value from each round."""

    def __init__(self, higher_is_better, values=()):
        self.higher = higher_is_better
        self.values = list(values)

    @property
    def median(self):
        return statistics.median(self.values)

    def worse_than(self, other):
        """By how much, as a part of the other; 0 if that is not certain."""
        mine, theirs = self.values, other.values
        if self.higher:
            apart = self.median < min(theirs) and other.median > max(mine)
            loss = other.median / self.median - 1
        else:
            apart = self.median > max(theirs) and other.median < min(mine)
            loss = self.median / other.median - 1
        return loss if apart and loss > MARGIN else 0


def machine():
    """Runs of two machines cannot be compared."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{model.group(1) if model else 'unknown'}, {os.cpu_count()} cores"


def run_case(command):
    done = subprocess.run([BUILD / "pscloud", "bench", *command, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pscloud bench {' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def measure(rounds, only):
    figures = {}
    cases = [case for case in CASES if only in case[0]]
    for number in range(1, rounds + 1):
        results = {}
        for name, command, wanted in cases:
            print(f"\rround {number} of {rounds}: {name:40}", end="", file=sys.stderr, flush=True)
            results[name] = run_case(command)
            for label, field, higher in wanted:
                figures.setdefault(name + (label if label[0] == "," else f" {label}"),
                                   Figure(higher)).values.append(results[name][field])
        for label, one, other, field, higher in PAIRS:
            if one in results and other in results:
                figures.setdefault(label, Figure(higher)).values.append(results[one][field] / results[other][field])
    print(f"\r{'':70}\r", end="", file=sys.stderr)
    return figures


def measure_micro(only):
    """Google Benchmark's, five times each."""
    command = [BUILD / "bench/micro", "--benchmark_format=json", "--benchmark_repetitions=5",
               "--benchmark_min_time=0.1", f"--benchmark_filter={re.escape(only) or '.'}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    figures = {}
    for one in json.loads(done.stdout).get("benchmarks", []) if done.stdout else []:
        if one["run_type"] == "iteration":
            figures.setdefault(f"{one['name']}, {one['time_unit']}", Figure(False)).values.append(one["real_time"])
    return figures


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def show(figures, last):
    width = max(map(len, figures))
    print(f"{'':{width}} {'median':>9}  {'least to most':17} {'last time':>9}")
    for name, figure in figures.items():
        spread = f"{number(min(figure.values))} to {number(max(figure.values))}"
        before = number(last[name].median) if name in last else ""
        print(f"{name:{width}} {number(figure.median):>9}  {spread:17} {before:>9}")


def compare(figures, last):
    slower = [(name, loss) for name, figure in figures.items()
              if name in last and (loss := figure.worse_than(last[name])) > 0]
    print()
    if not last:
        print("the first run on this machine: nothing to compare with")
    elif not slower:
        print("nothing got slower since the last run")
    for name, loss in sorted(slower, key=lambda pair: -pair[1]):
        print(f"slower by {loss:.0%}: {name}: {number(figures[name].median)}, last time {number(last[name].median)}")


def load_history():
    try:
        return json.loads(HISTORY.read_text())
    except (OSError, ValueError):
        return []  # none yet, or not ours to mend: a new one begins


def figures_of(run):
    return {name: Figure(one["higher_is_better"], one["values"]) for name, one in run["figures"].items()}


def last_of(history, here):
    """The newest value of each figure on this machine: not every run measures all."""
    last = {}
    for run in history:
        if run["machine"] == here:
            last.update(figures_of(run))
    return last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--no-micro", action="store_true")
    flags = parser.parse_args()
    if flags.rounds < 1:
        parser.error("--rounds must be positive")
    try:
        figures = measure(flags.rounds, flags.only)
        if not flags.no_micro:
            figures |= measure_micro(flags.only)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if not figures:
        print(f"bench: nothing has '{flags.only}' in its name", file=sys.stderr)
        return 2
    history, here = load_history(), machine()
    last = last_of(history, here)
    show(figures, last)
    compare(figures, last)
    history.append({"machine": here, "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                    "figures": {name: {"higher_is_better": one.higher, "values": one.values}
                                for name, one in figures.items()}})
    HISTORY.parent.mkdir(parents=True, exist_ok=True)
    new = HISTORY.with_suffix(".new")
    new.write_text(json.dumps(history[-KEPT:]))
    new.replace(HISTORY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
