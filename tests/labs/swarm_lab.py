"""A Docker Swarm of real engines on one machine, for tests: each node is a dockerd in network, process, mount and host
name spaces of its own. Needs root, docker.io and iproute2 (tools/setup.sh labs).

Nothing of the machine itself is touched: the nodes' network is a bridge in yet another name space, images, layers and
/run lie on a tmpfs of the node's, and the kernel ends everything with the process that made the lab, however that dies.
What can stay behind is a few empty cgroups, which down() removes.

    tests/labs/swarm_lab.py 2        # brings up a swarm of two, says where, and keeps it until Enter
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from certificates import make_certificates
from machines import SECONDS, die_with_parent, missing as nothing_for_machines, remove_cgroups, until

NETWORK = "10.77.0"
# One page on the command line; every step must work. The first line of stdin says that the node has its link.
NODE = r"""
set -e
hostname "$NAME"
mount -t tmpfs -o size=4g lab "$DATA"
mkdir "$DATA/root" "$DATA/exec"
# No resolver and no route: a pull fails at once, and the lab cannot reach outside.
echo "nameserver 127.0.0.1" > "$DATA/resolv.conf"
mount --bind "$DATA/resolv.conf" /etc/resolv.conf
mount -t tmpfs lab /run
read -r go
ip link set lo up
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up
exec dockerd --data-root "$DATA/root" --exec-root "$DATA/exec" --pidfile "$DATA/pid" --host "unix://$SOCKET" \
  --host unix:///var/run/docker.sock \
  --storage-driver overlay2 --cgroup-parent "/$CGROUP" --log-level warn --shutdown-timeout 1 \
  $TLS --bip "172.2$NUMBER.0.1/24" --default-address-pool "base=172.3$NUMBER.0.0/16,size=24"
"""


def missing():
    """Why there can be no lab here; None if there can."""
    return nothing_for_machines("dockerd", "docker", "runc")


class Node:
    def __init__(self, lab, number):
        self.name = f"node{number}"
        self.address = f"{NETWORK}.{number}"
        self.folder = lab.folder / self.name
        self.socket = self.folder / "docker.sock"
        self.host = f"unix://{self.socket}"
        self.log_path = self.folder / "dockerd.log"
        data = self.folder / "data"
        data.mkdir(parents=True)
        variables = {"NAME": self.name, "DATA": data, "SOCKET": self.socket, "ADDRESS": self.address,
                     "CGROUP": lab.cgroup, "NUMBER": number, "DOCKER_SERVICE_PREFER_OFFLINE_IMAGE": 1, "TLS": ""}
        if number == 1:
            tls = lab.certificates
            variables["TLS"] = (f"--host tcp://{self.address}:2376 --tlsverify --tlscacert {tls}/ca.pem "
                                f"--tlscert {tls}/server.pem --tlskey {tls}/server.key")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
                 "sh", "-c", NODE],
                stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=die_with_parent, start_new_session=True,
                env={**os.environ, **{name: str(value) for name, value in variables.items()}})

    def enter(self):
        """The beginning of a command line that runs in the network of this node."""
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]

    def link(self, switch, number):
        """A cable from the switch to this node, which may go on then."""
        mine = os.stat("/proc/self/ns/net").st_ino
        until(lambda: os.stat(f"/proc/{self.process.pid}/ns/net").st_ino != mine, "network of the node")
        inside = ["nsenter", f"--net=/proc/{switch}/ns/net"]
        subprocess.run([*inside, "ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0",
                        "netns", str(self.process.pid)], check=True)
        subprocess.run([*inside, "ip", "link", "set", f"port{number}", "master", "bridge0", "up"], check=True)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def docker(self, *arguments, check=True, **options):
        result = subprocess.run(["docker", "--host", self.host, *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=SECONDS, **options)
        if check and result.returncode != 0:
            raise RuntimeError(f"docker {arguments} on {self.name}: {result.stderr}")
        return result.stdout.strip()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def pull_plug(self):
        """The power cut of this node: all its processes at once."""
        self.process.kill()
        self.process.wait()


class SwarmLab:
    def __init__(self, nodes=2):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-swarm-lab-"))
        self.cgroup = self.folder.name
        # The manager also listens by TLS. This folder is one for DOCKER_CERT_PATH, too.
        self.certificates = self.folder / "certificates"
        self.certificates.mkdir()
        make_certificates(self.certificates, f"{NETWORK}.1")
        for kind, end in (("cert", "pem"), ("key", "key")):
            (self.certificates / f"{kind}.pem").symlink_to(f"client.{end}")
        self.nodes = []
        self.switch = None
        try:
            self.up(nodes)
        except BaseException:
            for node in self.nodes:
                print(node.log(), file=sys.stderr)
            self.down()
            raise

    @property
    def manager(self):
        return self.nodes[0]

    def up(self, count):
        self.switch = subprocess.Popen(
            ["unshare", "--net", "--fork", "--kill-child", "sh", "-c",
             "ip link add bridge0 type bridge && ip link set bridge0 up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE, preexec_fn=die_with_parent, start_new_session=True)
        self.nodes = [Node(self, number) for number in range(1, count + 1)]
        if self.switch.stdout.readline() != b"up\n":
            raise RuntimeError("no bridge")
        for number, node in enumerate(self.nodes, 1):
            node.link(self.switch.pid, number)
        for node in self.nodes:
            until(lambda node=node: self.answers(node), lambda node=node: f"engine on {node.name}: {node.log()}")
        self.manager.docker("swarm", "init", "--advertise-addr", self.manager.address, "--default-addr-pool",
                            "10.90.0.0/16")
        token = self.manager.docker("swarm", "join-token", "--quiet", "worker")
        for node in self.nodes[1:]:
            node.docker("swarm", "join", "--token", token, "--advertise-addr", node.address,
                        f"{self.manager.address}:2377")
        until(lambda: self.ready() == count, "swarm of all nodes")

    @staticmethod
    def answers(node):
        if node.process.poll() is not None:
            raise RuntimeError(f"the engine of {node.name} ended: {node.log()}")
        return node.socket.exists() and node.docker("version", check=False) != ""

    def ready(self):
        lines = self.manager.docker("node", "ls", "--format", "{{json .}}").splitlines()
        return sum(json.loads(line)["Status"] == "Ready" for line in lines)

    def load(self, archive):
        """An image (a docker-archive) for all nodes."""
        for node in self.nodes:
            node.docker("load", "--input", archive)

    def down(self):
        for node in self.nodes:
            node.process.kill()
            node.process.wait()
            node.process.stdin.close()
        if self.switch:
            self.switch.kill()
            self.switch.wait()
            self.switch.stdout.close()
        # The processes of a name space are gone when its first one is; the kernel may take a moment for the cgroups.
        until(lambda: not remove_cgroups(self.cgroup), lambda: f"end of {remove_cgroups(self.cgroup)}")
        shutil.rmtree(self.folder)


if __name__ == "__main__":
    if missing():
        sys.exit(f"swarm_lab: {missing()}")
    lab = SwarmLab(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    try:
        for one in lab.nodes:
            print(f"{one.name} {one.address} DOCKER_HOST={one.host} # pid {one.process.pid}", flush=True)
        input("Enter ends it\n")
    finally:
        lab.down()
