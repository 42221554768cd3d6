#!/usr/bin/env python3
"""The console's page in a real browser, on an API that is made up (fake_api.py).

    tests/console/browser_test.py [TestClass[.test]]

Exit code 77, which counts as skipped, where no browser is installed.
"""

import re
import sys
import time
import unittest
import urllib.parse

import page_checks
from fake_api import FakeApi
from fake_world import HOSTILE, HOSTILE_LINES
from webdriver import Browser, missing, until

SKIPPED = 77  # CMakeLists.txt knows it
HISTORY = 10000
LIVE = 7  # runs beside the history
FLOOD_LINES_PER_S = 1000

api = browser = None


def setUpModule():
    global api, browser
    api = FakeApi(history=HISTORY, flood_lines_per_s=FLOOD_LINES_PER_S)
    browser = Browser()
    browser.open(api.url)  # the tab keeps the token


def tearDownModule():
    browser.close()
    api.close()


class PageTest(unittest.TestCase):
    longMessage = True
    complains = False  # whether the page may have something on the browser's console

    def setUp(self):
        browser.size(1280, 900)
        browser.dark(False)
        browser.complaints()

    def tearDown(self):
        if not self.complains:
            # Logs that are empty have no last bytes, and the browser writes that down.
            self.assertEqual([line for line in browser.complaints() if "416" not in line], [])
        elsewhere = browser.run("return performance.getEntriesByType('resource').map(e => e.name)"
                                ".filter(name => !name.startsWith(location.origin + '/'))")
        self.assertEqual(elsewhere, [], "a request left the machine")

    def open_list(self):
        browser.open("about:blank")
        browser.open(api.url)
        browser.until_text("ctr-ftrl", "table")

    def open_run(self, name):
        browser.open("about:blank")
        browser.open(f"{api.address}#/run/{urllib.parse.quote(name, safe='')}")
        browser.find(".nodes tbody tr")
        if api.world.runs[name].state == "running":
            until(self.log_rows, "lines")

    def names(self):
        return browser.run("return [...document.querySelectorAll('.runs tbody th')].map(e => e.textContent)")

    def log_rows(self):
        return browser.run("return [...document.querySelectorAll('.line:not([hidden])')].map(e => e.textContent)")

    def follow_button(self):
        return browser.text(".logs button[aria-pressed]")


class Runs(PageTest):
    def test_the_newest_are_first_and_all_are_counted(self):
        self.open_list()
        browser.until_text(f"{HISTORY + LIVE:,} runs,", ".summary")
        self.assertEqual(self.names()[0], "ctr-ftrl")
        self.assertEqual(len(self.names()), 100, "as many rows as a person looks at")
        browser.click(".more")
        self.assertEqual(len(self.names()), 200)

    def test_ten_thousand_are_searched_while_one_types(self):
        self.open_list()
        browser.until_text(f"{HISTORY + LIVE:,} runs,", ".summary")
        browser.write("#search", "night-00042")
        self.assertEqual(self.names(), ["night-00042"])
        took_ms = browser.run("""const field = document.getElementById('search'); field.value = 'slurm failed';
            const begin = performance.now();
            field.dispatchEvent(new Event('input'));
            return performance.now() - begin;""")
        self.assertIn("rcv1-darlin", self.names())
        self.assertLess(took_ms, 200)
        browser.click("input[value=failed]")
        self.assertEqual(set(browser.text(".runs tbody .state").split()), {"failed"})
        browser.write("#search", "nothing is called so")
        browser.until_text("No run matches", ".empty")

    def test_a_state_that_changes_is_seen_without_a_reload(self):
        self.open_list()
        run = api.world.runs["wide-and-deep"]
        browser.until_text("missing: worker-4, worker-7", ".runs")
        with api.world.lock:
            run.state = "starting"
        browser.until_text("starting", ".runs tbody")
        with api.world.lock:
            run.state = "waiting"


