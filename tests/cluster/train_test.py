#!/usr/bin/env python3
"""`pscloud train` with servers and workers of its own: kill -9 of a worker in the middle, and of all of it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, SANITIZERS, SECONDS, children, train_workers, until

PSCLOUD = BUILD / "pscloud"
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "examples/linear"
EXAMPLES = 30000 if SANITIZERS else 200000
CONFIG = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 50 }
"""
BATCH = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
penalty { type: L1 lambda: 10 }
darlin { max_pass_of_data: 40 epsilon: 1e-5 }
"""
TEST = """
validation_data { format: TEXT text: LIBSVM file: "train-.*" }
model_input { format: TEXT file: "model_S.*" }
"""


def bytes_read(pid):
    """By system calls: programs and libraries are mapped, files of examples are read."""
    return int(pathlib.Path(f"/proc/{pid}/io").read_text().split()[1])


def peak_bytes(pid):
    """The most memory that a process has had; none if it is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(found[1]) * 1024 if found else None


class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_here("data", "generate", "train", "--examples", EXAMPLES, "--keys", 26000, "--files", 3)
        (self.folder / "train.conf").write_text(CONFIG)
        (self.folder / "test.conf").write_text(TEST)

    def run_here(self, *words):
        return subprocess.run([PSCLOUD, *map(str, words)], cwd=self.folder, check=True, capture_output=True, text=True,
                              timeout=SECONDS).stdout

    def start(self, config="train.conf", *flags, err=subprocess.PIPE, **variables):
        process = subprocess.Popen([PSCLOUD, "train", config, "--servers", "2", "--workers", "3", "--json", *flags],
                                   cwd=self.folder, env={**os.environ, **variables}, stdout=subprocess.PIPE,
                                   stderr=err, text=True)
        self.addCleanup(process.kill)
        until(lambda: len(train_workers(process.pid)) == 3, "three workers")
        return process

    def test_what_a_killed_worker_had_is_done_by_the_others(self):
        process = self.start()
        victim = train_workers(process.pid)[0]
        until(lambda: bytes_read(victim) > 1 << 20, "a worker that is in the middle of its parts")
        subprocess.run(["kill", "-9", str(victim)], check=True)
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"worker \d died")
        self.assertIn("the others have done its work", err)
        summary = json.loads(out)
        self.assertEqual(summary["examples"] - summary["repeated"], EXAMPLES)  # every line, once or named as repeated
        if summary["repeated"]:
            self.assertIn("again, for who had it has left, has died or is slow", err)
        self.assertLess(summary["repeated"], EXAMPLES * 0.2)
        model = json.loads(self.run_here("evaluate", "test.conf", "--json"))
        self.assertEqual(model["examples"], EXAMPLES)
        self.assertGreater(model["auc"], 0.75)

    def test_what_a_worker_had_that_stands_still_is_done_by_another(self):
        # It is not dead: nobody has missed it for long enough.
        with (self.folder / "err").open("w") as err:
            process = self.start(err=err, PSCLOUD_DEATH_TIMEOUT_MS=str(1000 * SECONDS))
        victim = train_workers(process.pid)[0]
        until(lambda: bytes_read(victim) > 1 << 20, "a worker that is in the middle of its parts")
        os.kill(victim, signal.SIGSTOP)
        self.addCleanup(lambda: train_workers(process.pid) and os.kill(victim, signal.SIGCONT))
        until(lambda: "again, for who had it has left, has died or is slow" in (self.folder / "err").read_text(),
              "another who has done its part")
        os.kill(victim, signal.SIGCONT)
        out, _ = process.communicate(timeout=SECONDS)
        err = (self.folder / "err").read_text()
        self.assertEqual(process.returncode, 0, err)
        self.assertNotIn("died:", err)
        summary = json.loads(out)
        # Repeated are those that it had told of, or tells of before the others end, who do not wait for it.
        self.assertEqual(summary["examples"] - summary["repeated"], EXAMPLES)

    def test_it_ends_though_a_worker_hangs(self):
        process = self.start(PSCLOUD_DEATH_TIMEOUT_MS="2000")
        victim = train_workers(process.pid)[0]
        until(lambda: bytes_read(victim) > 1 << 20, "a worker that is in the middle of its parts")
        os.kill(victim, signal.SIGSTOP)
        out, err = process.communicate(timeout=2 * SECONDS)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"worker process \d does not end; the others have done its work")
        summary = json.loads(out)
        self.assertEqual(summary["examples"] - summary["repeated"], EXAMPLES)
        self.assertEqual(summary["repeated_parts"], 1)
        self.assertFalse(pathlib.Path(f"/proc/{victim}").exists())

    def test_it_ends_though_all_workers_hang(self):
        process = self.start(PSCLOUD_DEATH_TIMEOUT_MS="2000", PSCLOUD_RESTART_WAIT_MS="0")
        workers = train_workers(process.pid)
        until(lambda: bytes_read(workers[0]) > 1 << 20, "a worker that is in the middle of its parts")
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        _, err = process.communicate(timeout=2 * SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("every worker died and none was started again", err)
        self.assertIn("the job is over, but no worker process has ended", err)
        self.assertFalse(any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers))

    def test_a_worker_that_fails_says_why_and_nothing_else(self):
        with (self.folder / "train-0").open("a") as data:
            data.write("1 3:x\n")
        process = self.start("train.conf", "--strict")
        _, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 2, err)
        for line in err.splitlines():
            self.assertRegex(line, r"worker \d died: train-0:\d+: |^pscloud: train-0:\d+: ")

    def test_further_passes_do_without_what_a_killed_worker_had_kept(self):
        (self.folder / "tmp").mkdir()
        process = self.start("train.conf", "--set", "async_sgd.num_data_pass=4", "--set", "async_sgd.minibatch=200",
                             TMPDIR=str(self.folder / "tmp"))
        victim = train_workers(process.pid)[0]
        text = sum(file.stat().st_size for file in self.folder.glob("train-*"))
        until(lambda: bytes_read(victim) > text / 3 * 1.3, "a worker that reads what it has kept")
        subprocess.run(["kill", "-9", str(victim)], check=True)
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, err)
        summary = json.loads(out)
        self.assertEqual(summary["examples"] - summary["repeated"], 4 * EXAMPLES)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_batch_training_goes_on_without_a_killed_worker(self):
        (self.folder / "batch.conf").write_text(BATCH)
        alone = json.loads(self.run_here("train", "batch.conf", "--json"))
        process = self.start("batch.conf")
        victim = train_workers(process.pid)[0]
        until(lambda: bytes_read(victim) > 1 << 20, "a worker that has examples")
        subprocess.run(["kill", "-9", str(victim)], check=True)
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"worker \d died")
        summary = json.loads(out)
        self.assertEqual(summary["examples"], EXAMPLES)
        self.assertAlmostEqual(summary["objective"] / alone["objective"], 1, delta=1e-4)

    def test_nobody_is_left_when_it_is_killed(self):
        process = self.start()
        family = list(children(process.pid))
        self.assertEqual(len(family), 5)
        process.kill()
        process.communicate(timeout=SECONDS)
        until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in family), "the end of all")
        self.assertEqual(list(self.folder.glob("model*")), [])


