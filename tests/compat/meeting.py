"""What the programs of this folder do once they know from their contract who they are: meet the others, and add up
everybody's number. Each wait has a deadline, and each listens at exactly the address that the others were told."""

import json
import os
import signal
import socket
import sys
import threading
import time

SECONDS = 30
DEADLINE = time.monotonic() + SECONDS


def only(*names):
    """These variables. All others are forgotten, so that a program reads nothing but its contract."""
    found = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.clear()
    return found


def split(address):
    host, _, port = address.rpartition(":")
    assert port == str(int(port)), f"{address}: a port is a number without padding"
    return host, int(port)


def listen(address):
    listener = socket.create_server(split(address), backlog=100)
    listener.settimeout(SECONDS)
    return listener


def send(connection, value):
    connection.sendall(json.dumps(value).encode() + b"\n")


def receive(connection):
    with connection.makefile() as lines:
        line = lines.readline()
    if not line:
        raise ConnectionError("the other end is gone")
    return json.loads(line)


def ask(address, value):
    """The answer of the one who listens there, or will."""
    while True:
        try:
            with socket.create_connection(split(address), timeout=SECONDS) as connection:
                send(connection, value)
                return receive(connection)
        except ConnectionRefusedError:
            if time.monotonic() > DEADLINE:
                sys.exit(f"nobody listens at {address}")
            time.sleep(0.02)


def answer_all(listener, count, answer):
    """Hears `count` others, then answers each by answer(what all of them said); gives what they said."""
    connections = [listener.accept()[0] for _ in range(count)]
    said = [receive(connection) for connection in connections]
    for connection in connections:
        send(connection, answer(said))
        connection.close()
    return said


def exchange(me, addresses):
    """Everybody tells everybody his number, which is his place among `addresses` + 1; the sum of all."""
    listener = listen(me)
    mine = addresses.index(me) + 1
    heard = []
    # Answers one after the other, since they do not all ask at once.
    server = threading.Thread(target=lambda: heard.extend(
        answer_all(listener, 1, lambda _: mine)[0] for _ in range(len(addresses) - 1)))
    server.start()
    told = [ask(address, mine) for address in addresses if address != me]
    server.join(SECONDS)
    assert sorted(told) == sorted(heard), f"told {told}, heard {heard}"
    return mine + sum(told)


def wait_to_be_stopped():
    """As servers do that never end by themselves. Too late is a failure."""
    if not signal.sigtimedwait([signal.SIGTERM], SECONDS):
        sys.exit("nobody has stopped this server")
    print("stopped")


# Or SIGTERM would end it before anybody waits for it.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
