#!/usr/bin/env python3
"""Trains a click model from text with pscloud and with Vowpal Wabbit, in turn, and shows how they compare.

    make bench-train                       builds, installs Vowpal Wabbit in build/train/venv, runs five rounds
    bench/peers/train.py --rounds 1        a quick look
    bench/peers/train.py --redraw --publish
                                           puts the last results into docs/benchmarks.md

A run is a process from its start to its end: it reads the text, goes over it once, and writes the model. Vowpal Wabbit
reads the same examples in its own format. Then each model scores examples it has not seen. Writes results.json and
train.md to build/train. Exit codes: 0 done, 1 something failed, 2 wrong use.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import time

import environment

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PSCLOUD = ROOT / "build/release/pscloud"
MICRO = ROOT / "build/release/bench/micro"
FOLDER = ROOT / "build/train"
PAGE = ROOT / "docs/benchmarks.md"
REQUIREMENTS = HERE / "requirements-train.txt"

CONFIG = """training_data {{ format: TEXT text: LIBSVM file: "{folder}/train-.*" }}
model_output {{ format: TEXT file: "{folder}/model" }}
loss {{ type: LOGIT }}
penalty {{ type: L1 lambda: 0 }}
learning_rate {{ type: DECAY alpha: 0.1 beta: 1 }}
async_sgd {{ algo: FTRL minibatch: {minibatch} max_delay: 2 }}
"""
TEST = """validation_data {{ format: TEXT text: LIBSVM file: "{folder}/test-.*" }}
model_input {{ format: TEXT file: "{folder}/model_S.*" }}
"""
PASSES = 5
MORE = f"pscloud, {PASSES} passes"
VW = "import sys, vowpalwabbit; vowpalwabbit.Workspace(sys.argv[1]).finish()"
VW_FLAGS = "--loss_function logistic --link logistic -b 22 --quiet --no_stdin"


def say(text):
    print(f"bench-train: {text}", file=sys.stderr, flush=True)


def run(command):
    """Seconds and CPU seconds of a process with its children, and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate()
    seconds = time.monotonic() - start
    if process.returncode != 0:
        sys.exit(f"bench-train: {command[0]} ended with exit code {process.returncode}: {err.strip()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "out": out}


def peak_mb(command):
    """Of the largest process of one run, which is not timed: the system keeps no other."""
    code = ("import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)")
    return float(subprocess.run([sys.executable, "-c", code, *map(str, command)], check=True, capture_output=True,
                                text=True).stdout)


def prepare(flags):
    FOLDER.mkdir(parents=True, exist_ok=True)
    python = environment.prepare(FOLDER / "venv", REQUIREMENTS)
    made = FOLDER / f"made-{flags.examples}"
    if not made.exists():
        say("making the data")
        for name, count, seed in (("train", flags.examples, 1), ("test", flags.examples // 10, 2)):
            best = run([PSCLOUD, "data", "generate", FOLDER / name, "--examples", count, "--seed", seed, "--json"])
            run([PSCLOUD, "data", "convert", FOLDER / f"{name}-0", "--to", "VW", "--out", FOLDER / f"{name}.vw"])
            (FOLDER / f"{name}.json").write_text(best["out"], encoding="utf-8")
        made.touch()
    (FOLDER / "train.conf").write_text(CONFIG.format(folder=FOLDER, minibatch=flags.minibatch), encoding="utf-8")
    (FOLDER / "test.conf").write_text(TEST.format(folder=FOLDER), encoding="utf-8")
    return python


def systems(python):
    """What to run, and how to get the held-out logloss of its model afterwards."""
    train = [PSCLOUD, "train", FOLDER / "train.conf", "--quiet"]

    def ours():
        return json.loads(run([PSCLOUD, "evaluate", FOLDER / "test.conf", "--json"])["out"])["logloss"]

    def vw():
        predictions = FOLDER / "predictions"
        run([python, "-c", VW, f"{VW_FLAGS} -t -i {FOLDER}/vw.model -d {FOLDER}/test.vw -p {predictions}"])
        losses = []
        with open(FOLDER / "test.vw", encoding="utf-8") as examples, open(predictions, encoding="utf-8") as chances:
            for example, chance in zip(examples, chances):
                p = min(max(float(chance), 1e-15), 1 - 1e-15)
                losses.append(-math.log(p if example.startswith("1") else 1 - p))
        return statistics.fmean(losses)

    def vw_command(flags):
        return [python, "-c", VW, f"{VW_FLAGS} {flags} -d {FOLDER}/train.vw -f {FOLDER}/vw.model"]

    return {
        "pscloud": (train, ours),
        "vw --ftrl": (vw_command("--ftrl"), vw),
        "pscloud, 2 servers, 2 workers": ([*train, "--servers", "2", "--workers", "2"], ours),
        "vw": (vw_command(""), vw),
        MORE: ([*train, "--set", f"async_sgd.num_data_pass={PASSES}", "--json"], ours),
    }


def tokenizer_rate():
    """Lines a second that one core only parses, from memory."""
    text = subprocess.run([MICRO, "--benchmark_filter=Parse/libsvm", "--benchmark_format=json"], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)["benchmarks"][0]["items_per_second"]


def measure(flags, python):
    rounds = {}
    for number in range(flags.rounds):
        for name, (command, logloss) in systems(python).items():
            say(f"round {number + 1} of {flags.rounds}: {name}")
            for old in FOLDER.glob("model_S*"):
                old.unlink()
            one = run(command)
            out = one.pop("out")
            if name == MORE:
                one["passes"] = json.loads(out)["pass_seconds"]
            one["logloss"] = logloss()
            rounds.setdefault(name, []).append(one)
        rounds.setdefault("tokenizer", []).append({"rate": tokenizer_rate()})
    peaks = {name: peak_mb(command) for name, (command, _) in systems(python).items()}
    return {"rounds": rounds, "peak_mb": peaks, "examples": flags.examples, "minibatch": flags.minibatch,
            "bytes": (FOLDER / "train-0").stat().st_size, "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "best": json.loads((FOLDER / "test.json").read_text(encoding="utf-8")),
            "vw": REQUIREMENTS.read_text(encoding="utf-8").splitlines()[-1]}


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def table(results):
    rounds, examples = results["rounds"], results["examples"]
    lines = [f"{examples} LIBSVM lines of 39 features, {results['bytes'] >> 20} MB, one pass, {results['machine']}, "
             f"{results['vw'].replace('==', ' ')}; medians of {len(rounds['pscloud'])} alternating rounds, with the "
             f"least and the largest. Minibatch of pscloud: {results['minibatch']}.", "",
             "| | seconds | examples/s | CPU seconds | held-out logloss | peak MB of one process |",
             "| --- | --- | --- | --- | --- | --- |"]
    for name, runs in rounds.items():
        if name == "tokenizer":
            continue
        passes = PASSES if name == MORE else 1
        rate = examples * passes / statistics.median(one["seconds"] for one in runs)
        lines.append(f"| {name} | {spread([one['seconds'] for one in runs])} | {rate:,.0f} | "
                     f"{statistics.median(one['cpu'] for one in runs):.2f} | "
                     f"{statistics.median(one['logloss'] for one in runs):.4f} | {results['peak_mb'][name]:.0f} |")
    lines.append(f"| best possible | | | | {results['best']['best_logloss']:.4f} | |")
    ours = [one["seconds"] for one in rounds["pscloud"]]
    best_vw = [min(a["seconds"], b["seconds"]) for a, b in zip(rounds["vw --ftrl"], rounds["vw"])]
    cluster = [one["seconds"] for one in rounds["pscloud, 2 servers, 2 workers"]]
    parse = [one["rate"] for one in rounds["tokenizer"]]
    ratios = [v / o for v, o in zip(best_vw, ours)]
    further = [one["passes"][0] / statistics.median(one["passes"][1:]) for one in rounds[MORE]]
    lines += ["", f"Vowpal Wabbit's time (the better of its two) / ours: {spread(ratios)}. "
              f"Speed of servers and workers / that of one process: {spread([o / c for o, c in zip(ours, cluster)])}. "
              "Speed of a further pass, which reads no text, / that of the first, which also writes what the others "
              f"read: {spread(further)}. "
              f"Parsing alone, one core: {statistics.median(parse) / 1e6:.2f} M lines/s; of that rate on two cores the "
              f"training has {spread([examples / o / (2 * p) for o, p in zip(ours, parse)])}.", ""]
    return "\n".join(lines)


def publish(text, name):
    """Puts a table between its two marks in the page about benchmarks."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(begin, 1)
    PAGE.write_text(f"{head}{begin}\n{text}{end}{rest.split(end, 1)[1]}", encoding="utf-8")
    say(f"wrote {PAGE.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--examples", type=int, default=1000000)
    parser.add_argument("--minibatch", type=int, default=2000,
                        help="of pscloud: larger ones are faster and learn a little less from one pass [2000]")
    parser.add_argument("--redraw", action="store_true", help="the table of the last results, without measuring")
    parser.add_argument("--publish", action="store_true", help="also put it into docs/benchmarks.md")
    flags = parser.parse_args()
    results_file = FOLDER / "results.json"
    if not flags.redraw:
        results_file.parent.mkdir(parents=True, exist_ok=True)
        results = measure(flags, prepare(flags))
        results_file.write_text(json.dumps(results, indent=1), encoding="utf-8")
    text = table(json.loads(results_file.read_text(encoding="utf-8")))
    (FOLDER / "train.md").write_text(text, encoding="utf-8")
    print(text)
    if flags.publish:
        publish(text, "train")
    return 0


if __name__ == "__main__":
    sys.exit(main())
