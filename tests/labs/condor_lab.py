"""A real HTCondor pool on one computer, for tests: machine 1 is the manager, takes jobs and runs them, the others only
run them (machines.py). Debian 12 has no HTCondor: the machines' root is a Debian 13, made once by debootstrap in two
minutes and kept in $XDG_CACHE_HOME/pscloud-labs. Needs root and debootstrap (tools/setup.sh labs).

    tests/labs/condor_lab.py 3      # brings up three machines, says how to enter them, and keeps them until Enter
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from machines import Lab, missing as nothing_for_machines, remove_cgroups, show, until  # noqa: E402

# Without intervals of minutes; four pretended cores. By default the machines' file systems count as different ones, so
# that HTCondor must copy what a job needs.
CONFIG = """
use ROLE: Execute
CONDOR_HOST = {network}.1
NETWORK_INTERFACE = {network}.{number}
UID_DOMAIN = lab
FILESYSTEM_DOMAIN = host{number}
TRUST_UID_DOMAIN = True
SOFT_UID_DOMAIN = True
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, CLAIMTOBE
SEC_DEFAULT_ENCRYPTION = OPTIONAL
SEC_DEFAULT_INTEGRITY = OPTIONAL
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
NUM_CPUS = 4
MEMORY = 2048
START = True
SUSPEND = False
PREEMPT = False
KILL = False
SCHEDD_INTERVAL = 2
PERIODIC_EXPR_INTERVAL = 2
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 2
SHADOW_QUEUE_UPDATE_INTERVAL = 2
UPDATE_INTERVAL = 2
RUNBENCHMARKS = 0
BASE_CGROUP =
"""
FIRST = """use ROLE: CentralManager
use ROLE: Submit
"""

INIT = """rm -f /etc/condor/config.d/*
cat > /etc/condor/config.d/lab <<'CONFIG'
{config}CONFIG
mkdir -p /run/condor /run/lock/condor
chown condor: /run/condor /run/lock/condor
{docker}condor_master -f &
sleep infinity & while :; do wait; done
"""

# HTCondor looks once for an engine, when it starts. Layers need a file system that is none of layers itself.
DOCKER = """mkdir -p /var/lib/docker
mount -t tmpfs lab /var/lib/docker
dockerd --iptables=false --ip6tables=false --bridge=none --cgroup-parent /{cgroup} --log-level warn &
until docker version; do sleep 0.1; done > /dev/null 2>&1
chmod 666 /run/docker.sock
"""


def root_folder():
    """The Debian that the machines run, made if it is not there yet."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pscloud-labs"
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / "condor-docker-root"
    with open(cache / "condor-docker-root.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            made = cache / "condor-docker-root.new"
            if made.exists():
                shutil.rmtree(made)
            make_root(made)
            made.rename(root)
    return root


def make_root(folder):
    print("condor_lab: makes a Debian 13 with HTCondor and Docker, once: two minutes", file=sys.stderr, flush=True)
    # With a mount name space of its own: what is mounted for apt is gone however this ends.
    script = """set -e
mount --make-rprivate /
debootstrap --variant=minbase --include=iproute2,procps,python3-minimal,ca-certificates trixie "$0" "$1"
printf '#!/bin/sh\\nexit 101\\n' > "$0/usr/sbin/policy-rc.d"
chmod +x "$0/usr/sbin/policy-rc.d"
mount -t proc proc "$0/proc"
chroot "$0" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends minicondor condor \\
  docker.io docker-cli
rm -rf "$0"/var/cache/apt/archives/*.deb "$0"/var/lib/apt/lists/*
"""
    subprocess.run(["unshare", "--mount", "sh", "-c", script, str(folder), mirror()], check=True,
                   stdout=subprocess.DEVNULL)


def mirror():
    """The one that this computer uses itself."""
    for source in pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"):
        for line in source.read_text().splitlines():
            if line.startswith("URIs:") and "debian" in line and "security" not in line:
                return line.split()[1]
    return "http://deb.debian.org/debian"


def missing():
    """Why there can be no lab here; None if there can."""
    return nothing_for_machines("debootstrap")


class CondorLab(Lab):
    """With `docker` each machine has an engine, for jobs that have an image."""

    def __init__(self, count=3, binds=None, docker=False):
        network = "10.79.0"
        self.cgroup = f"pscloud-condor-lab-{os.getpid()}" if docker else None

        def init(number):
            config = CONFIG.format(network=network, number=number) + (FIRST if number == 1 else "")
            return INIT.format(config=config, docker=DOCKER.format(cgroup=self.cgroup) if docker else "")
        if docker:
            binds = {"/sys/fs/cgroup": "/sys/fs/cgroup", **(binds or {})}
        super().__init__("condor", network, root_folder(), count, init, binds)
        try:
            until(lambda: self.ready() == count, lambda: f"pool of {count}: {self.logs()}")
        except BaseException:
            self.down()
            raise

    def ready(self):
        """How many machines take jobs; none before jobs can be given to them."""
        if self.first.run(["condor_q", "-totals"], check=False).returncode != 0:
            return 0
        return len(self.first.run(["condor_status", "-af", "Name"], check=False).stdout.split())

    def jobs(self):
        """Those in the queue, by name."""
        return self.first.run(["condor_q", "-allusers", "-af", "JobBatchName"]).stdout.split()

    def down(self):
        super().down()
        if self.cgroup:
            until(lambda: not remove_cgroups(self.cgroup), lambda: f"end of {remove_cgroups(self.cgroup)}")


if __name__ == "__main__":
    show(CondorLab, missing(), 3)
