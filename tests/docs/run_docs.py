#!/usr/bin/env python3
"""Runs the commands that the documentation shows, so that what it says stays true.

    tests/docs/run_docs.py [--list] [FILE.md ...]      default: README.md, CONTRIBUTING.md, docs/*.md, ...

A block that begins with ```console is a transcript:
    $ command         run in order, all blocks of a page in one bash in one temporary folder, with the build first in
                      PATH and the repository in $PSCLOUD_SRC; a line that ends in \\ goes on in the next
    text              a line of the output (stdout and stderr), in order; `...` stands for anything: within a line for
                      any characters, alone on a line for any lines
    ? 2               the exit code, when it is not 0
A `$ make target` is not run (the tests run inside make) but its targets must exist in the Makefile.
A block marked ```console no-run is shown only; --list names them, and there may be at most NO_RUN_MAX.
A ```cpp block must compile against include/; one marked ```cpp file=PATH shows a piece of a file: its lines must stand
in it in this order; `...` as above.
Links to files of the repository must lead somewhere.
"""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md")
NO_RUN_MAX = 4
TIMEOUT_SECONDS = 120  # of one page


class Block:
    def __init__(self, line, info):
        self.line, self.info, self.lines = line, info, []  # lines: (number, text)

    @property
    def language(self):
        return self.info.split()[0] if self.info else ""


class Command:
    def __init__(self, line, text):
        self.line, self.text = line, text
        self.expected, self.code = [], 0
        self.output, self.got = None, None


def read_blocks(text):
    blocks, block = [], None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            if block is None:
                block = Block(number, line[3:].strip())
            else:
                blocks.append(block)
                block = None
        elif block is not None:
            block.lines.append((number, line))
    return blocks


def read_commands(block):
    commands, unfinished = [], False
    for number, line in block.lines:
        if unfinished:
            commands[-1].text += "\n" + line
        elif line.startswith("$ "):
            commands.append(Command(number, line[2:]))
        elif not commands:
            raise ValueError(f"{number}: a console block begins with '$ command', not '{line}'")
        elif re.fullmatch(r"\? \d+", line):
            commands[-1].code = int(line[2:])
        elif line.strip():
            commands[-1].expected.append(line)
        unfinished = (unfinished or line.startswith("$ ")) and line.endswith("\\")
    return commands


def matches_in_order(expected, lines):
    """The first expected line that is not found, or None. Every other line of `lines` may be there or not."""
    at = 0
    for want in expected:
        if want.strip() == "...":
            continue
        pattern = ".*".join(re.escape(part) for part in want.rstrip().split("..."))
        while at < len(lines) and not re.fullmatch(pattern, lines[at].rstrip()):
            at += 1
        if at == len(lines):
            return want
        at += 1
    return None


def make_targets(makefile):
    return set(re.findall(r"^([a-z][\w-]*):", makefile.read_text(), re.MULTILINE)) if makefile.exists() else set()


