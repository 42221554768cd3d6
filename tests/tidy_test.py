#!/usr/bin/env python3
"""A check that cannot fail is no check: each case is a small tree with one fault, and the words tidy must say of it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy  # noqa: E402

GOOD = {
    "CMakeLists.txt": "add_subdirectory(src/base)\n",
    "include/pscloud/error.h": "#pragma once\n#include <string>\n",
    "src/base/CMakeLists.txt": "pscloud_room(base\n  SOURCES check.cc\n  TESTS check_test.cc)\n",
    "src/base/check.h": '#pragma once\n#include "pscloud/error.h"\n',
    "src/base/check.cc": '#include "base/check.h"\n',
    "src/base/check_test.cc": '#include "base/check.h"\n',
    "src/net/CMakeLists.txt": "pscloud_room(net SOURCES tcp.cc)\n",
    "src/net/tcp.h": "#pragma once\n",
    "src/net/tcp.cc": '#include "net/tcp.h"\n#include <httplib.h>\n#include "base/check.h"\n',
    "src/engine/CMakeLists.txt": "pscloud_room(engine SOURCES server.cc)\n",
    "src/engine/server.h": "#pragma once\n",
    "src/engine/server.cc": '#include "engine/server.h"\n// not std::chrono::steady_clock::now()\n'
                            "void Server::connect() {}\n",
    "tests/CMakeLists.txt": "add_test(NAME a COMMAND python3 a.py)\nforeach(f frame)\n  x(${f}_fuzz.cc)\n",
    "tests/a.py": "import helper\n",
    "tests/helper.py": "",
    "tests/frame_fuzz.cc": '#include "net/tcp.h"\n',
    "examples/CMakeLists.txt": "add_executable(e e.cc)\n",
    "examples/e.cc": '#include "pscloud/error.h"\n',
    "README.md": "# Read me\n",
}


def failures(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**GOOD, **changes}.items():
            if text is not None:
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return tidy.Tidy(folder).run()


class TidyTest(unittest.TestCase):
    def test_a_good_tree_has_no_failures(self):
        self.assertEqual(failures({}), [])

    def test_each_fault_is_found_once_and_named(self):
        long_file = "// x\n" * (tidy.LINES_MAX + 1)
        cases = {
            "upward edge": ({"src/base/check.cc": '#include "base/check.h"\n#include "net/tcp.h"\n'},
                            "src/base/check.cc:2: base may not include net"),
            "contract includes a room": ({"include/pscloud/error.h": '#include "base/check.h"\n'},
                                         "include/pscloud/error.h:1: pscloud may not include base"),
            "example looks inside": ({"examples/e.cc": '#include "base/check.h"\n'},
                                     'examples/e.cc:1: an example includes "base/check.h"'),
            "include without room": ({"src/base/check.cc": '#include "base/check.h"\n#include "check.h"\n'},
                                     'src/base/check.cc:2: "check.h" is in no room'),
            "include of nothing": ({"src/base/check.cc": '#include "base/check.h"\n#include "base/gone.h"\n'},
                                   'src/base/check.cc:2: "base/gone.h" does not exist'),
            "source included": ({"src/base/check.cc": '#include "base/check.h"\n#include "base/log.cc"\n',
                                 "src/base/log.cc": "\n",
                                 "src/base/CMakeLists.txt": "x(check.cc check_test.cc log.cc)\n"},
                                'src/base/check.cc:2: "base/log.cc" is no header'),
            "generated from nothing": ({"src/base/check.cc": '#include "base/check.h"\n#include "base/a.pb.h"\n'},
                                       'src/base/check.cc:2: "base/a.pb.h" does not exist'),
            "generated, upward": ({"src/base/check.cc": '#include "base/check.h"\n#include "net/a.pb.h"\n',
                                   "src/net/a.proto": "\n"}, "src/base/check.cc:2: base may not include net"),
            "unknown room": ({"src/utils/a.cc": "\n", "src/utils/CMakeLists.txt": "x(a.cc)\n"},
                             "src/utils/a.cc:1: stands in no room"),
            "httplib outside net": ({"src/engine/server.cc": '#include "engine/server.h"\n#include <httplib.h>\n'},
                                 "src/engine/server.cc:2: <httplib.h> is at home in src/net/"),
            "spdlog outside the log": ({"src/base/check.cc": '#include "base/check.h"\n#include <spdlog/spdlog.h>\n'},
                                       "src/base/check.cc:2: <spdlog/spdlog.h> is at home in src/base/log.cc"),
            "OpenSSL in the engine": ({"src/engine/server.h": "#include <openssl/ssl.h>\n"},
                                      "src/engine/server.h:1: <openssl/ssl.h> is at home in src/net/"),
            "CLI11 outside cli": ({"src/net/tcp.h": "#include <CLI/CLI.hpp>\n"},
                                  "src/net/tcp.h:1: <CLI/CLI.hpp> is at home in src/cli/"),
            "curl outside": ({"src/net/tcp.h": "#include <curl/curl.h>\n"},
                             "src/net/tcp.h:1: <curl/curl.h> is at home in"),
            "protobuf outside": ({"src/net/tcp.h": "#include <google/protobuf/message.h>\n"},
                                 "src/net/tcp.h:1: <google/protobuf/message.h> is at home in"),
            "source not listed": ({"src/base/lost.cc": "\n"}, "src/base/lost.cc:1: no CMakeLists.txt lists it"),
            "source listed in a comment": (
                {"src/net/CMakeLists.txt": "pscloud_room(net SOURCES # tcp.cc\n)\n"},
                "src/net/tcp.cc:1: no CMakeLists.txt lists it"),
            "header not included": ({"src/base/lost.h": "\n"}, "src/base/lost.h:1: nobody includes it"),
            "script not run": ({"tests/lost.py": "\n"}, "tests/lost.py:1: nobody runs it"),
            "long file": ({"src/base/check.cc": '#include "base/check.h"\n' + long_file},
                          "src/base/check.cc:1: 502 lines, more than 500"),
            "engine reads a clock": (
                {"src/engine/server.cc": '#include "engine/server.h"\nauto t = std::chrono::steady_clock::now();\n'},
                "src/engine/server.cc:2: the engine reads a clock"),
            "engine draws": ({"src/engine/server.h": "std::random_device d;\n"},
                             "src/engine/server.h:1: the engine draws chance itself"),
            "engine opens a socket": ({"src/engine/server.h": "int s = ::socket(1, 2, 3);\n"},
                                      "src/engine/server.h:1: the engine opens a socket"),
            "engine sleeps": ({"src/engine/server.h": "std::this_thread::sleep_for(1s);\n"},
                              "src/engine/server.h:1: the engine sleeps"),
            "somebody's path": ({"README.md": "see /ho" + "me/ann/notes\n"},
                                "README.md:1: '/ho" + "me/ann/' names a path of somebody's machine"),
            "work without owner": ({"src/net/tcp.h": "// TO" + "DO: later\n"},
                                   "src/net/tcp.h:1: 'TO" + "DO' is unfinished work without an owner"),
            "wide line": ({"tests/a.py": "import helper\n" + "#" * 121 + "\n"},
                          "tests/a.py:2: 121 columns, more than 120"),
            "wide CMake line": ({"CMakeLists.txt": "#" * 121 + "\n"}, "CMakeLists.txt:1: 121 columns"),
            "white space": ({"README.md": "a \n"}, "README.md:1: white space at the end of the line"),
            "no end of line": ({"README.md": "a"}, "README.md:1: the last line has no end"),
            "empty line at the end": ({"README.md": "a\n\n"}, "README.md:2: empty line at the end"),
        }
        for name, (changes, expected) in cases.items():
            with self.subTest(name):
                found = failures(changes)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(expected), found[0])
                self.assertIn("; ", found[0], "says what to do")

    def test_a_reason_excuses_length(self):
        text = '#include "base/check.h"\n// Long because: one table.\n' + "// x\n" * tidy.LINES_MAX
        self.assertEqual(failures({"src/base/check.cc": text}), [])

    def test_every_room_and_home_is_meant(self):
        for room, others in tidy.MAY_INCLUDE.items():
            for other in others:
                self.assertNotIn(room, tidy.MAY_INCLUDE[other], "rooms have no cycles")


if __name__ == "__main__":
    unittest.main()
