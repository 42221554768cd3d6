#!/usr/bin/env python3
"""Trains L1 logistic regression in batch with pscloud and with LIBLINEAR (-s 6), in turn, and shows how they compare.

    make bench-train                        this too, after the online one
    bench/peers/batch.py --data a9a         a LIBSVM file of your own instead of the generated ones
    bench/peers/batch.py --redraw --publish puts the last results into docs/benchmarks.md

Both minimise loss + lambda * |w|, from text to the model in a file; the time is that of the whole process.
The objective of a model is found by pscloud from the model and the data, alike for both. Stopping rules differ, so
there are two comparisons: each with its own default, and each with the loosest rule of a grid that brings it within
1e-4 of the optimum, which is the best that strict rules of either find. Writes results.json and batch.md to
build/batch. Exit codes: 0 done, 1 a run failed.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
from random import Random

from train import PSCLOUD, ROOT, publish, run, spread

FOLDER = ROOT / "build/batch"
CONFIG = """training_data {{ format: TEXT text: LIBSVM file: "{data}" }}
model_output {{ format: TEXT file: "{folder}/model" }}
loss {{ type: LOGIT }}
penalty {{ type: L1 lambda: {penalty} }}
darlin {{ max_pass_of_data: 1000 epsilon: {epsilon} }}
"""
EVALUATE = """validation_data {{ format: TEXT text: LIBSVM file: "{data}" }}
model_input {{ format: TEXT file: "{model}" }}
"""


NEAR = 1e-4
DEFAULT = {"pscloud": 1e-4, "LIBLINEAR": 0.01}
STRICT = {"pscloud": 1e-8, "LIBLINEAR": 1e-5}
GRID = {"pscloud": [1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7],
        "LIBLINEAR": [0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001]}


def say(text):
    print(f"batch: {text}", file=sys.stderr, flush=True)


def write_census(path, examples=32561):
    """As a9a: one of some values of each of 14 attributes, with 123 values in all. Attributes go together, by a class
    that is not told, and values are not equally frequent."""
    sizes = [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41]
    random = Random(1)
    weights = [[random.gauss(-0.15, 0.7) for _ in range(size)] for size in sizes]
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(examples):
            hidden = random.random()
            values = [min(size - 1, int(size * (0.6 * hidden + 0.4 * random.random()) ** 2)) for size in sizes]
            score = math.fsum(of[value] for of, value in zip(weights, values))
            label = "+1" if random.random() < 1 / (1 + math.exp(-score)) else "-1"
            firsts = itertools.accumulate(sizes, initial=1)
            out.write(" ".join([label, *(f"{first + value}:1" for first, value in zip(firsts, values))]) + "\n")


def data_sets(flags):
    """Names and files. The first is like a9a, the second has numbers beside categories, the third is as wide and sparse
    as a click log."""
    if flags.data:
        return {pathlib.Path(one).name: pathlib.Path(one).resolve() for one in flags.data}
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = {name: FOLDER / f"{name}-0" for name in ("census", "small", "wide")}
    if not files["census"].exists():
        write_census(files["census"])
    for name, examples, keys in (("small", 32000, 130), ("wide", 200000, 100000)):
        if not files[name].exists():
            run([PSCLOUD, "data", "generate", FOLDER / name, "--seed", 1, "--examples", examples, "--keys", keys])
    return files


def write_model(liblinear, to):
    """LIBLINEAR's model as ours: key TAB weight."""
    lines = liblinear.read_text(encoding="utf-8").splitlines()
    sign = 1 if next(line for line in lines if line.startswith("label")).split()[1] == "1" else -1
    weights = [sign * float(line) for line in lines[lines.index("w") + 1:] if line.strip()]
    with open(to, "w", encoding="utf-8") as out:
        out.writelines(f"{i + 1}\t{weight!r}\n" for i, weight in enumerate(weights) if weight != 0)


def objective(data, penalty, model):
    (FOLDER / "evaluate.conf").write_text(EVALUATE.format(data=data, model=model), encoding="utf-8")
    scored = json.loads(run([PSCLOUD, "evaluate", FOLDER / "evaluate.conf", "--json"])["out"])
    with open(model, encoding="utf-8") as lines:
        weights = math.fsum(abs(float(line.split()[1])) for line in lines)
    return scored["logloss"] * scored["examples"] + penalty * weights


