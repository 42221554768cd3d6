#!/usr/bin/env python3
"""Tests of the runner itself: a runner that passes everything would be worse than none."""

import os
import subprocess
import sys
import tempfile
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_transcripts.py")


def run(text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return subprocess.run([sys.executable, RUNNER, file.name], capture_output=True, text=True, check=False)


class RunTranscripts(unittest.TestCase):
    def passes(self, text):
        done = run(text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def fails(self, text):
        self.assertNotEqual(run(text).returncode, 0, text)

    def test_what_is_printed_must_stand_there(self):
        self.passes("$ echo a; echo; echo b\na\n\nb\n\n$ echo c\nc\n")
        self.fails("$ echo a\nb\n")
        self.fails("$ echo a\n")
        self.fails("$ true\na\n")
        self.fails("$ echo a; echo b\nb\na\n")

    def test_stderr_and_exit_code_count(self):
        self.passes("$ echo a >&2; exit 3\n! a\n? 3\n")
        self.fails("$ echo a >&2\na\n")
        self.fails("$ echo a >&2\n")
        self.fails("$ exit 3\n")
        self.fails("$ true\n? 3\n")

    def test_dots_stand_for_text_and_for_lines(self):
        self.passes("$ echo a 17 b\na ... b\n")
        self.fails("$ echo a 17 c\na ... b\n")
        self.passes("$ seq 5\n1\n...\n4\n...\n")
        self.fails("$ seq 5\n1\n...\n7\n")
        self.passes("$ echo a\n...\na\n...\n")
        self.fails("$ echo 'a.c'; echo abc\na.c\na.c\n")

    def test_a_failed_step_is_shown(self):
        done = run("$ echo a\n\n$ echo b\nc\n")
        self.assertIn("$ echo b", done.stdout)
        self.assertIn("-c", done.stdout)
        self.assertIn("+b", done.stdout)

    def test_steps_share_one_directory(self):
        self.passes("# a comment\n$ echo a > file\n\n$ cat file\na\n")

    def test_a_file_without_a_command_is_an_error(self):
        self.fails("")
        self.fails("text\n$ echo text\ntext\n")


if __name__ == "__main__":
    unittest.main()
