"""A training whose data come as slowly as a test wants, so that there is something left to do for who comes late."""

import json
import threading

from launch_harness import PSCLOUD
from s3_server import S3Server

FILES = 200
EXAMPLES = 2000
# Checkpoints are so far apart that one is made only because a worker leaves.
CONFIG = """
training_data { format: TEXT text: LIBSVM file: "s3://private/clicks/train-.*" }
model_output { format: TEXT file: "s3://private/model/clicks" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 10 }
checkpoint { folder: "s3://private/ck" every_seconds: 3600 }
"""


class SlowTraining:
    def __init__(self, test, users, host="127.0.0.1"):
        self.store = S3Server(host=host)
        test.addCleanup(self.store.stop)
        self.store.buckets = {"private": {}}
        self.store.users = users
        test.pscloud("data", "generate", "train", "--examples", EXAMPLES, "--keys", 500, "--files", FILES)
        for path in test.work.glob("train-*"):
            self.store.put("private", f"clicks/{path.name}", path.read_bytes())
        self.readers = []  # who has asked for data, in this order
        self.hurry = threading.Event()
        self.pace_s = 1  # for a part of the data
        self.store.on_request = self.on_request
        test.addCleanup(self.hurry.set)

    def on_request(self, address, method, key):
        if method == "GET" and key.startswith("clicks/train-"):
            self.readers.append(address)
            self.hurry.wait(self.pace_s)

    def start(self, test, on, name, *more, **variables):
        (test.work / "online.conf").write_text(CONFIG)
        return test.start(PSCLOUD, "train", "online.conf", "--on", on, "--name", name, "--servers", 1, "--workers", 2,
                          "--env", "AWS_ENDPOINT_URL_S3", "--json", *more,
                          **{"AWS_ENDPOINT_URL_S3": self.store.url, **variables})

    def checkpoints(self):
        return sorted(key for key in self.store.buckets["private"] if key.startswith("ck/checkpoint-"))

    def check_result(self, test, process):
        """Each example has counted once; what counted twice would be named."""
        self.check_line(test, process.out.read_text().strip().splitlines()[-1])

    def check_line(self, test, line):
        result = json.loads(line)
        test.assertEqual(result["examples"] - result["repeated"], EXAMPLES)
        test.assertEqual(result["repeated"], 0, "a worker that is drained finishes its part")
        test.assertTrue([key for key in self.store.buckets["private"] if key.startswith("model/clicks")])
