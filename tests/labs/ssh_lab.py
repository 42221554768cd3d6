"""Hosts that are reached by ssh, for tests: each is a machine of its own (machines.py) with a real sshd, an empty home
and without libraries that this project needs. Needs root and openssh-server (tools/setup.sh labs).

    tests/labs/ssh_lab.py 4        # brings up four, says how to reach them, and keeps them until Enter

A launcher runs in the switch's network name space, at .254 of the hosts' network, and sees the computer's own files.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import machines  # noqa: E402

NETWORK = "10.78.0"
USER = "psuser"  # of machines.py
HOME = "home/psuser"

# sshd's limits are its own: 10 sessions for a connection, and 10 logins at once.
INIT = r"""
mkdir -p /run/sshd /%(home)s/.ssh
cp /shared/id.pub /%(home)s/.ssh/authorized_keys
chmod 700 /%(home)s/.ssh
chown -R %(user)s:%(user)s /%(home)s
for library in fmt spdlog protobuf curl; do rm -f /usr/lib/*/lib$library.so*; done
/usr/sbin/sshd -D -e -f /shared/host%(number)s.conf &
wait
"""

CONFIG = """Port 22
HostKey /shared/host{number}.key
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
"""


def missing():
    if not os.path.exists("/usr/sbin/sshd"):
        return "needs sshd (tools/setup.sh labs)"
    return machines.missing("ssh", "ssh-keygen")


class SshLab(machines.Lab):
    """Hosts 10.78.0.1 and on; `ssh -F lab.ssh_config 10.78.0.1` reaches one from the switch."""

    def __init__(self, count, network=NETWORK, binds=None):
        self.folder = None
        super().__init__("ssh", network, "/", 0, None)
        try:
            self.make_keys(count)
            # A folder that is there under one name, as those of a file server are.
            self.common = self.folder / "common"
            self.common.mkdir()
            self.common.chmod(0o1777)
            self.binds = {self.common: self.common, **(binds or {})}
            self.hosts = "127.0.0.1 localhost\n" + "".join(f"{self.address(n)} host{n}\n" for n in range(1, count + 1))
            self.machines = [machines.Machine(self, number, self.init(number)) for number in range(1, count + 1)]
            for number, machine in enumerate(self.machines, 1):
                machine.link(self.switch.pid, number)
            self.outside("ip", "link", "set", "lo", "up")
            self.outside("ip", "addr", "add", f"{self.network}.254/24", "dev", "bridge0")
            for machine in self.machines:
                machines.until(lambda: self.answers(machine), lambda: f"sshd of {machine.name}: {machine.log()}")
        except BaseException:
            self.down()
            raise

    def make_keys(self, count):
        self.ssh_config = self.folder / "ssh_config"
        self.known_hosts = self.folder / "known_hosts"
        self.key = self.folder / "id"
        known = []
        for path in (self.key, *(self.shared / f"host{n}.key" for n in range(1, count + 1))):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", path], check=True)
        for number in range(1, count + 1):
            (self.shared / f"host{number}.conf").write_text(CONFIG.format(number=number))
            known.append(f"{self.address(number)} {(self.shared / f'host{number}.key.pub').read_text()}")
        (self.shared / "id.pub").write_text((self.folder / "id.pub").read_text())
        self.known_hosts.write_text("".join(known))
        self.ssh_config.write_text(f"User {USER}\nIdentityFile {self.key}\nIdentitiesOnly yes\n"
                                   f"UserKnownHostsFile {self.known_hosts}\n")

    @staticmethod
    def init(number):
        return INIT % {"number": number, "home": HOME, "user": machines.USER}

    def outside_command(self, *words):
        """The command line of a program of this computer that sees the hosts' network."""
        return ["nsenter", f"--net=/proc/{self.switch.pid}/ns/net", *map(str, words)]

    def outside(self, *words, **options):
        return subprocess.run(self.outside_command(*words), check=True, **options)

    def answers(self, machine):
        done = subprocess.run(self.outside_command("ssh", "-F", self.ssh_config, "-o", "BatchMode=yes", "-o",
                                                   "ConnectTimeout=1", machine.address, "true"), capture_output=True)
        return done.returncode == 0

    def cut_off(self, machine):
        self.outside("ip", "link", "set", f"port{machine.name.removeprefix('host')}", "down")

    def plug_in(self, machine):
        self.outside("ip", "link", "set", f"port{machine.name.removeprefix('host')}", "up")

    def root_of(self, machine):
        """Its files, as this computer sees them."""
        return pathlib.Path(f"/proc/{machine.first_process()}/root")

    def processes_of(self, machine):
        """(command line, environment) by process id, of all that run there."""
        space = os.readlink(f"/proc/{machine.first_process()}/ns/pid")
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "ns/pid") == space:
                    found[int(process.name)] = ((process / "cmdline").read_bytes().decode(errors="replace"),
                                                (process / "environ").read_bytes().decode(errors="replace"))
            except OSError:
                pass
        return found

    def cluster_file(self, path, **more):
        """Writes a cluster file of all hosts."""
        cluster = {"hosts": [{"address": machine.address, "name": machine.name} for machine in self.machines],
                   "options": {"ssh_config": str(self.ssh_config)}}
        cluster.update(more)
        pathlib.Path(path).write_text(json.dumps(cluster))
        return path


def main():
    if missing():
        sys.exit(f"ssh_lab: {missing()}")
    lab = SshLab(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    try:
        print("up:", *[machine.address for machine in lab.machines])
        print(*lab.outside_command("ssh", "-F", lab.ssh_config, lab.first.address))
        input("Enter ends it ")
    finally:
        lab.down()


if __name__ == "__main__":
    main()
