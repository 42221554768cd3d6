#!/usr/bin/env python3
"""What of the comparison can be tested without the peers: the loop, the statistics, table and chart, and the runner on
programs that only pretend."""

import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree as xml
from collections.abc import Callable
from typing import Any
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import adder  # noqa: E402
import chart  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402

JOB = adder.Job(servers=2, workers=1, size_mb=0.002, iters=3, warmup=2, timeout_s=30, api="")


class Floats(list):
    """As much of a numpy array as the adder uses."""

    def min(self) -> float:
        return min(self)

    def max(self) -> float:
        return max(self)


class LocalAdder:
    def __init__(self, lose: int = -1) -> None:
        self.parts, self.steps, self.lose = [Floats([0.0] * 4), Floats([0.0] * 4)], 0, lose

    def step(self) -> Any:
        for part in self.parts:
            part[:] = [value + (0 if self.steps == self.lose and i == 3 else 1) for i, value in enumerate(part)]
        self.steps += 1
        return self.parts

    def read(self) -> Any:
        return self.parts

    def values(self, got: Any) -> list[Any]:
        return got


class SharedAdder(LocalAdder):
    """Of several threads."""

    def __init__(self, lose: int) -> None:
        super().__init__(lose)
        self.lock = threading.Lock()

    def push(self) -> None:
        with self.lock:
            self.step()

    def read(self) -> Any:
        return [Floats(part) for part in self.parts]


def serve(_job: adder.Job, _rank: int, _where: Any) -> None:
    threading.Event().wait()


def learn(job: adder.Job, _rank: int, _where: Any, meet: Callable[[], None]) -> adder.WorkerRun:
    return adder.measure(adder.Job(**{**vars(job), "workers": 1}), LocalAdder(), meet)


def fail(_job: adder.Job, _rank: int, _where: Any, meet: Callable[[], None]) -> adder.WorkerRun:
    meet()
    raise ValueError("no such transport")


class TheLoop(unittest.TestCase):
    def test_only_iterations_after_the_warm_up_are_timed(self) -> None:
        meetings = []
        found = adder.measure(JOB, LocalAdder(), lambda: meetings.append(1))
        self.assertEqual((len(found.iteration_ms), found.values_ok, len(meetings)), (3, True, 4))

    def test_in_sync_mode_each_value_has_the_pushes_of_all(self) -> None:
        job = adder.Job(**{**vars(JOB), "workers": 2, "mode": "sync"})
        for lose in (-1, 3):
            shared, meet, told = SharedAdder(lose), threading.Barrier(2, timeout=30).wait, []
            with concurrent.futures.ThreadPoolExecutor(2) as workers:
                runs = list(workers.map(lambda _: adder.measure(job, shared, meet, told.append), range(2)))
            self.assertEqual([run.values_ok for run in runs], [lose < 0] * 2)
            self.assertEqual(len(told), 2 * JOB.iters)
            self.assertTrue(all(push + get <= everything for push, get, everything, _ in told), told)

    def test_one_lost_addition_is_noticed(self) -> None:
        for step in range(5):
            self.assertFalse(adder.measure(JOB, LocalAdder(lose=step), lambda: None).values_ok, step)

    def test_quantiles_are_those_of_pscloud(self) -> None:
        # bench_adder.cc: the value at floor(q x count) of the sorted ones, at most the last.
        self.assertEqual([adder.quantile([3.0, 1.0, 2.0, 4.0], q) for q in (0, 0.5, 0.95, 1)], [1, 3, 4, 4])

    def test_a_tensor_that_cannot_be_cut_is_refused(self) -> None:
        self.assertEqual(JOB.part, 250)
        with self.assertRaisesRegex(ValueError, "3 equal parts"):
            _ = adder.Job(**{**vars(JOB), "servers": 3}).part

    def test_the_line_has_what_the_runner_wants(self) -> None:
        line = adder.report("x", "1.0", JOB, [adder.WorkerRun([2.0, 4.0, 3.0]), adder.WorkerRun([9.0], False)], "how")
        self.assertEqual(run.find_line(f"chatter\n{line}\n"), {
            "system": "x", "version": "1.0", "servers": 2, "workers": 1, "size_mb": 0.002, "iters": 3, "ms_p50": 4.0,
            "ms_p95": 9.0, "ms_min": 2.0, "values_ok": False, "note": "how"})


