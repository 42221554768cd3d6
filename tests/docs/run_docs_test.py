#!/usr/bin/env python3
"""run_docs.py must see each way in which a page can be wrong."""

import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_docs  # noqa: E402


def check(page):
    """Failures of a page in a small repository, and how many commands ran."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "bin").mkdir()
        program = root / "bin/pscloud"
        program.write_text('#!/bin/sh\necho "pscloud $1"\necho "to stderr" >&2\nexit ${2:-0}\n')
        program.chmod(0o755)
        (root / "Makefile").write_text("demo: build\n\tfalse\n")
        (root / "example.cc").write_text("int main() {\n  return 0;\n}\n")
        (root / "README.md").write_text(page)
        docs = run_docs.Docs(root, root / "bin")
        docs.check(root / "README.md")
        return docs


def console(text, mark=""):
    return f"# Title\n```console{mark}\n{text}\n```\n"


class RunDocsTest(unittest.TestCase):
    def assert_fails(self, page, words):
        failures = check(page).failures
        self.assertEqual(len(failures), 1, failures)
        self.assertIn(words, failures[0])

    def test_true_pages_pass(self):
        for text in ("$ pscloud sim\npscloud sim\nto stderr", "$ pscloud sim\npscl...sim",
                     "$ pscloud sim\n...\nto stderr",
                     "$ pscloud x 2\n? 2", "$ x=5; cd /\n$ echo $x $PWD\n5 /", "$ make demo PREFIX=/x",
                     "$ echo one \\\n  two\none two", "$ test -f $PSCLOUD_SRC/Makefile", "$ sleep 1000 & echo on\non"):
            with self.subTest(text):
                self.assertEqual(check(console(text)).failures, [])

    def test_blocks_of_a_page_share_a_shell(self):
        self.assertEqual(check(console("$ echo hi > f") + console("$ cat f\nhi")).failures, [])

    def test_what_the_tester_has_set_for_nodes_does_not_reach_the_page(self):
        with unittest.mock.patch.dict(os.environ, PSCLOUD_SEED="7", DMLC_ROLE="worker", PORT="80"):
            self.assertEqual(check(console("$ echo [$PSCLOUD_SEED$DMLC_ROLE$PORT]\n[]")).failures, [])

    def test_output_that_does_not_come(self):
        self.assert_fails(console("$ pscloud sim\npscloud train"), "README.md:3: `pscloud sim` did not say")

    def test_output_in_another_order(self):
        self.assert_fails(console("$ printf 'a\\nb\\n'\nb\na"), "did not say 'a'")

    def test_exit_code(self):
        self.assert_fails(console("$ pscloud sim 3"), "ended with 3, not 0")
        self.assert_fails(console("$ pscloud sim\n? 2"), "ended with 0, not 2")

    def test_unknown_command(self):
        self.assert_fails(console("$ pscluod sim"), "ended with 127")

    def test_a_command_that_ends_the_shell(self):
        self.assert_fails(console("$ exit 0"), "did not end")

    def test_make_target_that_is_not_there(self):
        self.assert_fails(console("$ make tea"), "no target 'tea'")

    def test_output_before_any_command(self):
        self.assert_fails(console("hello"), "begins with '$ command'")

    def test_piece_of_a_file(self):
        self.assertEqual(check("```cpp file=example.cc\nint main() {\n...\n}\n```\n").failures, [])
        self.assert_fails("```cpp file=example.cc\nreturn 1;\n```\n", "has no line")
        self.assert_fails("```cpp file=gone.cc\nreturn 1;\n```\n", "gone.cc does not exist")

    def test_code_that_does_not_compile(self):
        self.assertEqual(check("```cpp\nint one() { return 1; }\n```\n").failures, [])
        self.assert_fails("```cpp\nint one() { return x; }\n```\n", "does not compile")

    def test_link(self):
        self.assertEqual(check("[a](Makefile) [b](https://example.com/x) [c](Makefile#d)\n").failures, [])
        self.assert_fails("[a](gone.md)\n", "leads nowhere")

    def test_no_run_is_not_run_but_counted(self):
        docs = check(console("$ pscluod", " no-run"))
        self.assertEqual((docs.failures, docs.ran, docs.no_run), ([], 0, ["README.md:2"]))


if __name__ == "__main__":
    unittest.main()
