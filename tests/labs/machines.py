"""Machines of their own on one computer, for the labs of clusters: each has network, process, mount, host name and IPC
name spaces, and a root that is a layer of memory over a folder that all share. They are plugged into a switch that is
in a name space too, so that nothing of the computer itself is touched, and the kernel ends everything with the process
that made them, however that dies. Starting one takes a tenth of a second. Needs root and iproute2.
"""

import ctypes
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 60  # for anything to happen
USER = 1234   # who submits jobs; no cluster runs them as root

# Runs in the new name spaces. Its stdin's first line says that the machine has its link. The last step stays process 1
# of the machine, a shell: one that changed its user id would outlive its parent.
BOOT = r"""
set -e
hostname "$NAME"
mount --make-rprivate /
mount -t tmpfs -o size=2g lab "$DATA"
mkdir "$DATA/upper" "$DATA/work" "$DATA/root"
mount -t overlay lab -o "lowerdir=$LOWER,upperdir=$DATA/upper,workdir=$DATA/work" "$DATA/root"
R=$DATA/root
mount -t proc proc $R/proc
mount -t sysfs sysfs $R/sys
mount -t tmpfs -o mode=1777 lab $R/tmp
mkdir -p $R/var/tmp
mount -t tmpfs -o mode=1777 lab $R/var/tmp
mount -t tmpfs lab $R/run
mount -t tmpfs lab $R/dev
for node in null zero full random urandom tty; do : > $R/dev/$node; mount --bind /dev/$node $R/dev/$node; done
mkdir -p $R/dev/shm $R/dev/pts $R/run/lock
mount -t tmpfs -o mode=1777 lab $R/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts $R/dev/pts
ln -s pts/ptmx $R/dev/ptmx
ln -s /proc/self/fd $R/dev/fd
mkdir -p $R/shared
mount --bind "$SHARED" $R/shared
while [ $# -gt 0 ]; do mkdir -p "$R$2"; mount --rbind "$1" "$R$2"; shift 2; done
echo "$NAME" > $R/etc/hostname
printf '%s' "$HOSTS" > $R/etc/hosts
echo "nameserver 127.0.0.1" > $R/etc/resolv.conf
grep -q '^psuser:' $R/etc/passwd || { echo "psuser:x:$USER_ID:$USER_ID::/home/psuser:/bin/bash" >> $R/etc/passwd
  echo "psuser:x:$USER_ID:" >> $R/etc/group; }
mkdir -p $R/home/psuser; chown $USER_ID:$USER_ID $R/home/psuser
read -r go
ip link set lo up
ip addr add "$ADDRESS/$PREFIX" dev eth0
ip link set eth0 up
cp "$DATA.init" $R/lab-init
exec chroot $R /bin/sh /lab-init
"""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def until(condition, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what() if callable(what) else what} within {seconds} s")
        time.sleep(0.05)
    return result


def remove_cgroups(name):
    """Those below /name of each kind, which engines make and leave; the ones that are still in use."""
    left = []
    for top in pathlib.Path("/sys/fs/cgroup").glob(f"*/{name}"):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                left.append(folder)
    return left