@unittest.skipIf(SANITIZERS, "their memory is not ours")
class DryRun(unittest.TestCase):
    """What --dry-run says of the memory, beside what a run takes at most."""

    def check(self, config, *flags, examples=40000, keys=26000, text="LIBSVM"):
        with tempfile.TemporaryDirectory() as folder:
            def start(*words):
                return subprocess.Popen([PSCLOUD, *map(str, words)], cwd=folder, stdout=subprocess.PIPE, text=True)

            for name, count, seed in (("train", examples, 1), ("test", examples // 4, 2)):
                start("data", "generate", name, "--examples", count, "--keys", keys, "--seed", seed, "--format",
                      text).communicate()
            (pathlib.Path(folder) / "x.conf").write_text(config)
            train = ("train", "x.conf", "--json", *flags)
            planned = json.loads(start(*train, "--dry-run").communicate()[0])["processes"]
            said = {one["what"]: one["bytes"] for one in planned}
            process = start(*train)
            if "server" not in said:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                process.stdout.close()
                self.assertEqual(process.returncode, 0)
                self.assertAlmostEqual(said["this process"] / (usage.ru_maxrss * 1024), 1, delta=0.2)
                return
            peaks = {}  # of each process, as long as it is there
            while process.poll() is None:
                for pid, words in children(process.pid).items():
                    peak = peak_bytes(pid)
                    if peak:
                        peaks[pid] = ("worker" if "--as-worker" in words else "server", peak)
            process.stdout.close()
            self.assertEqual(process.returncode, 0)
            for what in ("server", "worker"):
                took = max(peak for kind, peak in peaks.values() if kind == what)
                self.assertAlmostEqual(said[what] / took, 1, delta=0.2, msg=what)

    def test_of_online_training_is_right(self):
        self.check(CONFIG, "--threads", 2)

    def test_of_many_minibatches_at_a_time_and_of_large_ones_too(self):
        for more in (("max_delay=8",), ("max_delay=8", "minibatch=10000"), ("max_delay=32", "minibatch=1000")):
            with self.subTest(more):
                self.check(CONFIG, "--threads", 2, *(word for one in more for word in ("--set", "async_sgd." + one)),
                           examples=100000, keys=500000)
        self.check(CONFIG + "factorization_machine { dim: 8 threshold: 5 }", "--threads", 2, "--set",
                   "async_sgd.max_delay=8", "--set", "async_sgd.minibatch=1000")

    def test_of_plain_steps_too(self):
        self.check(CONFIG, "--threads", 2, "--set", "async_sgd.algo=STANDARD", "--set", "learning_rate.type=CONSTANT",
                   keys=200000)

    def test_of_an_example_with_filters_and_features_without_values_too(self):
        config = (CONFIGS / "ctr/online_l1lr.conf").read_text().replace("data/ctr/train/part.*", "train-.*")
        self.check(config, "--threads", 2, text="SPARSE_BINARY")

    def test_of_validation_too(self):
        self.check(CONFIG + 'validation_data { format: TEXT text: LIBSVM file: "test-.*" }', "--threads", 2)

    def test_of_batch_training_too(self):
        self.check(BATCH, "--threads", 2, "--set", "darlin.max_pass_of_data=3")

    def test_of_a_factorization_machine_too(self):
        self.check(CONFIG + "factorization_machine { dim: 8 threshold: 5 }", "--threads", 2, keys=200000)

    def test_of_seldom_features_that_are_left_out_too(self):
        self.check(CONFIG, "--threads", 2, "--set", "async_sgd.tail_feature_freq=4", "--set",
                   "async_sgd.countmin_n=1e6", keys=200000)
        self.check(BATCH, "--threads", 2, "--set", "darlin.max_pass_of_data=3", "--set", "darlin.tail_feature_freq=4",
                   keys=200000)

    def test_of_servers_and_workers_too(self):
        for more in ("", "factorization_machine { dim: 8 threshold: 5 }"):
            self.check(CONFIG + more, "--servers", 2, "--workers", 2, "--threads", 1, keys=200000)

    def test_of_many_keys_in_few_examples_too(self):
        self.check(BATCH, "--threads", 2, "--set", "darlin.max_pass_of_data=3", examples=20000, keys=5000000)
        self.check(CONFIG, "--threads", 2, examples=2000, keys=1000000)


if __name__ == "__main__":
    unittest.main()