class Token(PageTest):
    complains = True  # 401 stands on the browser's console

    def test_without_the_token_it_is_asked_for(self):
        browser.open("about:blank")
        browser.open(f"{api.address}#token=wrong")
        browser.until_text("needs its token")
        self.assertNotIn("ctr-ftrl", browser.text())
        browser.write("#token", api.world.token)
        browser.press("Enter")
        browser.until_text("ctr-ftrl", "table")

    def test_the_token_does_not_stay_in_the_address(self):
        self.open_list()
        self.assertNotIn(api.world.token, browser.run("return location.href"))
        self.assertEqual(browser.run("return history.state"), None)


class OneRun(PageTest):
    def test_its_nodes_are_there_with_their_figures(self):
        self.open_run("ctr-ftrl")
        browser.until_text("MiB/s", ".nodes")
        row = browser.run("return [...document.querySelectorAll('.nodes tbody tr')]"
                          ".find(row => row.textContent.includes('worker-2')).innerText")
        for wanted in ("worker-2", "running", "host3", "MiB", "%", "ms", "server-1"):
            self.assertIn(wanted, row)
        self.assertIn("1 scheduler, 2 servers, 4 workers", browser.text(".facts"))

    def test_its_charts_move(self):
        self.open_run("ctr-ftrl")
        titles = ["Loss", "AUC", "Examples", "Push latency", "Pull latency", "Push, pull", "Staleness"]
        until(lambda: browser.text("figcaption .name").split("\n")[:7] == titles, lambda: browser.text("figcaption"))
        label = "return document.querySelector('canvas').getAttribute('aria-label')"
        picture = "return document.querySelector('canvas').toDataURL()"
        before, drawn = browser.run(label), browser.run(picture)
        self.assertRegex(before, r"^Loss: 0\.4\d+, \d\d:\d\d:\d\d to \d\d:\d\d:\d\d\. worker-0 0\.\d+ to 0\.\d+")
        until(lambda: browser.run(label) != before and browser.run(picture) != drawn, "a newer figure")

    def test_load_and_hot_keys_are_exact(self):
        self.open_run("ctr-ftrl")
        browser.until_text(str((1 << 63)), ".load")  # no number of JavaScript
        browser.until_text("server-1", ".load")
        self.assertIn("90,000", browser.text(".load"))

    def test_cost_so_far(self):
        self.open_run("criteo-fm")
        browser.until_text("$3.0", ".facts")
        self.assertIn("$2.04 an hour", browser.text(".facts"))

    def test_whom_a_run_waits_for(self):
        self.open_run("wide-and-deep")
        browser.until_text("9 of 11 have arrived; missing: worker-4, worker-7", ".note")

    def test_a_node_that_has_ended_waits_for_nobody(self):
        """What it said last stays in its status."""
        self.open_run("criteo-fm")
        row = "return [...document.querySelectorAll('.nodes tbody tr')].find(row => " \
              "row.textContent.includes('worker-2'))?.innerText ?? ''"
        until(lambda: "drained" in browser.run(row) and "MiB" in browser.run(row), lambda: browser.run(row))
        self.assertNotIn("server-1", browser.run(row))

    def test_the_root_cause_of_a_failure_comes_first(self):
        self.open_run("rcv1-darlin")
        browser.until_text("worker-1 failed first", ".problem")
        browser.until_text("std::bad_alloc", ".problem pre")
        self.assertIn("exit code 137", browser.text(".problem"))
        places = browser.run("return ['.problem', '.charts', '.nodes']"
                             ".map(css => document.querySelector(css).getBoundingClientRect().top)")
        self.assertEqual(places, sorted(places))
        self.assertIn("worker-1", browser.run("return document.querySelector('.nodes tbody tr').textContent"))

    def test_a_run_that_is_not_there_is_said(self):
        self.open_list()
        browser.run("location.hash = '#/run/nobody'")
        browser.until_text("there is no run 'nobody'")
        self.assertTrue(all("404" in line for line in browser.complaints()))

    def test_a_stop_is_confirmed(self):
        self.open_run("stop-me")
        browser.click("button.danger")
        browser.until_text("Stop stop-me?", "dialog")
        self.assertEqual(browser.run("return document.activeElement.textContent"), "Cancel")
        browser.press("Enter")
        until(lambda: not browser.run("return document.querySelector('dialog').open"), "the end of the question")
        self.assertEqual(api.world.posts, [])
        browser.click("button.danger")
        browser.click("#confirm-yes")
        until(lambda: api.world.posts == [("stop", "stop-me")], lambda: api.world.posts)
        browser.until_text("interrupted", ".title .pill")
        browser.click(".actions button:not([hidden])")
        browser.until_text("pscloud down stop-me", "dialog")
        browser.click("#confirm-yes")
        until(lambda: api.world.posts[1:] == [("cleanup", "stop-me")], lambda: api.world.posts)


