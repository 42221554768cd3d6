#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a compile_commands.json, and skips what has not changed. Tests come with
--tests only: GoogleTest's headers make every check dear, and most of what tests do wrong shows when they run.

    tools/lint.py BUILD_DIR [JOBS] [--tests]

BUILD_DIR is configured for unity builds: each file there includes some of a room, so that the headers of all, which
take most of the time, are read once. A file is skipped if it passed before with the same content, the same headers of
ours, the same command and the same .clang-tidy: the hash of all these is kept in $XDG_CACHE_HOME/pscloud-lint, for
every clone. Exit code 1 if clang-tidy has something to say.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-16"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pscloud-lint"
KEPT_SECONDS = 30 * 24 * 3600
# How fast a test fills a vector is no matter. These find mistakes.
TEST_CHECKS = ("-*,clang-diagnostic-*,bugprone-dangling-handle,bugprone-infinite-loop,bugprone-sizeof-expression,"
               "bugprone-unused-raii,bugprone-unused-return-value,bugprone-use-after-move")
# CLI11 takes strings by value all over its header: this one check is half of the time of the room that includes it.
CLI_CHECKS = "-performance-unnecessary-value-param"
INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def headers_of(path, seen):
    """Every file of ours that `path` includes, directly or not. What lies outside the repository changes with packages,
    whose version is in the hash by clang-tidy's own."""
    if path in seen or not path.is_file():
        return seen
    seen.add(path)
    for name in INCLUDE.findall(path.read_bytes()):
        for folder in (ROOT / "src", ROOT / "include", ROOT, path.parent):
            headers_of((folder / name.decode()).resolve(), seen)
    return seen


def fingerprint(entry, common):
    """The same in every clone: without the path of this one, which files that include a room's sources hold too."""
    def here(text):
        return text.replace(bytes(ROOT), b".")
    digest = hashlib.sha256(common)
    digest.update(here(entry.get("command", str(entry.get("arguments"))).encode()))
    for path in sorted(headers_of(pathlib.Path(entry["file"]).resolve(), set())):
        digest.update(here(bytes(path)))
        digest.update(here(path.read_bytes()))
    return digest.hexdigest()


def lint(build, source):
    start = time.monotonic()
    checks = CLI_CHECKS if "/pscloud_cli.dir/" in source else TEST_CHECKS if "_test.dir/" in source else ""
    command = [TIDY, "-p", str(build), "--quiet", f"--checks={checks}", source]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    # stderr counts the warnings it hid in system headers; it matters only when nothing else explains a failure.
    text = done.stdout if done.stdout.strip() or done.returncode == 0 else done.stderr
    return done.returncode, text, time.monotonic() - start


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with_tests = "--tests" in sys.argv
    if with_tests:
        sys.argv.remove("--tests")
    build = pathlib.Path(sys.argv[1])
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    entries = {entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())}
    version = subprocess.run([TIDY, "--version"], capture_output=True).stdout
    common = (ROOT / ".clang-tidy").read_bytes() + (CLI_CHECKS + TEST_CHECKS).encode() + version
    CACHE.mkdir(parents=True, exist_ok=True)

    prints = {source: fingerprint(entry, common) for source, entry in entries.items()
              if pathlib.Path(source).is_relative_to(ROOT)
              and "/generated/" not in source and (with_tests or "_test.dir/" not in source)}
    todo = []
    for source, name in sorted(prints.items()):
        if (CACHE / name).exists():
            (CACHE / name).touch()
        else:
            todo.append(source)
    print(f"lint: {len(prints)} files, {len(prints) - len(todo)} unchanged since they passed", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(lint, build, source): source for source in todo}
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            source = running[future]
            code, text, seconds = future.result()
            verdict = "ok" if code == 0 else "FAILED"
            print(f"[{number}/{len(todo)}] {os.path.relpath(source, ROOT)} {seconds:.1f} s {verdict}", flush=True)
            if code == 0:
                (CACHE / prints[source]).touch()
            else:
                failed += 1
                print(text, flush=True)
    for old in CACHE.iterdir():
        if old.stat().st_mtime < time.time() - KEPT_SECONDS:
            old.unlink(missing_ok=True)
    print(f"lint: {failed} of {len(prints)} files with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
