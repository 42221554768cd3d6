"""A program that knows of its cluster what TF_CONFIG says, as TensorFlow's do: ps serve until they are stopped, workers
ask each ps and end. If there is a chief, only it ends by itself: workers serve too, and it asks all of them. It prints
its arguments, so that a test can see what became of them.

Words in WORK, comma-separated: "fail:worker-1" ends that task with code 7; "slow" lets workers run until they are
stopped, "pause" for two seconds more; "deaf" ones do not end by SIGTERM, and say so.
"""

import json
import os
import signal
import socket
import sys
import time

config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
work = os.environ.get("WORK", "").split(",")
host, port = config["cluster"][kind][index].rsplit(":", 1)


def serve():
    def stop(*_):
        print(f"stopped at {time.time()}", flush=True)
        os._exit(0)
    signal.signal(signal.SIGTERM, stop)
    with socket.create_server(("", int(port))) as listener:
        print("serves", flush=True)
        while True:
            connection, _ = listener.accept()
            connection.sendall(f"{kind}-{index}".encode())
            connection.close()


def ask(address):
    deadline = time.monotonic() + 30
    name, number = address.rsplit(":", 1)
    while True:
        try:
            with socket.create_connection((name, int(number)), timeout=30) as connection:
                return connection.recv(100).decode()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


print("arguments " + json.dumps(sys.argv[1:]), flush=True)
for secret in ("TOKEN", "KEY", "WORD"):
    if f"{secret}_FILE" in os.environ:
        print("secret " + open(os.environ[f"{secret}_FILE"]).read(), flush=True)
if kind == "ps" or (kind == "worker" and "chief" in config["cluster"]):
    serve()
# Who was heard has said its arguments: a chief that ends before would have the others stopped before they say a word.
asked = ("ps", "worker") if kind == "chief" else ("ps",)
print("heard " + " ".join(ask(address) for job in asked for address in config["cluster"].get(job, [])), flush=True)
if f"fail:{kind}-{index}" in work:
    print("something is wrong here", file=sys.stderr, flush=True)
    sys.exit(7)
if "slow" in work:
    if "deaf" in work:
        signal.signal(signal.SIGTERM, lambda *_: print("does not listen", flush=True))
    print("works", flush=True)
    time.sleep(3600)
if "pause" in work:
    time.sleep(2)
print(f"ends at {time.time()}", flush=True)
