#!/usr/bin/env python3
"""Checks the house rules that no compiler checks: who may include whom, where heavy libraries live, files that nobody
builds, files that are too long, engine code that reads a clock, and the looks of text.

    tests/tidy.py [ROOT]

Prints one line for each failure, `file:line: what; what to do`, and ends with exit code 1 if there is any.
tests/tidy_test.py proves that each check can fail.
"""

import os
import pathlib
import re
import sys

# ARCHITECTURE.md shows this table: which rooms of ours a room may include, beside itself.
MAY_INCLUDE = {
    "pscloud": (),  # include/pscloud, the contract
    "base": ("pscloud",),
    "net": ("pscloud", "base"),
    "io": ("pscloud", "base", "net"),
    "data": ("pscloud", "base", "io"),
    "engine": ("pscloud", "base", "net", "io"),
    "learn": ("pscloud", "base", "io", "data", "engine"),
    "launch": ("pscloud", "base", "net", "io"),
    "console": ("pscloud", "base", "net", "io", "launch"),
    "cli": ("pscloud", "base", "net", "io", "data", "engine", "learn", "launch", "console"),
}

# A library with heavy headers or a wide interface has one home: (how the include begins, paths that may have it).
HOMES = (
    (("httplib.h",), ("src/net/",)),
    (("curl/",), ("src/io/http_client",)),
    (("spdlog/",), ("src/base/log.cc",)),
    (("CLI/",), ("src/cli/",)),
    (("google/protobuf/",), ("src/io/config_file",)),
    (("openssl/",), ("src/net/", "src/io/aws_signature")),
    (("xxhash.h",), ("src/base/hash.cc",)),
    (("lz4",), ("src/engine/",)),
    (("zstd.h",), ("src/engine/", "src/io/decompress", "src/io/test_compress")),
    (("zlib.h",), ("src/io/decompress", "src/io/test_compress")),
)

# The engine gets time, chance and lanes from outside, or the simulator would not run the code that ships.
ENGINE_FORBIDDEN = (
    (re.compile(r"std::chrono::\w*_clock::now|clock_gettime|gettimeofday|\bstd::time\("),
     "reads a clock", "take a Clock&"),
    (re.compile(r"std::random_device|std::mt19937|getrandom\(|\bs?rand\("), "draws chance itself", "take a Random&"),
    (re.compile(r"(?<!\w)::(socket|connect|bind|accept4?)\(|sys/socket\.h"), "opens a socket", "take a Transport&"),
    (re.compile(r"this_thread::sleep|\bu?sleep\("), "sleeps", "ask for Transport::wake_at()"),
)

LINES_MAX = 500
REASON = "Long because:"  # in one of the first lines of a file that is longer
REASON_WITHIN = 15
COLUMNS_MAX = 120

