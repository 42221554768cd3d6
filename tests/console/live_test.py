#!/usr/bin/env python3
"""The page, `pscloud console` and runs, all of them real: what a run does is seen in the browser, and it is stopped
there.

Exit code 77, which counts as skipped, where no browser is installed.
"""

import json
import pathlib
import sys
import unittest

from webdriver import Browser, missing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from launch_harness import PSCLOUD, LaunchTest, until  # noqa: E402  it stands in a folder that must be named first

SKIPPED = 77  # CMakeLists.txt knows it

# Counts until it is told to end.
PROGRAM = """
import os, sys, time
for step in range(100000):
    print(f"{os.environ['PSCLOUD_TASK']} is at step {step}", "<b>bold</b>", flush=True)
    print(f"**metrics_data: loss={0.7 / (1 + step / 50):.4f}", flush=True)
    time.sleep(0.05)
"""
FAILS = "import os, sys; print('out of luck'); sys.exit(5 if os.environ['PSCLOUD_TASK'] == 'worker-1' else 0)"
# 50 lines a second, each with the time at which it was written.
LOUD = """
import time
begin = time.monotonic()
for tick in range(100000):
    time.sleep(max(0, begin + tick / 10 - time.monotonic()))
    lines = [f"line {5 * tick + i} at {time.time() * 1000:.0f} {'x' * 60}" for i in range(5)]
    print(*lines, sep="\\n", flush=True)
"""
LOUD_TASKS = 20
TRAIN = """
training_data { format: TEXT text: LIBSVM file: "train-.*" }
model_output { format: TEXT file: "model" }
loss { type: LOGIT }
learning_rate { type: DECAY alpha: 0.1 beta: 1 }
async_sgd { algo: FTRL minibatch: 50 num_data_pass: 100000 }
"""
CHARTS_OF_TRAINING = {"Loss", "AUC", "Examples", "Push latency", "Pull latency", "Push, pull", "Staleness",
                      "Requests by server", "Keys", "CPU", "Memory"}


class Console(LaunchTest):
    def setUp(self):
        super().setUp()
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def open_console(self):
        console = self.start(PSCLOUD, "console")
        url = until(lambda: console.out.read_text().strip(), lambda: self.story(console))
        self.browser.open(url)
        self.console = console

    def open_run(self, name):
        self.browser.until_text(name, ".runs")
        self.browser.run("location.hash = '#/run/' + arguments[0]", name)
        self.browser.until_text("Nodes", "h2")

    def test_a_run_is_watched_and_stopped(self):
        browser = self.browser
        self.open_console()
        browser.until_text("No runs yet")
        run = self.start(PSCLOUD, "run", "--name", "live", "--servers", 1, "--workers", 2, "--", sys.executable, "-c",
                         PROGRAM)
        self.until_says("live", "worker-1", "step 3", run)
        self.open_run("live")
        browser.until_text("running", ".title .pill")
        browser.until_text("worker-1 is at step", ".lines")
        self.assertIn("<b>bold</b>", browser.text(".lines"))
        self.assertEqual(browser.run("return document.querySelectorAll('main b').length"), 0)

        label = "return [...document.querySelectorAll('canvas')].map(c => c.getAttribute('aria-label'))" \
                ".find(text => /^Loss: 0\\.\\d/.test(text)) ?? ''"
        until(lambda: browser.run(label), "a chart of what the program tells")
        before = browser.run(label)
        until(lambda: browser.run(label) != before, "a chart that moves")

        browser.write("#log-search", "worker-0 is at step 2 ")
        browser.press("Enter")
        browser.until_text("1 line has", ".matches")
        browser.click(".matches li button")
        browser.until_text("worker-0 is at step 2 ", ".line.selected")

        browser.click("button.danger")
        browser.until_text("Stop live?", "dialog")
        browser.click("#confirm-yes")
        browser.until_text("interrupted", ".title .pill")
        self.ends(run, 130)
        self.assertEqual([message for message in browser.complaints() if "404" not in message], [])

    def test_a_training_shows_all_its_charts_and_hot_keys(self):
        self.pscloud("data", "generate", "train", "--examples", 20000, "--keys", 10000)
        (self.work / "train.conf").write_text(TRAIN)
        self.start(PSCLOUD, "train", "train.conf", "--on", "local", "--name", "clicks", "--servers", 1, "--workers", 2)
        self.open_console()
        self.open_run("clicks")
        labels = "return [...document.querySelectorAll('canvas')].map(c => c.getAttribute('aria-label'))"

        def with_figures():
            return {title for title, _, figures in (label.partition(": ") for label in self.browser.run(labels))
                    if any(c.isdigit() for c in figures)}
        until(lambda: CHARTS_OF_TRAINING <= with_figures(),
              lambda: f"{CHARTS_OF_TRAINING - with_figures()} of {self.browser.run(labels)}")
        rows = "return [...document.querySelectorAll('table[aria-label=\"Hot keys\"] tbody tr')].map(r => r.innerText)"
        until(lambda: len(self.browser.run(rows)) > 3, lambda: self.browser.text(".load"))
        for row in self.browser.run(rows):
            self.assertRegex(row, r"^\d+\s+server-0\s+\d")
        self.browser.until_text("server-0", "table[aria-label='Load of servers']")
        self.pscloud("stop", "clicks")

    def test_a_thousand_lines_a_second_are_seen_within_a_second(self):
        self.start(PSCLOUD, "run", "--quiet", "--name", "loud", "--workers", LOUD_TASKS, "--", sys.executable, "-S",
                   "-E", "-c", LOUD)
        self.open_console()
        self.open_run("loud")
        tasks = range(LOUD_TASKS)
        until(lambda: all(self.log("loud", f"worker-{n}") for n in tasks), "lines of all tasks")
        self.browser.until_text(" at ", ".lines")
        before = sum(self.log("loud", f"worker-{n}").count("\n") for n in tasks)
        ages = sorted(self.browser.run_async("""
            const [done] = arguments, ages = [], end = performance.now() + 3000;
            const timer = setInterval(() => {
              const rows = [...document.querySelectorAll('.line')].filter((row) => !row.hidden);
              const line = / at (\\d{13}) /.exec(rows.at(-1)?.textContent ?? '');
              if (line) ages.push(Date.now() - line[1]);
              if (performance.now() < end) return;
              clearInterval(timer);
              done(ages);
            }, 100);"""))
        written = sum(self.log("loud", f"worker-{n}").count("\n") for n in tasks) - before
        story = f"{written} lines in 3 s; seen when {ages[len(ages) // 2]:.0f} ms old, {ages[-1]:.0f} ms at most"
        print(f"real flood: {story}")
        self.assertGreater(written, 2000, story)
        self.assertGreater(len(ages), 10, story)
        self.assertLess(ages[len(ages) * 95 // 100], 1000, story)
        self.pscloud("stop", "loud", "--at-once")

    def test_the_cause_of_a_failure_is_told_with_its_last_lines(self):
        run = self.start(PSCLOUD, "run", "--name", "broken", "--workers", 2, "--", sys.executable, "-c", FAILS)
        self.ends(run, 1)
        self.assertEqual(self.state("broken")["root_cause"], "worker-1", json.dumps(self.state("broken")))
        self.open_console()
        self.open_run("broken")
        self.browser.until_text("worker-1 failed first", ".problem")
        self.browser.until_text("out of luck", ".problem pre")
        self.assertIn("exit code 5", self.browser.text(".problem"))
        self.browser.click(".problem button")
        self.browser.until_text("out of luck", ".lines")


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=1)