def missing(*programs):
    """Why there can be no lab here; None if there can."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("ip", "unshare", "nsenter", "setpriv", *programs):
        if not shutil.which(program):
            return f"needs {program} (tools/setup.sh labs)"
    return None


class Machine:
    """`init` is a script for its shell; it must end with `wait`, or it ends the machine."""

    def __init__(self, lab, number, init, name=None):
        self.name = name or f"host{number}"
        self.address = lab.address(number)
        self.log_path = lab.folder / f"{self.name}.log"
        data = lab.folder / self.name
        data.mkdir()
        pathlib.Path(f"{data}.init").write_text(init)
        variables = {"NAME": self.name, "DATA": data, "LOWER": lab.lower, "SHARED": lab.shared,
                     "ADDRESS": self.address, "PREFIX": lab.prefix, "HOSTS": lab.hosts, "USER_ID": USER}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", BOOT,
                 "boot", *[str(path) for pair in lab.binds.items() for path in pair]],
                stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=die_with_parent, start_new_session=True,
                env={"PATH": os.environ["PATH"], **{name: str(value) for name, value in variables.items()}})

    def first_process(self):
        """Process 1 of the machine, as this computer calls it; None before there is one and after a power cut."""
        try:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:
            return None
        return children[0] if children else None

    def link(self, switch, number):
        """A cable from the switch to this machine, which may go on then."""
        first = until(self.first_process, f"process 1 of {self.name}")
        inside = ["nsenter", f"--net=/proc/{switch}/ns/net"]
        subprocess.run([*inside, "ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0",
                        "netns", first], check=True)
        subprocess.run([*inside, "ip", "link", "set", f"port{number}", "master", "bridge0", "up"], check=True)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def command(self, words, user=USER, variables=None, folder="/shared"):
        """The command line, for this computer, that runs `words` there."""
        environment = {"HOME": "/home/psuser", "USER": "psuser", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "LANG": "C.UTF-8", **(variables or {})}
        return ["nsenter", "--target", self.first_process() or "0", "--all", "--root", "setpriv",
                f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", "-i", f"--chdir={folder}",
                *[f"{name}={value}" for name, value in environment.items()], *map(str, words)]

    def run(self, words, check=True, seconds=SECONDS, **options):
        done = subprocess.run(self.command(words, **options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=seconds)
        if check and done.returncode != 0:
            raise RuntimeError(f"{words} on {self.name} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def processes(self, user=USER):
        """The command lines of the processes of a user."""
        listed = self.run(["ps", "-U", str(user), "-o", "args=", "-ww"], check=False, user=0).stdout.splitlines()
        return [line for line in listed if line.strip()]

    def pull_plug(self):
        """A power cut: all its processes at once."""
        self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")


class Lab:
    """`count` machines over the folder `lower`, numbered from 1, with /shared in common; binds: {here: there}."""

    prefix = 24  # bits that the addresses of the network have in common

    def __init__(self, name, network, lower, count, inits, binds=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"pscloud-{name}-lab-"))
        self.network = network
        self.lower = lower
        self.binds = binds or {}
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self.folder.chmod(0o755)
        self.hosts = "127.0.0.1 localhost\n" + "".join(f"{self.address(n)} host{n}\n" for n in range(1, count + 1))
        self.machines = []
        self.switch = None
        try:
            self.switch = subprocess.Popen(
                ["unshare", "--net", "--fork", "--kill-child", "sh", "-c",
                 "ip link add bridge0 type bridge && ip link set bridge0 up && echo up && exec sleep infinity"],
                stdout=subprocess.PIPE, preexec_fn=die_with_parent, start_new_session=True)
            self.machines = [Machine(self, number, inits(number)) for number in range(1, count + 1)]
            if self.switch.stdout.readline() != b"up\n":
                raise RuntimeError("no bridge")
            for number, machine in enumerate(self.machines, 1):
                machine.link(self.switch.pid, number)
        except BaseException:
            self.down()
            raise

    def address(self, number):
        return f"{self.network}.{number}"

    @property
    def first(self):
        return self.machines[0]

    def logs(self):
        return "\n".join(f"{machine.name}: {machine.log()}" for machine in self.machines)

    def down(self):
        for machine in self.machines:
            machine.process.kill()
            machine.process.wait()
            machine.process.stdin.close()
        if self.switch:
            self.switch.kill()
            self.switch.wait()
            self.switch.stdout.close()
        shutil.rmtree(self.folder)


def show(make, why_not, count):
    """A lab's own main: brings it up, says how to enter its machines, and keeps it until Enter."""
    name = pathlib.Path(sys.argv[0]).stem
    if why_not:
        sys.exit(f"{name}: {why_not}")
    lab = make(int(sys.argv[1]) if len(sys.argv) > 1 else count)
    try:
        for one in lab.machines:
            print(f"{one.name}: {shlex.join(one.command(['bash']))}", flush=True)
        input("Enter ends it\n")
    finally:
        lab.down()