class Logs(PageTest):
    def test_lines_come_as_they_are_written(self):
        self.open_run("ctr-ftrl")
        with api.world.lock:
            api.world.runs["ctr-ftrl"].say("worker-1", "a line of this very test")
        until(lambda: any("a line of this very test" in row for row in self.log_rows()), self.log_rows)

    def test_a_filter_leaves_what_matches_and_marks_it(self):
        self.open_run("ctr-ftrl")
        browser.write("#log-search", "WORKER 2")
        until(lambda: (rows := self.log_rows()) and all(row.startswith("worker-2") for row in rows), self.log_rows)
        self.assertEqual(browser.run("return document.querySelector('.line mark').textContent"), "worker 2")

    def test_all_of_a_log_is_searched_and_gone_to(self):
        self.open_run("rcv1-darlin")
        browser.write("#log-search", "line 41,")
        browser.press("Enter")
        browser.until_text("1 line has “line 41,”", ".matches")
        browser.click(".matches li button")
        browser.until_text("worker-1, around byte", ".log-status")
        browser.until_text("line 41,", ".line.selected")
        self.assertTrue(any("line 43," in row for row in self.log_rows()), self.log_rows())

    def test_one_node_alone(self):
        self.open_run("ctr-ftrl")
        browser.click(".nodes tbody tr:nth-child(4) button")
        until(lambda: (rows := self.log_rows()) and all(row.startswith("worker-0") for row in rows), self.log_rows)
        self.assertEqual(browser.run("return document.getElementById('log-of').value"), "worker-0")

    def test_hostile_lines_and_names_stay_text(self):
        self.open_run(HOSTILE)
        self.assertEqual(browser.text("h1"), HOSTILE)
        self.assertIn(HOSTILE, browser.run("return document.title"))
        browser.click(".nodes tbody tr:nth-child(4) button")  # worker-0
        browser.run("document.querySelector('.lines').focus()")
        until(lambda: any("<script>" in row for row in self.log_rows() or self.look_up()), self.log_rows)
        rows = " ".join(self.log_rows())
        for line in HOSTILE_LINES[:4]:
            self.assertIn(line, rows)
        self.assertIn("safe ⟨202E⟩esrever si siht⟨202C⟩ red bell⟨0007⟩ nul⟨0000⟩ end", rows)
        self.assertNotIn("⟨000D⟩", rows, "half an end of a line")
        self.assertIn("more characters)", rows)
        self.assertIsNone(browser.run("return window.pwned ?? null"))
        self.assertEqual(browser.run("return document.querySelectorAll('main img, main script, main style').length"), 0)
        browser.click("button.danger")
        browser.until_text(HOSTILE, "dialog")
        browser.press("Escape")

    def look_up(self):
        browser.run("document.querySelector('.lines').scrollTop = 0")
        return []

    def test_a_break_of_the_connection_loses_no_line_and_doubles_none(self):
        global api
        self.open_run("ctr-ftrl")
        browser.run("document.getElementById('log-of').value = 'worker-0';"
                    "document.getElementById('log-of').dispatchEvent(new Event('change'))")
        until(lambda: len(self.log_rows()) > 2, self.log_rows)
        port = int(api.address.rstrip("/").rpartition(":")[2])
        api.close()
        browser.until_text("connection lost", "#connection")
        run = api.world.runs["ctr-ftrl"]
        written = run.written
        until(lambda: run.written > written + 14, "lines that nobody heard")
        api = FakeApi(port, world=api.world)
        until(lambda: browser.text("#connection") == "live", lambda: browser.text("#connection"))
        numbers = lambda: [int(match.group(1)) for row in self.log_rows() if (match := re.search(r"line (\d+)", row))]
        until(lambda: numbers()[-1] > written + 14, numbers)
        gaps = {b - a for a, b in zip(numbers(), numbers()[1:])}
        self.assertEqual(gaps, {len(run.tasks)}, numbers())
        browser.complaints()  # of the break


