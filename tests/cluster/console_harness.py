"""What the tests of console and controller share: a client of their API that is none of ours."""

import http.client
import json
import ssl
import threading
import urllib.parse


class Api:
    """Asks the server at `url` ("http://127.0.0.1:77"); `ca` is a file of PEM, for https."""

    def __init__(self, url, token="", ca=None):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.token = parts.hostname, parts.port, token
        self.context = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection(self.host, self.port, timeout=30, context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def ask(self, method, path, headers=None, body=None, token=None):
        """(status, headers, body); the path is sent as it is."""
        token = self.token if token is None else token
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def json(self, path):
        status, _, body = self.ask("GET", path)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body}")
        return json.loads(body)

    def post(self, path, **headers):
        return self.ask("POST", path, {"X-Pscloud": "1", **headers}, b"")


class Events(threading.Thread):
    """Reads a stream of events; `on_event(name, data)` is called for each. Ends with the stream."""

    def __init__(self, api, path, on_event):
        super().__init__(daemon=True)
        self.connection = api.connect()
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {api.token}"})
        self.reply = self.connection.getresponse()
        self.on_event = on_event
        if self.reply.status != 200:
            raise AssertionError(f"{path}: {self.reply.status} {self.reply.read()}")
        self.start()

    def run(self):
        name = ""
        try:
            for line in self.reply:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    self.on_event(name, json.loads(line[6:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # it was closed
        finally:
            self.connection.close()
