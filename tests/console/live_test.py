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
