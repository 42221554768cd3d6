#!/usr/bin/env python3
"""Trains L1 logistic regression in batch with pscloud and with LIBLINEAR (-s 6), in turn, and shows how they compare.

    make bench-train                        this too, after the online one
    bench/peers/batch.py --data a9a         a LIBSVM file of your own instead of the generated ones
    bench/peers/batch.py --redraw --publish puts the last results into docs/benchmarks.md

Both minimise loss + lambda * |w|, from text to the model in a file; the time is that of the whole process.
The objective of a model is found by pscloud from the model and the data, alike for both. Writes results.json and
batch.md to build/batch. Exit codes: 0 done, 1 a run failed.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys

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


def say(text):
    print(f"batch: {text}", file=sys.stderr, flush=True)


def data_sets(flags):
    """Names and files. The first is as small as a9a, the second as wide and sparse as a click log."""
    if flags.data:
        return {pathlib.Path(one).name: pathlib.Path(one).resolve() for one in flags.data}
    FOLDER.mkdir(parents=True, exist_ok=True)
    shapes = {"small": ["--examples", 32000, "--keys", 130], "wide": ["--examples", 200000, "--keys", 100000]}
    files = {}
    for name, shape in shapes.items():
        files[name] = FOLDER / f"{name}-0"
        if not files[name].exists():
            run([PSCLOUD, "data", "generate", FOLDER / name, "--seed", 1, *shape])
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


def measure(flags):
    results = {"rounds": flags.rounds, "penalty": flags.penalty, "epsilon": flags.epsilon, "sets": {},
               "machine": f"{os.cpu_count()} cores, {platform.machine()}"}
    for name, data in data_sets(flags).items():
        (FOLDER / "train.conf").write_text(
            CONFIG.format(data=data, folder=FOLDER, penalty=flags.penalty, epsilon=flags.epsilon), encoding="utf-8")
        liblinear = ["liblinear-train", "-s", 6, "-c", 1 / flags.penalty, "-q"]
        systems = {"pscloud": [PSCLOUD, "train", FOLDER / "train.conf", "--quiet"],
                   "LIBLINEAR": [*liblinear, data, FOLDER / "liblinear"],
                   "LIBLINEAR, -e 0.0001": [*liblinear, "-e", 0.0001, data, FOLDER / "liblinear"]}
        runs = {}
        for number in range(flags.rounds):
            for system, command in systems.items():
                say(f"{name}, round {number + 1} of {flags.rounds}: {system}")
                one = run(command)
                model = FOLDER / "model_S0"
                if system != "pscloud":
                    model = FOLDER / "liblinear.txt"
                    write_model(FOLDER / "liblinear", model)
                runs.setdefault(system, []).append({"seconds": one["seconds"],
                                                    "objective": objective(data, flags.penalty, model)})
        results["sets"][name] = runs
    return results


def table(results):
    lines = [f"lambda {results['penalty']:g}, {results['machine']}; medians of {results['rounds']} alternating rounds, "
             f"with the least and the largest. pscloud stops at epsilon {results['epsilon']:g}.", "",
             "| data | | seconds | objective | its time / ours | its objective / ours - 1 |",
             "| --- | --- | --- | --- | --- | --- |"]
    for name, runs in results["sets"].items():
        ours = runs["pscloud"]
        for system, all_runs in runs.items():
            times = spread([one["seconds"] / our["seconds"] for one, our in zip(all_runs, ours)])
            above = statistics.median(one["objective"] / our["objective"] - 1 for one, our in zip(all_runs, ours))
            lines.append(f"| {name} | {system} | {spread([one['seconds'] for one in all_runs])} | "
                         f"{statistics.median(one['objective'] for one in all_runs):.2f} | "
                         + ("| |" if system == "pscloud" else f"{times} | {above:+.1e} |"))
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", nargs="*", metavar="FILE", help="LIBSVM files")
    parser.add_argument("--penalty", type=float, default=1, metavar="LAMBDA")
    parser.add_argument("--epsilon", type=float, default=1e-4)
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
