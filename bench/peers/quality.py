#!/usr/bin/env python3
"""How good models of pscloud are on a data set that others have published figures of: trains on one LIBSVM file, online
and in batch, tries the models on another one, and shows AUC and logloss.

    bench/peers/quality.py a9a a9a.t                              shows them
    bench/peers/quality.py a9a a9a.t --auc 0.901 --logloss 0.326  exit code 1 if a model is worse

The files are not ours to give: https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/ has them.
Exit codes: 0 done, 1 a run failed or a model is worse.
"""

import argparse
import json
import pathlib
import sys
import tempfile

from train import PSCLOUD, run

COMMON = """training_data {{ format: TEXT text: LIBSVM file: "{train}" }}
validation_data {{ format: TEXT text: LIBSVM file: "{test}" }}
model_output {{ format: TEXT file: "model" }}
loss {{ type: LOGIT }}
"""
# One worker: two runs of it give the same figures.
WAYS = {
    "online": """penalty {{ type: L1 lambda: 0.1 }}
learning_rate {{ type: DECAY alpha: 0.1 beta: 1 }}
async_sgd {{ algo: FTRL minibatch: 100 num_data_pass: 5 }}
""",
    "batch": """penalty {{ type: L1 lambda: 1 }}
darlin {{ max_pass_of_data: 200 }}
""",
}


def measure(way, train, test):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "quality.conf"
        config.write_text((COMMON + WAYS[way]).format(train=train, test=test).replace('"model"', f'"{folder}/model"'),
                          encoding="utf-8")
        return json.loads(run([PSCLOUD, "train", config, "--threads", 1, "--json"])["out"])["validation"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("test", type=pathlib.Path)
    parser.add_argument("--auc", type=float, default=0.0, help="at least")
    parser.add_argument("--logloss", type=float, default=float("inf"), help="at most")
    flags = parser.parse_args()
    worse = []
    for way in WAYS:
        found = measure(way, flags.train.resolve(), flags.test.resolve())
        print(f"{way:8} auc {found['auc']:.4f}  accuracy {found['accuracy']:.4f}  logloss {found['logloss']:.4f}")
        if found["auc"] < flags.auc or found["logloss"] > flags.logloss:
            worse.append(way)
    if worse:
        sys.exit(f"quality: worse than wanted: {', '.join(worse)}")


if __name__ == "__main__":
    main()
