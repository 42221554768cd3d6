#!/usr/bin/env python3
"""Runs transcripts of commands and compares what they print with what stands there.

    run_transcripts.py [--bin DIR] FILE...

A transcript is read from top to bottom in one empty directory:

    $ command              given to sh; DIR is first in its PATH
    text                   a line of stdout
    ! text                 a line of stderr
    ? 2                    the exit code; 0 if it is not given

`...` within a line stands for any text; alone on a line, for any lines. Lines that begin with # are comments. Empty
lines before the next command do not count.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

TIMEOUT_S = 60


@dataclass
class Step:
    place: str
    command: str
    stdout: list = field(default_factory=list)
    stderr: list = field(default_factory=list)
    code: int = 0


def parse(path):
    steps = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.startswith("#"):
                continue
            if line.startswith("$ "):
                steps.append(Step(f"{path}:{number}", line[2:]))
            elif not steps:
                if line:
                    raise SystemExit(f"{path}:{number}: text before the first command")
            elif line == "!" or line.startswith("! "):
                steps[-1].stderr.append(line[2:])
            elif line.startswith("? "):
                steps[-1].code = int(line[2:])
            else:
                steps[-1].stdout.append(line)
    for step in steps:
        while step.stdout and not step.stdout[-1]:
            step.stdout.pop()
    if not steps:
        raise SystemExit(f"{path}: no command")
    return steps


def line_matches(pattern, line):
    parts = pattern.split("...")
    return re.fullmatch(".*".join(re.escape(part) for part in parts), line) is not None


def matches(expected, lines):
    """Whether the lines are those expected, where "..." stands for any number of lines."""
    ends = {0}  # how many lines the patterns so far can have taken
    for pattern in expected:
        if pattern == "...":
            ends = set(range(min(ends), len(lines) + 1)) if ends else ends
        else:
            ends = {end + 1 for end in ends if end < len(lines) and line_matches(pattern, lines[end])}
    return len(lines) in ends


def environment(bin_dir, directory):
    """Ours, without what would change the commands under test; what they keep is kept in `directory`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PSCLOUD_", "DMLC_")) and k != "PORT"}
    kept["PATH"] = os.pathsep.join([os.path.abspath(bin_dir), kept.get("PATH", os.defpath)])
    kept["XDG_STATE_HOME"] = os.path.join(directory, "state")
    kept["LC_ALL"] = "C.UTF-8"
    kept["TZ"] = "UTC"
    return kept


def shown(stdout, stderr, code):
    return stdout + ["! " + line if line else "!" for line in stderr] + [f"? {code}"]


def run(step, directory, env):
    """An empty string if the step did what it should, else a text that shows the difference."""
    try:
        done = subprocess.run(
            ["sh", "-c", step.command],
            cwd=directory,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{step.place}: $ {step.command}\n  did not end within {TIMEOUT_S} s\n"
    stdout = done.stdout.decode("utf-8", "backslashreplace").splitlines()
    stderr = done.stderr.decode("utf-8", "backslashreplace").splitlines()
    while stdout and not stdout[-1]:
        stdout.pop()
    if matches(step.stdout, stdout) and matches(step.stderr, stderr) and step.code == done.returncode:
        return ""
    expected = shown(step.stdout, step.stderr, step.code)
    got = shown(stdout, stderr, done.returncode)
    diff = difflib.unified_diff(expected, got, "expected", "got", lineterm="", n=100)
    return f"{step.place}: $ {step.command}\n" + "\n".join(diff) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=".", help="directory of the program under test")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    failures = 0
    for path in args.files:
        with tempfile.TemporaryDirectory(prefix="transcript-") as directory:
            for step in parse(path):
                failure = run(step, directory, environment(args.bin, directory))
                if failure:
                    failures += 1
                    print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