class Processes(unittest.TestCase):
    def tearDown(self) -> None:
        processes.end_descendants()

    def run_processes(self, job: adder.Job, worker: adder.WorkerMain) -> list[adder.WorkerRun]:
        with tempfile.TemporaryDirectory() as folder:
            return adder.run_processes(job, pathlib.Path(folder), serve, worker, None)

    def test_workers_are_processes_that_meet(self) -> None:
        runs = self.run_processes(adder.Job(**{**vars(JOB), "workers": 2, "servers": 1}), learn)
        self.assertEqual([len(one.iteration_ms) for one in runs], [3, 3])

    def test_one_that_dies_is_named_with_its_last_words(self) -> None:
        with self.assertRaisesRegex(ChildProcessError, r"(?s)^worker 0: ended with 1.*no such transport"):
            self.run_processes(JOB, fail)

    def test_nothing_is_left_though_a_child_forgets_its_own(self) -> None:
        with processes.ends_descendants():
            found = run.run_once(["sh", "-c", "(setsid sleep 1000 &) ; echo '{\"ms_p50\": 7}'"], 30)
            self.assertEqual(found, {"ms_p50": 7})
            self.assertEqual(processes.descendants(os.getpid()), {})

    def test_work_that_takes_too_long_ends_with_what_it_started(self) -> None:
        with self.assertRaisesRegex(TimeoutError, "0.1 s"), processes.ends_descendants(timeout_s=0.1):
            run.run_once(["sleep", "1000"], 30)
        self.assertEqual(processes.descendants(os.getpid()), {})


class OneRun(unittest.TestCase):
    def error(self, script: str, timeout_s: float = 30) -> str:
        return run.run_once(["sh", "-c", script], timeout_s)["error"]

    def test_failures_say_why(self) -> None:
        self.assertEqual(self.error("echo first >&2; echo then >&2; echo last >&2; exit 3"),
                         "exit code 3: first ... last")
        self.assertEqual(self.error("echo only >&2; exit 2"), "exit code 2: only")
        self.assertEqual(self.error("echo no json"), "exit code 0: it said nothing")
        self.assertEqual(self.error("sleep 1000", 0.1), "not done after 0.1 s")

    def test_a_fast_run_with_wrong_values_is_a_failure(self) -> None:
        self.assertIn("values are wrong", self.error("""echo '{"ms_p50": 1, "values_ok": false}'; exit 1"""))


def results(**figures: list[float | None]) -> report.Results:
    """Of one shape. Keys that begin with "our" are ours; None is a round that failed."""
    return {
        "conditions": {"date": "2026-01-02", "cpu": "A <fast> CPU", "cores": 2, "memory_gb": 8, "kernel": "6.1",
                       "load": "0.1", "ours": "pscloud 1.2", "rounds": 3, "size_mb": 100, "iters": 20,
                       "command": "run.py"},
        "systems": [{"key": key, "label": key, "ours": key.startswith("our")} for key in figures],
        "shapes": [[1, 2]],
        "runs": [{"key": key, "round": i, "servers": 1, "workers": 2, **(
            {"error": "exit code 1: <no>"} if ms is None else
            {"ms_p50": ms, "version": "9.8", "limit_add_ms": 4.0, "limit_add2_ms": 2.0})}
            for key, values in figures.items() for i, ms in enumerate(values, 1)]}


