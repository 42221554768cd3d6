"""A browser for tests: Debian's Chromium through its driver, spoken to by plain WebDriver over HTTP. Nothing else is
needed. Its profile is a temporary folder, and it asks nobody for anything by itself."""

import base64
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-default-apps",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008", "End": "\ue010", "Left": "\ue012",
        "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}
SECONDS = 20


def missing():
    """What is not installed, in a sentence; empty if all is there."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed: `tools/setup.sh browser` installs it"
    return ""


def until(condition, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what() if callable(what) else what}")
        time.sleep(0.02)
    return result


class Browser:
    def __init__(self, width=1280, height=900):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-browser-"))
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        said = next((line for line in self.driver.stdout if "successfully on port" in line), "")
        self.port = int(re.search(r"on port (\d+)", said).group(1))
        threading.Thread(target=self.driver.stdout.read, daemon=True).start()  # what it says later must not block it
        options = {"args": [*FLAGS, f"--user-data-dir={self.folder}", f"--window-size={width},{height}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{session['sessionId']}"

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{value['error']}: {value['message']}")
        return value

    def ask(self, path, body=None):
        return self.call("POST", self.session + path, body or {})

    def open(self, url):
        self.ask("/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a function's body in the page."""
        return self.ask("/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """As run(), for a body that calls its last argument when it is done."""
        return self.ask("/execute/async", {"script": script, "args": list(arguments)})

    def find(self, css):
        found = until(lambda: self.ask("/elements", {"using": "css selector", "value": css}),
                      lambda: f"{css}: {self.text()}")
        return found[0][ELEMENT]

    def click(self, css):
        self.ask(f"/element/{self.find(css)}/click")

    def write(self, css, text):
        element = self.find(css)
        self.ask(f"/element/{element}/clear")
        self.ask(f"/element/{element}/value", {"text": text})

    def press(self, *keys):
        """Keys one after the other, to whatever has the focus; "Shift+Tab" holds the first."""
        actions = []
        for key in keys:
            words = [KEYS.get(word, word) for word in key.split("+")] if len(key) > 1 else [key]
            actions += [{"type": "keyDown", "value": word} for word in words]
            actions += [{"type": "keyUp", "value": word} for word in reversed(words)]
        self.ask("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, css="body"):
        """What a person can read there; nothing if it is not there."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n')", css)

    def until_text(self, text, css="body", seconds=SECONDS):
        until(lambda: text in self.text(css), lambda: f"'{text}' in {css}: {self.text(css)}", seconds)

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def dark(self, on):
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def size(self, width, height, mobile=False, scale=1):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                      mobile=mobile)

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("GET", self.session + "/screenshot")))

    def complaints(self):
        """Of the page, on its console: errors, and what the policy for contents has refused."""
        return [entry["message"] for entry in self.ask("/se/log", {"type": "browser"}) if entry["level"] != "INFO"]

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(SECONDS)
            self.driver.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)
