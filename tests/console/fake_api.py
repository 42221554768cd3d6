#!/usr/bin/env python3
"""The console's API with made-up runs, and the page on it: to work on the page, and to test it in a browser.

    tests/console/fake_api.py [PORT] [RUNS]

It is strict where the real one is: tokens, the header of POSTs, the policy for contents.
"""

import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fake_world import STEP_MS, World

WEB = pathlib.Path(__file__).resolve().parents[2] / "src/console/web"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")  # as of src/net/http_server.cc
EVENTS_PER_S = 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff"), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        if parts == [""]:
            parts = ["assets", "index.html"]
        if parts[0] == "assets":
            file = WEB / parts[-1]
            if len(parts) != 2 or file.parent != WEB or not file.is_file():
                return self.reply(404, {"error": "no such file"})
            return self.reply(200, file.read_bytes(), f"{TYPES[file.suffix]}; charset=utf-8")
        if parts[0] != "api":
            return self.reply(404, {"error": "not here"})
        given = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.query.get("token")
        if given != self.server.world.token:
            return self.reply(401, {"error": "the token is missing or wrong"})
        if self.command == "POST" and self.headers.get("X-Pscloud") != "1":
            return self.reply(403, {"error": "a page of somebody else's"})
        if parts[1:] == ["about"]:
            return self.reply(200, {"version": "0.1.0", "host": "laptop", "user": "ada", "controller": False})
        if parts[1:] == ["runs"]:
            return self.list_runs()
        run = self.server.world.runs.get(parts[2]) if len(parts) > 2 else None
        if run is None:
            return self.reply(404, {"error": f"there is no run '{parts[2] if len(parts) > 2 else ''}'"})
        return self.answer_run(run, parts[3:])

    def list_runs(self):
        with self.server.world.lock:
            runs = list(self.server.world.runs.values())
            if self.query.get("state") == "open":
                runs = [run for run in runs if run.state in ("running", "waiting", "stopping")]
            names = [run.name for run in runs]
            first = names.index(self.query["before"]) + 1 if "before" in self.query else 0
            limit = int(self.query.get("limit", 100))
            page = [run.brief() for run in runs[first:first + limit]]
        more = first + limit < len(runs)
        self.reply(200, {"runs": page, "total": len(runs), "next": page[-1]["name"] if more else None})

    def answer_run(self, run, rest):
        world = self.server.world
        if self.command == "POST":
            world.posts.append((rest[0], run.name))
            with world.lock:
                if rest == ["stop"]:
                    run.stop()
                return self.reply(202, {"state": run.state})
        if rest == ["stream"]:
            return self.stream(run)
        with world.lock:
            if not rest:
                return self.reply(200, run.full())
            if rest == ["nodes"]:
                return self.reply(200, run.nodes())
            if rest == ["samples"]:
                return self.reply(200, {"columns": ["unix_ms", "task", "name", "value"], "rows": self.thinned(run)})
            log = bytes(run.logs.get(rest[1], b"")) if rest[0] == "logs" and len(rest) == 2 else None
        if log is None:
            return self.reply(404, {"error": "not here"})
        if "search" in self.query:
            return self.search(log)
        return self.send_log(log)

    def thinned(self, run):
        after, most = int(self.query.get("after_unix_ms", 0)), int(self.query.get("max", 2000))
        every = -(-(run.sampled - max(after, run.since)) // STEP_MS // most) or 1
        return [row for row in run.samples if row[0] > after and (run.sampled - row[0]) // STEP_MS % every == 0]

    def search(self, log):
        needle, limit, matches, offset = self.query["search"].lower(), int(self.query.get("max", 200)), [], 0
        for line in log.split(b"\n"):
            if needle in line.decode("utf-8", "replace").lower():
                matches.append({"offset": offset, "line": line.decode("utf-8", "replace")})
            offset += len(line) + 1
        self.reply(200, {"matches": matches[:limit], "more": len(matches) > limit})

    def send_log(self, log):
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            return self.reply(200, log, "text/plain; charset=utf-8")
        first, last = wanted.groups()
        begin = int(first) if first else max(0, len(log) - int(last))
        end = min(len(log), int(last) + 1 if first and last else len(log))
        if begin >= end:
            return self.reply(416, {"error": "nothing there"}, headers=[("Content-Range", f"bytes */{len(log)}")])
        self.reply(206, log[begin:end], "text/plain; charset=utf-8",
                   headers=[("Content-Range", f"bytes {begin}-{end - 1}/{len(log)}")])

    def stream(self, run):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True
        world, wanted = self.server.world, self.query.get("logs", "all").split(",")
        with world.lock:
            logs = [task for task in run.logs if "all" in wanted or task in wanted]
            offsets = {task: len(run.logs[task]) if self.query.get("from") == "end" else 0 for task in logs}
            sampled, version = len(run.samples), -1
        state_at = alive_at = 0.0
        try:
            while not self.server.over.is_set():
                events = []
                with world.lock:
                    if run.version != version or time.monotonic() - state_at > 1 and run.state == "running":
                        version, state_at = run.version, time.monotonic()
                        events.append(("state", run.full()))
                    if len(run.samples) > sampled:
                        events.append(("samples", {"rows": run.samples[sampled:]}))
                        sampled = len(run.samples)
                    for task in logs:
                        new = bytes(run.logs[task][offsets[task]:])
                        new = new[:new.rfind(b"\n") + 1]
                        if new:
                            offsets[task] += len(new)
                            lines = new.decode("utf-8", "replace").split("\n")[:-1]
                            events.append(("lines", {"task": task, "offset": offsets[task], "lines": lines}))
                    ended = run.state in ("done", "failed", "interrupted")
                for name, data in events:
                    self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
                if ended:
                    self.wfile.write(b"event: end\ndata: {}\n\n")
                    return
                if time.monotonic() - alive_at > 10:
                    alive_at = time.monotonic()
                    self.wfile.write(b": alive\n\n")
                self.wfile.flush()
                time.sleep(1 / EVENTS_PER_S)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # browsers close connections as they like


class FakeApi:
    """The server in threads of this process, on a port of its own."""

    def __init__(self, port=0, world=None, **wanted):
        self.world = world or World(**wanted)
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.world, self.server.over = self.world, threading.Event()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.url = f"{self.address}#token={self.world.token}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    api = FakeApi(int(sys.argv[1]) if len(sys.argv) > 1 else 0, history=int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print(api.url, flush=True)
    threading.Event().wait()