class Report(unittest.TestCase):
    def test_ratios_are_taken_within_a_round(self) -> None:
        # The third round was slow for both: the ratio does not see it.
        self.assertEqual(report.ratio(results(ours=[10, 20, 100], peer=[20, 50, 200]), "peer", "ours", (1, 2)),
                         report.Spread(2, 2, 2.5, 3))
        self.assertEqual(report.ratio(results(ours=[None, 20, 10], peer=[20, None, 30]), "peer", "ours", (1, 2)),
                         report.Spread(3, 3, 3, 1))

    def test_a_row_that_we_lose_says_so(self) -> None:
        text = report.markdown(results(our_tcp=[10, 20, 30], our_shm=[1, 2, 3], our_tls=[None] * 3, peer=[5, 6, 7]))
        self.assertIn("| 1 server, 2 workers | peer | 0.30× (0.23 to 0.50) | 3.00× (2.33 to 5.00) | - | "
                      "**pscloud loses: our_tcp**; not measured: our_tls |", text)
        self.assertIn("| our_tls | failed |", text)
        self.assertIn("- our_tls (1 server, 2 workers; runs: 3): exit code 1: <no>", text)

    def test_rounds_that_do_not_agree_are_no_victory(self) -> None:
        self.assertEqual(report.verdict({"tcp": report.Spread(1.1, 0.9, 1.3, 5)}), "unclear: tcp")
        self.assertEqual(report.verdict({"tcp": report.Spread(1.1, 1.01, 1.3, 5)}), "pscloud wins")
        self.assertEqual(report.verdict({"tcp": None}), "not compared")

    def test_rounds_that_failed_are_counted(self) -> None:
        self.assertIn("| peer | 6.50 (6.00 to 7.00, 2 of 3 rounds) |", report.markdown(results(peer=[None, 6, 7])))

    def test_publishing_replaces_only_what_is_between_the_marks(self) -> None:
        self.assertEqual(report.put_between("a\n<b>\nold\n<e>\nz\n", "<b>", "<e>", "new\n"), "a\n<b>\nnew\n<e>\nz\n")
        with self.assertRaisesRegex(ValueError, "<b>"):
            report.put_between("a\n<e>\n<b>\n", "<b>", "<e>", "new\n")

    def test_the_page_has_the_marks(self) -> None:
        page = (run.ROOT / "docs/benchmarks.md").read_text()
        self.assertIn("new\n", report.put_between(page, run.BEGIN, run.END, "new\n"))


class Chart(unittest.TestCase):
    def bars(self, drawn: str) -> list[float]:
        return [float(e.get("width", 0)) for e in xml.fromstring(drawn).iter() if e.get("class") in ("ours", "peer")]

    def test_longer_times_have_longer_bars(self) -> None:
        widths = self.bars(chart.draw(results(ours=[10, 11, 12], near=[20, 21, 22], far=[900, 990, 1000])))
        self.assertEqual(widths, sorted(widths))
        self.assertTrue(0 < widths[0] and widths[-1] <= chart.PLOT, widths)

    def test_names_are_escaped_and_failures_shown(self) -> None:
        drawn = results(ours=[None], peer=[3])
        drawn["systems"][0]["label"] = "a & <b>"
        texts = [e.text for e in xml.fromstring(chart.draw(drawn)).iter() if e.tag.endswith("text")]
        self.assertIn("a & <b>", texts)
        self.assertIn("failed", texts)

    def test_there_is_a_picture_though_all_failed(self) -> None:
        self.assertEqual(self.bars(chart.draw(results(ours=[None], peer=[None]))), [])

    def test_the_axis_goes_in_steps_of_1_2_5(self) -> None:
        self.assertEqual(chart.ticks(3, 40), [2, 5, 10, 20, 50])


class Runner(unittest.TestCase):
    def test_rounds_alternate_and_all_is_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/images").mkdir(parents=True)
            (root / "docs/benchmarks.md").write_text(f"# B\n{run.BEGIN}\n{run.END}\nrest\n")
            log, fake = root / "log", root / "fake"
            fake.write_text(f'#!/bin/sh\necho "$*" >>{log}\n[ "$1" != version ] || {{ echo pscloud 1.2; exit; }}\n'
                            'echo \'{"ms_p50": 5, "version": "7", "values_ok": true}\'\n')
            fake.chmod(0o755)
            systems = [run.ours("tcp", "pscloud, TCP", "--transport", "tcp"), run.peer("ray", "Ray", "adder_ray.py")]
            fakes = {"SYSTEMS": systems, "SHAPES": [(1, 1), (1, 2)], "ROOT": root, "prepare": lambda _: fake}
            with mock.patch.multiple(run, **fakes), mock.patch("sys.stdout"), mock.patch("sys.stderr"):
                code = run.main(["--binary", str(fake), "--out", str(root / "out"), "--rounds", "2", "--publish"])
            self.assertEqual(code, 0)
            calls = [line.split() for line in log.read_text().splitlines()]
            self.assertEqual([call[0] for call in calls], ["version"] + ["bench", "adder_ray.py"] * 4)
            self.assertEqual(["async" in call for call in calls[1:5]], [False, False, True, False])
            self.assertEqual(len(json.loads((root / "out/results.json").read_text())["runs"]), 8)
            page = (root / "docs/benchmarks.md").read_text()
            self.assertIn("| Ray | 5.00 (5.00 to 5.00) |", page)
            self.assertTrue(page.endswith(f"{run.END}\nrest\n"))
            xml.parse(root / "docs/images/adder.svg")


if __name__ == "__main__":
    unittest.main()