class Contest:
    """One file, and how either program trains on it."""

    def __init__(self, data, penalty):
        self.data, self.penalty = data, penalty

    def train(self, system, rule):
        """Seconds and objective with this stopping rule."""
        if system == "pscloud":
            config = FOLDER / "train.conf"
            config.write_text(CONFIG.format(data=self.data, folder=FOLDER, penalty=self.penalty, epsilon=rule),
                              encoding="utf-8")
            seconds = run([PSCLOUD, "train", config, "--quiet"])["seconds"]
            model = FOLDER / "model_S0"
        else:
            trained = FOLDER / "liblinear"
            seconds = run(["liblinear-train", "-s", 6, "-c", 1 / self.penalty, "-q", "-e", rule, self.data,
                           trained])["seconds"]
            model = FOLDER / "liblinear.txt"
            write_model(trained, model)
        return {"seconds": seconds, "objective": objective(self.data, self.penalty, model)}

    def loosest(self, system, optimum):
        """The first rule of the grid that comes near enough."""
        for rule in GRID[system]:
            if self.train(system, rule)["objective"] <= optimum * (1 + NEAR):
                return rule
        sys.exit(f"batch: {system} does not come within {NEAR:g} of {optimum} on {self.data}")


def measure(flags):
    results = {"rounds": flags.rounds, "penalty": flags.penalty, "sets": {},
               "machine": f"{os.cpu_count()} cores, {platform.machine()}"}
    for name, data in data_sets(flags).items():
        contest = Contest(data, flags.penalty)
        say(f"{name}: the optimum, and what is enough to come near it")
        optimum = min(contest.train(system, rule)["objective"] for system, rule in STRICT.items())
        runs = [{"kind": kind, "system": system, "rule": rule, "runs": []}
                for kind, rules in (("default", DEFAULT),
                                    ("near", {system: contest.loosest(system, optimum) for system in DEFAULT}))
                for system, rule in rules.items()]
        for number in range(flags.rounds):
            for one in runs:
                say(f"{name}, round {number + 1} of {flags.rounds}: {one['system']}, {one['rule']:g}")
                one["runs"].append(contest.train(one["system"], one["rule"]))
        results["sets"][name] = {"optimum": optimum, "systems": runs}
    return results


def table(results):
    lines = [f"lambda {results['penalty']:g}, {results['machine']}; medians of {results['rounds']} alternating rounds, "
             "with the least and the largest.", "",
             f"| data | stopping rule | | seconds | objective / optimum - 1 | its time / ours |",
             "| --- | --- | --- | --- | --- | --- |"]
    for name, found in results["sets"].items():
        ours = {one["kind"]: one["runs"] for one in found["systems"] if one["system"] == "pscloud"}
        for one in found["systems"]:
            rule = f"epsilon {one['rule']:g}" if one["system"] == "pscloud" else f"-e {one['rule']:g}"
            kind = "its default" if one["kind"] == "default" else f"within {NEAR:g} of the optimum"
            above = statistics.median(run["objective"] for run in one["runs"]) / found["optimum"] - 1
            times = spread([its["seconds"] / our["seconds"] for its, our in zip(one["runs"], ours[one["kind"]])])
            lines.append(f"| {name} | {kind} | {one['system']}, {rule} | "
                         f"{spread([run['seconds'] for run in one['runs']])} | {above:.1e} | "
                         f"{'' if one['system'] == 'pscloud' else times} |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", nargs="*", metavar="FILE", help="LIBSVM files")
    parser.add_argument("--penalty", type=float, default=1, metavar="LAMBDA")
    parser.add_argument("--redraw", action="store_true", help="the table of the last results, without measuring")
    parser.add_argument("--publish", action="store_true", help="also put it into docs/benchmarks.md")
    flags = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    results_file = FOLDER / "results.json"
    if not flags.redraw:
        results_file.write_text(json.dumps(measure(flags), indent=1), encoding="utf-8")
    text = table(json.loads(results_file.read_text(encoding="utf-8")))
    (FOLDER / "batch.md").write_text(text, encoding="utf-8")
    print(text)
    if flags.publish:
        publish(text, "batch")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"batch: {error}")
