#!/usr/bin/env python3
"""Files in S3: copied, listed, trained on and written, against a server that checks signatures (s3_server.py); what is
refused, and what a network does."""

import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import unittest

from harness import PSCLOUD, SANITIZER, SECONDS, until
from metadata_server import MetadataServer
from s3_server import Fault, S3Server, User

SECRET = "wJalrXUtnFEMI+bPxRfiCYzEXAMPLE/KEY"
TOKEN = "FwoGZXIvYXdzE/+="
PART_BYTES = 8 << 20
ODD_KEY = "odd/a b+c%2B ä&'<>\"\u2603..x"

TRAIN = """
training_data { format: TEXT text: LIBSVM file: "s3://logs/clicks/train-.*" }
model_output { format: TEXT file: "s3://models/day/clicks" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 100 }
"""
TEST = """
validation_data { format: TEXT text: LIBSVM file: "s3://logs/clicks/train-.*" }
model_input { format: TEXT file: "s3://models/day/clicks_S.*" }
"""


def made_up(size, seed=1):
    return random.Random(seed).randbytes(size)


class S3(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = S3Server()
        self.addCleanup(self.server.stop)
        self.server.buckets = {"logs": {}, "models": {}}
        self.server.users = {"KEY": User(SECRET), "ROLE": User(SECRET, TOKEN)}
        self.variables = {"AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                          "AWS_ENDPOINT_URL_S3": self.server.url, "AWS_EC2_METADATA_DISABLED": "true",
                          "HOME": str(self.folder), "no_proxy": "*"}

    def environment(self):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PSCLOUD_"))}
        return plain | {name: value for name, value in self.variables.items() if value is not None}

    def start(self, *words):
        process = subprocess.Popen([PSCLOUD, *map(str, words)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(process.kill)
        return process

    def run_here(self, *words, code=0):
        """What it says, on stdout if that goes well."""
        process = self.start(*words)
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, code, out + err)
        self.assertNotRegex(err, SANITIZER)
        for hidden in (SECRET, TOKEN):
            self.assertNotIn(hidden, out + err)
        return err if code else out

    def refused(self, *words):
        """Its complaint, a single line, and exit code 2."""
        err = self.run_here(*words, code=2)
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def test_files_are_copied_both_ways_byte_for_byte(self):
        for name, size in (("empty", 0), ("small", 1000), ("part", PART_BYTES), ("large", 2 * PART_BYTES + 12345)):
            with self.subTest(name):
                (self.folder / name).write_bytes(made_up(size))
                self.assertEqual(self.run_here("cp", name, f"s3://logs/a/{name}"), f"1 file, {size} bytes\n")
                self.assertEqual(self.server.get("logs", f"a/{name}"), made_up(size))
                self.run_here("cp", f"s3://logs/a/{name}", f"back/{name}")
                self.assertEqual((self.folder / "back" / name).read_bytes(), made_up(size))
        self.assertEqual(self.server.uploads, {})
        parts = [path for method, path in self.server.asked if method == "PUT" and "partNumber" in path]
        self.assertEqual(len(parts), 3)  # only the large one goes in parts

    def test_folders_patterns_and_odd_keys(self):
        for key in ("x/part-1", "x/part-2", "x/other", "x/deep/er/part-3", ODD_KEY):
            self.server.put("logs", key, key.encode())
        self.assertEqual(self.run_here("cp", "s3://logs/x/part-.*", "here"), "2 files, 16 bytes\n")
        self.assertEqual((self.folder / "here/part-2").read_text(), "x/part-2")
        self.run_here("cp", "-r", "s3://logs/", "all")
        self.assertEqual((self.folder / "all" / ODD_KEY).read_bytes(), ODD_KEY.encode())
        self.run_here("cp", "-r", "all", "s3://models/copy")
        self.assertEqual({key: found.body for key, found in self.server.buckets["models"].items()},
                         {f"copy/{key}": found.body for key, found in self.server.buckets["logs"].items()})
        self.assertEqual(self.run_here("ls", "s3://logs/x"), "        folder  s3://logs/x/deep/\n"
                         "             7  s3://logs/x/other\n             8  s3://logs/x/part-1\n"
                         "             8  s3://logs/x/part-2\n")
        found = json.loads(self.run_here("ls", "--json", "s3://logs/odd/"))
        self.assertEqual(found["files"][0]["uri"], f"s3://logs/{ODD_KEY}")
        self.assertIn("no file matches", self.refused("cp", "s3://logs/x/part", "."))

    def test_long_lists_have_pages(self):
        keys = [f"many/{i:05}" for i in range(2500)]
        for key in keys:
            self.server.put("logs", key, b"")
        found = json.loads(self.run_here("ls", "--json", "s3://logs/many/"))
        self.assertEqual([file["uri"] for file in found["files"]], [f"s3://logs/{key}" for key in keys])

    def test_trains_from_s3_to_s3(self):
        self.run_here("data", "generate", "s3://logs/clicks/train", "--examples", 20000, "--keys", 2600, "--files", 2)
        (self.folder / "train.conf").write_text(TRAIN)
        self.run_here("cp", "train.conf", "s3://models/train.conf")
        self.run_here("train", "s3://models/train.conf", "--servers", 2, "--workers", 2)
        self.assertEqual(sorted(self.server.buckets["models"]), ["day/clicks_S0", "day/clicks_S1", "train.conf"])
        (self.folder / "test.conf").write_text(TEST)
        told = json.loads(self.run_here("evaluate", "test.conf", "--json"))
        self.assertEqual(told["examples"], 20000)
        self.assertGreater(told["auc"], 0.6)
        self.run_here("predict", "test.conf", "--out", "s3://models/scores")
        self.assertEqual(self.server.get("models", "scores-1").count(b"\n"), 10000)

    def test_a_model_that_may_not_be_written_is_told_before_the_training(self):
        self.run_here("data", "generate", "s3://logs/clicks/train", "--examples", 100, "--keys", 260)
        (self.folder / "train.conf").write_text(TRAIN)
        self.server.users["KEY"].denied = {"s3:PutObject"}
        self.server.asked.clear()
        said = self.refused("train", "train.conf")
        self.assertIn("model_output: s3://models/day/clicks_S0: ", said)
        self.assertIn("lack s3:PutObject", said)
        self.assertFalse([path for method, path in self.server.asked if method == "GET" and "train-0" in path])
        self.server.users["KEY"].denied = set()
        self.run_here("train", "train.conf", "--quiet")
        self.assertEqual(self.server.uploads, {})

    def test_a_training_is_resumed_from_a_checkpoint_in_s3(self):
        self.run_here("data", "generate", "s3://logs/clicks/train", "--examples", 20000, "--keys", 2600, "--files", 8)
        (self.folder / "train.conf").write_text(TRAIN)
        train = ("train", "train.conf", "--servers", 1, "--workers", 1, "--set", "async_sgd.num_data_pass=2")
        checkpoints = ("--set", "checkpoint.folder=s3://models/ck", "--set", "checkpoint.every_seconds=0")
        self.run_here(*train)
        model = self.server.get("models", "day/clicks_S0")
        del self.server.buckets["models"]["day/clicks_S0"]

        def numbers():
            return sorted(int(key[14:]) for key in list(self.server.buckets["models"])
                          if key.startswith("ck/checkpoint-") and key[14:].isdigit())

        process = self.start(*train, *checkpoints)
        until(lambda: max(numbers(), default=0) >= 4, "a fourth checkpoint")
        process.kill()
        process.communicate(timeout=SECONDS)
        self.assertLessEqual(len(numbers()), 3)  # two are kept, and a third while one goes
        said = self.run_here(*train, *checkpoints, "--resume")
        self.assertIn("had been done before it was resumed", said)
        self.assertEqual(self.server.get("models", "day/clicks_S0"), model)
        self.assertEqual(numbers(), [])
        self.server.users["KEY"].denied = {"s3:DeleteObject"}
        process = self.start(*train, *checkpoints)
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, "the model is written, but its checkpoints are still there: .* lack s3:DeleteObject")

    def test_what_is_wrong_is_named(self):
        self.server.put("logs", "file", b"x")
        self.assertIn("s3://nowhere/file: there is no bucket nowhere", self.refused("ls", "s3://nowhere/file"))
        self.assertIn("s3://logs/none/other: no such file", self.refused("cp", "s3://logs/none/other", "here"))
        self.assertIn("no store for gs://", self.refused("ls", "gs://logs/file"))
        self.server.users["KEY"].denied = {"s3:ListBucket"}
        self.assertIn("lack s3:ListBucket on arn:aws:s3:::logs\n", self.refused("ls", "s3://logs/"))
        self.assertIn("without s3:ListBucket a file that is not there", self.refused("cp", "s3://logs/none", "here"))
        self.server.users["KEY"].denied = {"s3:PutObject"}
        (self.folder / "small").write_text("x")
        self.assertIn("lack s3:PutObject on arn:aws:s3:::logs/new", self.refused("cp", "small", "s3://logs/new"))
        self.server.clock_off_s = 3600
        self.assertRegex(self.refused("ls", "s3://logs/file"), "the clock of this machine is .*set it right")
        self.server.clock_off_s = 0
        self.server.region = "eu-west-1"
        self.assertIn("the bucket is in eu-west-1, not in us-east-1: set AWS_REGION=eu-west-1",
                      self.refused("ls", "s3://logs/file"))
        self.server.region = "us-east-1"
        self.variables["AWS_SECRET_ACCESS_KEY"] = "wrong"
        self.assertIn("the secret key is not the one of the access key", self.refused("ls", "s3://logs/file"))
        self.variables["AWS_ACCESS_KEY_ID"] = "unknown"
        self.assertIn("does not know the access key (it comes from AWS_ACCESS_KEY_ID)",
                      self.refused("ls", "s3://logs/file"))
        self.variables["AWS_ACCESS_KEY_ID"] = self.variables["AWS_SECRET_ACCESS_KEY"] = None
        self.assertIn("no AWS keys", self.refused("ls", "s3://logs/file"))

    def test_keys_of_a_session_and_of_an_instance(self):
        self.server.put("logs", "file", b"x")
        self.variables["AWS_ACCESS_KEY_ID"] = "ROLE"
        self.assertIn("the session token is wrong or has expired", self.refused("ls", "s3://logs/file"))
        self.variables["AWS_SESSION_TOKEN"] = TOKEN
        self.run_here("ls", "s3://logs/file")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_EC2_METADATA_DISABLED"):
            self.variables[name] = None
        expires = datetime.datetime.utcnow() + datetime.timedelta(hours=1)
        keys = {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ROLE", "SecretAccessKey": SECRET, "Token": TOKEN,
                "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
        role = "iam/security-credentials"
        metadata = MetadataServer(lambda: {role: "trainer", f"{role}/trainer": keys}).start()
        self.addCleanup(metadata.stop)
        self.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = metadata.url
        self.run_here("ls", "s3://logs/file")

    def test_a_server_must_prove_who_it_is(self):
        self.server.put("logs", "file", b"x")
        certificate = self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", self.folder / "key.pem", "-out", certificate, "-days", "2", "-subj", "/CN=store",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, timeout=SECONDS)
        self.server.use_tls(certificate, self.folder / "key.pem")
        self.variables["AWS_ENDPOINT_URL_S3"] = self.server.url
        self.assertIn("certificate", self.run_here("ls", "s3://logs/file", code=1))
        self.assertEqual(self.server.asked, [])
        self.variables["AWS_CA_BUNDLE"] = str(certificate)
        self.run_here("ls", "s3://logs/file")

    def test_what_passes_is_tried_again(self):
        size = 2 * PART_BYTES
        (self.folder / "large").write_bytes(made_up(size))
        self.server.faults = [Fault(2, "PUT", status=503), Fault(1, "PUT"), Fault(1, "POST", "uploads=", status=500),
                              Fault(2, "GET"), Fault(2, "GET", "large", status=503), Fault(1, "HEAD")]
        self.run_here("cp", "large", "s3://logs/large")
        self.run_here("cp", "s3://logs/large", "back")
        self.assertEqual((self.folder / "back").read_bytes(), made_up(size))
        self.assertEqual([fault.times for fault in self.server.faults], [0] * 6)

    def test_a_completion_whose_answer_is_lost_counts(self):
        (self.folder / "large").write_bytes(made_up(PART_BYTES + 1))
        self.server.faults = [Fault(1, "POST", "uploadId=", after=True)]
        self.run_here("cp", "large", "s3://logs/large")
        self.assertEqual(self.server.get("logs", "large"), made_up(PART_BYTES + 1))
        self.assertEqual(sum(method == "POST" and "uploadId=" in path for method, path in self.server.asked), 2)

    def test_a_server_that_stays_ill_is_given_up(self):
        self.server.put("logs", "file", b"x")
        self.server.faults = [Fault(100, status=503)]
        self.variables["AWS_MAX_ATTEMPTS"] = "3"
        err = self.run_here("ls", "s3://logs/file", code=3)
        self.assertRegex(err, r"s3://logs/file: 127.0.0.1:\d+ answers with status 503 .*\(3 tries\)")

    def test_nothing_is_left_of_what_failed_or_was_interrupted(self):
        (self.folder / "large").write_bytes(made_up(3 * PART_BYTES))
        self.server.faults = [Fault(1, "PUT", "partNumber=2", status=400)]
        self.run_here("cp", "large", "s3://logs/large", code=1)
        self.assertEqual((self.server.uploads, self.server.buckets["logs"]), ({}, {}))
        self.server.faults = [Fault(10000, "PUT", "partNumber=2", status=503)]
        process = self.start("cp", "large", "s3://logs/large")
        until(lambda: self.server.uploads and self.server.faults[0].times < 10000, "an upload that is stuck")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual((self.server.uploads, self.server.buckets["logs"]), ({}, {}))

    def test_a_file_that_changes_while_it_is_read_is_noticed(self):
        self.server.put("logs", "large", made_up(PART_BYTES))
        server = self.server

        class Change(Fault):
            def wants(self, method, path):
                if method == "GET" and "large" in path:
                    self.times -= 1
                    if self.times == 0:
                        server.put("logs", "large", made_up(PART_BYTES, seed=2))
                return False

        server.faults = [Change(2)]
        err = self.run_here("cp", "s3://logs/large", "back", code=1)
        self.assertIn("s3://logs/large: has changed since the run began", err)
        self.assertFalse((self.folder / "back").exists())


if __name__ == "__main__":
    unittest.main()
