"""The metadata service of an EC2 instance, version 2: who has no token learns nothing.

    metadata_server.py ADDRESS PORT FILE    serves what the file has, {"spot/instance-action": "...", ...}, until killed
"""

import http.server
import json
import pathlib
import sys
import threading
import uuid

FOLDER = "/latest/meta-data/"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def say(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        known = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.say(200, self.server.token) if known else self.say(400)

    def do_GET(self):
        if self.headers["X-aws-ec2-metadata-token"] != self.server.token:
            return self.say(401)
        known = self.server.known() if self.path.startswith(FOLDER) else {}
        text = known.get(self.path.removeprefix(FOLDER).rstrip("/"))
        self.say(404) if text is None else self.say(200, text if isinstance(text, str) else json.dumps(text))


class MetadataServer(http.server.ThreadingHTTPServer):
    """`known` gives what is known now: texts, or what becomes JSON, by their paths below meta-data."""

    daemon_threads = True

    def __init__(self, known, address=("127.0.0.1", 0)):
        super().__init__(address, Handler)
        self.known, self.token = known, uuid.uuid4().hex

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self):
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    address, port, file = sys.argv[1:]
    MetadataServer(lambda: json.loads(pathlib.Path(file).read_text()), (address, int(port))).serve_forever()