def reader_environment():
    """Ours, without what would change the commands of a page, as PSCLOUD_SEED=7 does."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PSCLOUD_", "DMLC_")) and k != "PORT"}


class Docs:
    def __init__(self, root, build):
        self.root, self.build = root, build
        self.failures, self.no_run, self.ran = [], [], 0
        self.targets = make_targets(root / "Makefile")

    def fail(self, page, line, what):
        self.failures.append(f"{page.relative_to(self.root)}:{line}: {what}")

    def check(self, page):
        text = page.read_text()
        commands = []
        for block in read_blocks(text):
            if block.language == "console" and "no-run" in block.info:
                self.no_run.append(f"{page.relative_to(self.root)}:{block.line}")
            elif block.language == "console":
                try:
                    commands += read_commands(block)
                except ValueError as error:
                    self.fail(page, block.line, str(error))
            elif "file=" in block.info:
                self.check_piece(page, block)
            elif block.language == "cpp":
                self.check_compiles(page, block)
        self.check_links(page, text)
        to_run = [c for c in commands if not self.is_make(page, c)]
        if to_run:
            self.run(page, to_run)

    def is_make(self, page, command):
        words = shlex.split(command.text, comments=True)
        if not words or words[0] != "make":
            return False
        for word in words[1:]:
            if "=" not in word and not word.startswith("-") and word not in self.targets:
                self.fail(page, command.line, f"the Makefile has no target '{word}'")
        return True

    def check_piece(self, page, block):
        path = self.root / re.search(r"file=(\S+)", block.info).group(1)
        if not path.exists():
            self.fail(page, block.line, f"{path.relative_to(self.root)} does not exist")
            return
        wanted = [line.strip() for _, line in block.lines if line.strip()]
        missing = matches_in_order(wanted, [line.strip() for line in path.read_text().split("\n")])
        if missing is not None:
            self.fail(page, block.line, f"{path.relative_to(self.root)} has no line (after those before): {missing}")

    def check_compiles(self, page, block):
        code = f'#line {block.line + 1} "{page.name}"\n' + "".join(line + "\n" for _, line in block.lines)
        command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.root}/include"]
        done = subprocess.run([*command, "-x", "c++", "-"], input=code, text=True, capture_output=True)
        if done.returncode != 0:
            self.fail(page, block.line, f"this does not compile:\n{indent(done.stderr)}")

    def check_links(self, page, text):
        for number, line in enumerate(text.split("\n"), 1):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if "://" not in target and not (page.parent / target).exists():
                    self.fail(page, number, f"the link to {target} leads nowhere")

    def run(self, page, commands):
        with tempfile.TemporaryDirectory(prefix="pscloud-docs-") as folder:
            out, work = pathlib.Path(folder) / "out", pathlib.Path(folder) / "work"
            out.mkdir()
            work.mkdir()
            script = []
            for i, command in enumerate(commands):
                (out / f"{i}.cmd").write_text(command.text)
                # eval: a mistake in one command does not spoil the reading of the next.
                script.append(f'eval "$(<{out}/{i}.cmd)" >{out}/{i}.txt 2>&1 </dev/null; echo $? >{out}/{i}.code')
            environment = dict(reader_environment(), PATH=f"{self.build}:{os.environ['PATH']}",
                               PSCLOUD_SRC=str(self.root), TMPDIR=folder, XDG_STATE_HOME=folder, LC_ALL="C.UTF-8")
            # A session of its own, so that whatever the page left running ends with it.
            shell = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=work, env=environment,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                shell.wait(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.fail(page, commands[0].line, f"its commands took more than {TIMEOUT_SECONDS} s")
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                shell.wait()
            for i, command in enumerate(commands):
                self.judge(page, command, out / f"{i}.txt", out / f"{i}.code")

    def judge(self, page, command, output, code):
        self.ran += 1
        first = command.text.split("\n")[0]
        if not code.exists():
            self.fail(page, command.line, f"`{first}` did not end")
            return
        text = output.read_text(errors="replace")
        got = int(code.read_text())
        if got != command.code:
            self.fail(page, command.line, f"`{first}` ended with {got}, not {command.code}; it said:\n{indent(text)}")
            return
        missing = matches_in_order(command.expected, text.split("\n"))
        if missing is not None:
            self.fail(page, command.line, f"`{first}` did not say '{missing}' here; it said:\n{indent(text)}")


def indent(text):
    return "\n".join("    | " + line for line in text.rstrip("\n").split("\n")[-30:])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    build = pathlib.Path(os.environ.get("PSCLOUD_BUILD", ROOT / "build/release")).resolve()
    pages = [pathlib.Path(a).resolve() for a in arguments] or [p for g in PAGES for p in sorted(ROOT.glob(g))]
    docs = Docs(ROOT, build)
    for page in pages:
        docs.check(page)
    if len(docs.no_run) > NO_RUN_MAX:
        docs.failures.append(f"{len(docs.no_run)} blocks are marked no-run, more than {NO_RUN_MAX}: make some run")
    if "--list" in sys.argv:
        print("\n".join(["blocks that are not run:"] + [f"  {place}" for place in docs.no_run]))
    for failure in docs.failures:
        print(failure)
    print(f"docs: {len(pages)} pages, {docs.ran} commands run, {len(docs.no_run)} blocks not run, "
          f"{len(docs.failures)} failures")
    return 1 if docs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