class Flood(PageTest):
    def test_a_thousand_lines_a_second_are_seen_at_once_and_block_nothing(self):
        self.open_run("flood")
        run = api.world.runs["flood"]
        self.assertEqual(len(run.tasks), 20)
        begin_unix_ms = time.time() * 1000 - (time.monotonic() - run.flood_from) * 1000
        # One line is written each millisecond, so the number of the lowest line that is seen tells how old it is.
        measured = browser.run_async("""
            const [begin, perMs, done] = arguments;
            const gaps = [], ages = [], end = performance.now() + 6000;
            let last = performance.now();
            requestAnimationFrame(function frame(now) {
              gaps.push(now - last);
              last = now;
              const rows = [...document.querySelectorAll('.line')].filter((row) => !row.hidden);
              const line = /line (\\d+),/.exec(rows.at(-1)?.textContent ?? '');
              if (line && gaps.length % 6 === 0) ages.push(Date.now() - begin - line[1] / perMs);
              if (now < end) requestAnimationFrame(frame);
              else done({gaps: gaps.slice(1), ages, rows: rows.length, heap: performance.memory.usedJSHeapSize});
            });""", begin_unix_ms, FLOOD_LINES_PER_S / 1000)
        gaps, ages = sorted(measured["gaps"]), sorted(measured["ages"])
        part = lambda values, percent: values[len(values) * percent // 100]
        story = (f"{len(gaps)} frames, gaps median {part(gaps, 50):.1f} ms, p99 {part(gaps, 99):.1f} ms, "
                 f"worst {gaps[-1]:.1f} ms; lines are {part(ages, 50):.0f} ms old when they are seen, "
                 f"p95 {part(ages, 95):.0f} ms, worst {ages[-1]:.0f} ms; {measured['rows']} rows, "
                 f"{measured['heap'] / 1e6:.0f} MB")
        print(f"flood: {story}")
        self.assertLess(part(ages, 95), 1000, story)
        self.assertLess(part(gaps, 50), 34, story)
        self.assertLess(part(gaps, 99), 300, story)
        self.assertLess(measured["rows"], 120, story)

    def test_who_scrolls_up_stays_there_while_lines_come(self):
        self.open_run("flood")
        until(lambda: len(self.log_rows()) > 25, self.log_rows)
        browser.run("const lines = document.querySelector('.lines'); lines.scrollTop -= 400;")
        until(lambda: self.follow_button().startswith("Follow ("), self.follow_button)
        seen = self.log_rows()[:10]
        before = api.world.runs["flood"].written
        until(lambda: api.world.runs["flood"].written > before + 1000, "more lines")
        self.assertEqual(self.log_rows()[:10], seen)
        browser.click(".logs button[aria-pressed]")
        until(lambda: self.log_rows()[:10] != seen, "the end of the log")

    def test_memory_is_bounded(self):
        self.open_list()
        kept = browser.run_async("""
            const done = arguments[0];
            import('/assets/log_buffer.js').then(({LogBuffer}) => {
              const buffer = new LogBuffer(5000, 1e6);
              buffer.filter('7');
              for (let i = 0; i < 40000; ++i) buffer.add('worker-0', [`line ${i}`]);
              const matching = [buffer.total, buffer.length, buffer.at(0).text, buffer.at(buffer.length - 1).text];
              buffer.filter('');
              buffer.add('worker-0', Array.from({length: 1000}, () => 'x'.repeat(1e5)));
              done([...matching, buffer.total, buffer.at(0).text.length]);
            });""")
        sevens = [n for n in range(35000, 40000) if "7" in str(n)]
        self.assertEqual(kept[:4], [5000, len(sevens), f"line {sevens[0]}", f"line {sevens[-1]}"])
        self.assertLess(kept[4] * kept[5], 1.1e6)
        self.assertLess(kept[5], 8100)


class ForEverybody(PageTest):
    def check_page(self):
        self.assertEqual(page_checks.unnamed(browser), [], "roles without a name")
        self.assertEqual(page_checks.wrong_structure(browser), [])
        for dark in (False, True):
            browser.dark(dark)
            self.assertEqual(page_checks.low_contrast(browser), [], f"dark: {dark}")
            self.assertEqual(page_checks.low_contrast_graphics(browser), [], f"dark: {dark}")
        browser.dark(False)

    def test_the_list_has_names_and_contrast(self):
        self.open_list()
        self.check_page()

    def test_a_run_has_names_and_contrast(self):
        for name in ("ctr-ftrl", "rcv1-darlin", "wide-and-deep"):
            with self.subTest(name):
                self.open_run(name)
                self.check_page()

    def test_dark_is_dark(self):
        self.open_list()
        shade = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        light = browser.run(shade)
        browser.dark(True)
        self.assertGreater(min(light), 200)
        self.assertLess(max(browser.run(shade)), 60)

    def test_charts_of_a_run_that_is_over_follow_the_colours(self):
        self.open_run("rcv1-darlin")
        picture = "return document.querySelector('canvas')?.toDataURL() ?? ''"
        until(lambda: len(browser.run(picture)) > 1000, "a chart")
        time.sleep(0.5)  # it is drawn no more
        light = browser.run(picture)
        browser.dark(True)
        until(lambda: browser.run(picture) != light, "other colours")

    def test_a_phone_needs_no_scrolling_sideways(self):
        browser.size(360, 740, mobile=True, scale=2)
        for name in (None, "ctr-ftrl", "rcv1-darlin", "wide-and-deep", HOSTILE):
            with self.subTest(name):
                self.open_run(name) if name else self.open_list()
                self.assertEqual(page_checks.too_wide(browser), [])

    def test_all_of_it_works_by_keyboard_alone(self):
        self.open_list()
        focused = "return document.activeElement.textContent || document.activeElement.id"
        browser.press("/")
        self.assertEqual(browser.run(focused), "search")
        browser.press(*"ctr")
        browser.press("Tab")
        self.assertEqual(browser.run(focused), "ctr-ftrl")
        browser.press("Enter")
        browser.until_text("Nodes", "h2")
        until(lambda: browser.run("return document.activeElement.matches('h1')"), "the focus on the title")
        until(lambda: browser.run("return document.querySelectorAll('canvas').length") > 5, "charts")
        browser.press("Tab")
        self.assertEqual(browser.run(focused), "Stop")
        browser.press("Enter")
        self.assertEqual(browser.run(focused), "Cancel")
        browser.press("Escape")
        self.assertEqual(browser.run(focused), "Stop", "the focus comes back")
        browser.press("Tab", "Tab", "Left")
        spoken = lambda: browser.run("return document.getElementById('announce').textContent")
        until(lambda: re.match(r"Loss, \d\d:\d\d:\d\d: worker-0 0\.\d+", spoken()), spoken)
        for _ in range(60):
            browser.press("Tab")
            if browser.run("return document.activeElement.className") == "lines":
                break
        browser.press("Up", "Up")
        self.assertRegex(browser.text(".detail"), r"^(\w+-\d|launcher): ")
        self.assertEqual(self.follow_button().split(" (")[0], "Follow")
        browser.press("End")
        until(lambda: self.follow_button() == "Following", "following again")


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=1)