# Written so that they do not find themselves.
BANNED = (
    (re.compile(r"(?<![\w.$}/])/(wor[k]|far[m]|roo[t]|home/\w+|tmp/w[t])/"), "names a path of somebody's machine",
     "use a path relative to the repository, or a temporary folder"),
    (re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b(?!\(\w)"), "is unfinished work without an owner",
     "do it, or write its owner: the word, then (name)"),
)

CODE = {".cc", ".h"}
NARROW = CODE | {".cmake", ".py", ".sh", ".js", ".css", ".html"}
TEXT = NARROW | {".md", ".txt", ".json", ".conf", ".proto", ".yml", ".yaml", ""}
BUILT_FOLDERS = ("src", "include", "tests", "examples", "bench")
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".venv", "corpus"}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Tidy:
    """Reads the tree at `root` once; run() gives the failures, in the order of files and lines."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.failures = []
        self.lines = {}  # path relative to root, with "/" -> lines
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
            for name in sorted(names):
                path = (pathlib.Path(folder) / name).relative_to(self.root)
                if path.suffix in TEXT and not name.startswith(".git"):
                    text = (self.root / path).read_bytes().decode("utf-8", errors="replace")
                    self.lines[path.as_posix()] = text.split("\n")
        self.includes = {path: self.read_includes(path) for path in self.lines if suffix(path) in CODE}

    def read_includes(self, path):
        found = []
        for number, line in enumerate(self.lines[path], 1):
            match = INCLUDE.match(line)
            if match:
                found.append((number, match.group(1) == '"', match.group(2)))
        return found

    def fail(self, path, line, what, remedy):
        self.failures.append((path, line, f"{path}:{line}: {what}; {remedy}"))

    def run(self):
        for path in self.includes:
            self.check_edges(path)
            self.check_homes(path)
        for path in self.lines:
            self.check_engine(path)
            self.check_length(path)
            self.check_looks(path)
        self.check_built()
        return [text for _, _, text in sorted(self.failures)]

    def check_edges(self, path):
        room = room_of(path)
        if room is None and path.startswith(("src/", "include/")):
            self.fail(path, 1, "stands in no room", f"the rooms are: {', '.join(MAY_INCLUDE)}")
        for number, quoted, name in self.includes[path]:
            if not quoted:
                continue
            if not name.endswith(".h"):
                self.fail(path, number, f'"{name}" is no header', "include headers only; CMake builds the sources")
            target = name.split("/")[0]
            found = [place for place in (f"src/{name}", f"include/{name}", f"{os.path.dirname(path)}/{name}", name)
                     if place in self.lines]
            if target not in MAY_INCLUDE or "/" not in name:
                if not found or room is not None:
                    self.fail(path, number, f'"{name}" is in no room', 'write it as "room/file.h"')
            elif not found and not (name.endswith(".pb.h") and f"src/{name[:-5]}.proto" in self.lines):
                self.fail(path, number, f'"{name}" does not exist', "fix the name")
            elif path.startswith("examples/") and target != "pscloud":
                self.fail(path, number, f'an example includes "{name}"', "examples show what a user has: pscloud/ only")
            elif room is not None and target != room and target not in MAY_INCLUDE[room]:
                allowed = ", ".join(MAY_INCLUDE[room]) or "nothing of ours"
                self.fail(path, number, f"{room} may not include {target}", f"it may include: {allowed}")

    def check_homes(self, path):
        if not path.startswith(("src/", "include/")):
            return  # tests, benchmarks and examples are not linked into anything
        for number, _, name in self.includes[path]:
            for prefixes, homes in HOMES:
                if name.startswith(prefixes) and not path.startswith(homes):
                    self.fail(path, number, f"<{name}> is at home in {' and '.join(homes)}", "call what is there")

    def check_engine(self, path):
        if not path.startswith("src/engine/") or suffix(path) not in CODE:
            return
        for number, line in enumerate(self.lines[path], 1):
            for pattern, what, remedy in ENGINE_FORBIDDEN:
                if pattern.search(line.split("//")[0]):
                    self.fail(path, number, f"the engine {what}", remedy)

    def check_length(self, path):
        lines = self.lines[path]
        if suffix(path) in NARROW and len(lines) - 1 > LINES_MAX:
            if not any(REASON in line for line in lines[:REASON_WITHIN]):
                self.fail(path, 1, f"{len(lines) - 1} lines, more than {LINES_MAX}",
                          f'split it, or say near the top "{REASON} ..."')

    def check_looks(self, path):
        lines = self.lines[path]
        narrow = suffix(path) in NARROW or os.path.basename(path) == "CMakeLists.txt"
        if lines[-1] != "":
            self.fail(path, len(lines), "the last line has no end", "add a newline")
        elif len(lines) > 2 and lines[-2] == "":
            self.fail(path, len(lines) - 1, "empty line at the end", "remove it")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                self.fail(path, number, "white space at the end of the line", "remove it")
            if narrow and len(line) > COLUMNS_MAX:
                self.fail(path, number, f"{len(line)} columns, more than {COLUMNS_MAX}", "break the line")
            for pattern, what, remedy in BANNED:
                match = pattern.search(line)
                if match and path != "LICENSE":
                    self.fail(path, number, f"'{match.group(0)}' {what}", remedy)

    def check_built(self):
        """A .cc stands in a CMakeLists.txt at or above it; a header is included; a script is named by somebody."""
        included = {name for path in self.includes for _, _, name in self.includes[path]}
        callers = {path: "\n".join(lines) for path, lines in self.lines.items()
                   if os.path.basename(path) in ("CMakeLists.txt", "Makefile")
                   or suffix(path) in (".sh", ".cmake", ".py")}
        for path in self.lines:
            top, _, inside = path.partition("/")
            name = os.path.basename(path)
            if top not in BUILT_FOLDERS:
                continue
            if suffix(path) == ".cc" and not self.listed(path):
                self.fail(path, 1, "no CMakeLists.txt lists it", "add it to the one of its folder, or remove it")
            elif suffix(path) == ".h" and not {inside, path, name} & included:
                self.fail(path, 1, "nobody includes it", "remove it")
            elif suffix(path) in (".py", ".sh") and not any(
                    re.search(rf"\b{re.escape(name)}\b|(import|from) {re.escape(name[:-3])}\b", text)
                    for caller, text in callers.items() if caller != path):
                self.fail(path, 1, "nobody runs it", "add it to tests/CMakeLists.txt, or remove it")

    def listed(self, path):
        folder = os.path.dirname(path)
        while True:
            lists = [f"{folder}/CMakeLists.txt".lstrip("/")]
            if folder == "":
                lists += [p for p in self.lines if p.startswith("cmake/")]
            for cmake in lists:
                for line in self.lines.get(cmake, ()):
                    for word in re.findall(r"[^\s()\"]+\.cc\b", line.split("#")[0]):
                        word = word.replace("${PROJECT_SOURCE_DIR}/", "").replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
                        # A variable in a name, as of a foreach(), may be anything.
                        pattern = re.sub(r"\\\$\\\{\w+\\\}", "[^/]*", re.escape(word))
                        if re.fullmatch(pattern, os.path.relpath(path, folder or ".")) or re.fullmatch(pattern, path):
                            return True
            if folder == "":
                return False
            folder = os.path.dirname(folder)


def suffix(path):
    return pathlib.PurePosixPath(path).suffix


def room_of(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1] if parts[1] in MAY_INCLUDE else None
    if parts[:2] == ["include", "pscloud"]:
        return "pscloud"
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    tidy = Tidy(root)
    failures = tidy.run()
    for failure in failures:
        print(failure)
    print(f"tidy: {len(tidy.lines)} files, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
