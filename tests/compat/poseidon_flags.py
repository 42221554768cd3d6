"""Its workers read what a program of Poseidon reads: flags. Its master stands for Poseidon's own."""

import argparse

from meeting import answer_all, ask, listen, only, wait_to_be_stopped

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--master_address")
parser.add_argument("--client_id")
flags = parser.parse_args()

if flags.distributed:
    only()
    scheme, _, master = flags.master_address.partition("://")
    assert scheme == "tcp"
    print("sum", ask(master, int(flags.client_id) + 1))
else:
    environment = only("PSCLOUD_ROLE", "PSCLOUD_SCHEDULER", "PSCLOUD_WORKERS")
    if environment["PSCLOUD_ROLE"] == "scheduler":
        answer_all(listen(environment["PSCLOUD_SCHEDULER"]), int(environment["PSCLOUD_WORKERS"]), sum)
    wait_to_be_stopped()
