"""Reads our own variables, those for programs that are no node of ours among them."""

from meeting import exchange, only

environment = only("PSCLOUD_ROLE", "PSCLOUD_RANK", "PSCLOUD_LISTEN", "PSCLOUD_SERVERS", "PSCLOUD_WORKERS",
                   "PSCLOUD_SERVER_ADDRESSES", "PSCLOUD_WORKER_ADDRESSES", "PSCLOUD_JOB", "PSCLOUD_RUN", "PSCLOUD_TASK",
                   "PYTHONUNBUFFERED")
addresses = {role: environment[f"PSCLOUD_{role.upper()}_ADDRESSES"].split(",") for role in ("server", "worker")}
for role, found in addresses.items():
    assert len(found) == int(environment[f"PSCLOUD_{role.upper()}S"])
role, rank = environment["PSCLOUD_ROLE"], environment["PSCLOUD_RANK"]
assert environment["PSCLOUD_TASK"] == f"{role}-{rank}" and environment["PYTHONUNBUFFERED"] == "1"
assert environment["PSCLOUD_RUN"] and environment["PSCLOUD_JOB"]
me = environment["PSCLOUD_LISTEN"]
assert addresses[role][int(rank)] == me
print("sum", exchange(me, addresses["server"] + addresses["worker"]))
