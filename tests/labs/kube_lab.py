"""A real Kubernetes on one computer, for tests: host1 has etcd, the API server, its controllers, the scheduler and
CoreDNS, the others are nodes with containerd, runc, CNI's bridge and kube-proxy. Each is a machine of its own
(machines.py) over this computer's root. Needs root, the packages of `tools/setup.sh kubernetes`, and the programs that
kube_build.py makes (`make test-kubernetes`).

Who submits jobs is psuser on host1, by a token. He may do in the name space `team` what docs/kubernetes.md says that
one must be allowed to, and nothing else.

    tests/labs/kube_lab.py 2        # brings up two nodes, says how to enter them, and keeps them until Enter
"""

import base64
import hashlib
import io
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from certificates import make_certificates, openssl  # noqa: E402
from kube_build import missing_programs  # noqa: E402
from machines import Lab, missing as nothing_for_machines, remove_cgroups, show, until  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "build" / "kubernetes"
NETWORK = "10.81.0"    # of the machines
SERVICES = "10.83.0"   # of what kube-proxy leads elsewhere: .1 is the API
NAMESPACE = "team"
SERVER = f"https://{NETWORK}.1:6443"
CNI = "/usr/lib/cni"
SECONDS = 120

# docs/kubernetes.md, "Needed rights".
RIGHTS = [{"apiGroups": [""], "resources": ["services", "secrets"], "verbs": ["create", "list", "delete"]},
          {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["create", "list", "delete"]},
          {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "list", "delete"]},
          {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]},
          {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]

BEGIN = r"""
export PATH=/opt/kubernetes:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mkdir -p /shared/logs
start() { name=$1; shift; "$@" > /shared/logs/$(hostname)-$name.log 2>&1 & }
%(routes)s
"""
END = "sleep infinity & while :; do wait; done\n"

# A node that is silent is given up after 16 s in place of 50: it reports each two.
CONTROL = BEGIN + r"""
start etcd etcd --data-dir /var/lib/etcd --unsafe-no-fsync
start apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=%(address)s \
  --advertise-address=%(address)s --service-cluster-ip-range=%(services)s.0/24 --allow-privileged \
  --tls-cert-file=/etc/kubernetes/server.pem --tls-private-key-file=/etc/kubernetes/server.key \
  --client-ca-file=/etc/kubernetes/ca.pem --token-auth-file=/etc/kubernetes/tokens.csv --authorization-mode=Node,RBAC \
  --kubelet-client-certificate=/etc/kubernetes/client.pem --kubelet-client-key=/etc/kubernetes/client.key \
  --kubelet-preferred-address-types=InternalIP --service-account-issuer=https://lab \
  --service-account-key-file=/etc/kubernetes/accounts.pub \
  --service-account-signing-key-file=/etc/kubernetes/accounts.key
export KUBECONFIG=/etc/kubernetes/admin.conf
until kubectl get --raw /readyz > /dev/null 2>&1; do sleep 0.3; done
start controllers kube-controller-manager --kubeconfig=$KUBECONFIG --leader-elect=false \
  --service-account-private-key-file=/etc/kubernetes/accounts.key --root-ca-file=/etc/kubernetes/ca.pem \
  --node-monitor-grace-period=16s --node-monitor-period=2s
start scheduler kube-scheduler --kubeconfig=$KUBECONFIG --leader-elect=false
start coredns coredns -conf /etc/kubernetes/Corefile
""" + END

# The kernel has one setting of these for all: the kubelet finds what it would set in files. Layers lie in memory: an
# overlay cannot lie on another.
NODE = BEGIN + r"""
mknod /dev/kmsg c 1 11
for kind in /sys/fs/cgroup/*/; do mkdir -p $kind/%(cgroup)s/$(hostname); done
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/run/settings/${setting%%=*}; mkdir -p ${file%%/*}; echo ${setting#*=} > $file
  mount --bind $file /proc/sys/${setting%%=*}
done
echo 1 > /proc/sys/net/ipv4/ip_forward
for folder in /var/lib/containerd /var/lib/kubelet; do mkdir -p $folder; mount -t tmpfs -o size=2g lab $folder; done
mkdir -p /etc/containerd /etc/cni/net.d
cp /etc/kubernetes/containerd.toml /etc/containerd/config.toml
cp /etc/kubernetes/$(hostname).conflist /etc/cni/net.d/10-lab.conflist
start containerd containerd
until ctr version > /dev/null 2>&1; do sleep 0.1; done
ctr --namespace k8s.io images import /etc/kubernetes/pause.tar
start proxy kube-proxy --kubeconfig=/etc/kubernetes/admin.conf --proxy-mode=iptables --cluster-cidr=10.82.0.0/16 \
  --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
start kubelet kubelet --config=/etc/kubernetes/kubelet.json --kubeconfig=/etc/kubernetes/$(hostname).conf \
  --node-ip=%(address)s --cgroup-root=/%(cgroup)s/$(hostname)
""" + END

# Without CAP_SYS_RESOURCE, as in many a container, nobody may make himself harder to kill.
CONTAINERD = f"""version = 2
oom_score = 0
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "lab/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
"""
COREFILE = f""".:53 {{
  bind {NETWORK}.1
  kubernetes cluster.local {{
    kubeconfig /etc/kubernetes/admin.conf
  }}
  errors
}}
"""


def missing():
    """Why there can be no lab here; None if there can."""
    if missing_programs(PROGRAMS):
        return f"needs {missing_programs(PROGRAMS)[0]} (make test-kubernetes)"
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "knows cgroups of version 1 only"
    if not os.path.exists(f"{CNI}/bridge"):
        return "needs containernetworking-plugins (tools/setup.sh kubernetes)"
    return nothing_for_machines("containerd", "ctr", "runc", "iptables", "busybox", "openssl")


def add_file(archive, name, content, mode=0o644, **more):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    for field, value in more.items():
        setattr(entry, field, value)
    archive.addfile(entry, io.BytesIO(content))


def make_image(path, name, files, links=(), entrypoint=("/bin/busybox", "sleep", "infinity"), command=()):
    """An archive that engines load: busybox, for which `links` are more names, and files {path: text}."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        add_file(archive, "bin", b"", 0o755, type=tarfile.DIRTYPE)
        add_file(archive, "bin/busybox", pathlib.Path(shutil.which("busybox")).read_bytes(), 0o755)
        for link in links:
            add_file(archive, f"bin/{link}", b"", 0o777, type=tarfile.SYMTYPE, linkname="busybox")
        for file, text in files.items():
            add_file(archive, file, text.encode(), 0o755)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers",
                         "diff_ids": [f"sha256:{digest}"]}, "config": {"Entrypoint": list(entrypoint),
                         "Cmd": list(command), "Env": ["PATH=/bin"]}}).encode()
    identity = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{identity}.json", "RepoTags": [name], "Layers": [f"{digest}.tar"]}]
    with tarfile.open(path, "w") as archive:
        add_file(archive, f"{identity}.json", config)
        add_file(archive, f"{digest}.tar", layer.getvalue())
        add_file(archive, "manifest.json", json.dumps(manifest).encode())


class KubeLab(Lab):
    def __init__(self, nodes=2, binds=None):
        self.count = nodes + 1
        self.etc = pathlib.Path(tempfile.mkdtemp(prefix="pscloud-kube-lab-etc-"))
        try:
            super().__init__("kube", NETWORK, "/", self.count, self.init,
                             {PROGRAMS: "/opt/kubernetes", self.etc: "/etc/kubernetes",
                              "/sys/fs/cgroup": "/sys/fs/cgroup", **(binds or {})})
            self.up()
        except BaseException:
            if self.machines:
                print(self.logs(), file=sys.stderr)
                self.down()
            shutil.rmtree(self.etc, ignore_errors=True)
            raise

    @property
    def nodes(self):
        return self.machines[1:]

    # ---- before the machines boot

    def init(self, number):
        if number == 1:
            self.write_etc()
        routes = "\n".join(f"ip route add 10.82.{other}.0/24 via {self.address(other)}"
                           for other in range(2, self.count + 1) if other != number)
        script = CONTROL if number == 1 else NODE
        return script % {"address": self.address(number), "services": SERVICES, "routes": routes,
                         "cgroup": self.folder.name}

    def write_etc(self):
        make_certificates(self.etc, f"{NETWORK}.1", f"{SERVICES}.1")
        openssl("genrsa", "-out", self.etc / "accounts.key", 2048)
        openssl("rsa", "-in", self.etc / "accounts.key", "-pubout", "-out", self.etc / "accounts.pub")
        (self.etc / "containerd.toml").write_text(CONTAINERD)
        (self.etc / "Corefile").write_text(COREFILE)
        (self.etc / "kubelet.json").write_text(json.dumps(self.kubelet()))
        make_image(self.etc / "pause.tar", "lab/pause:1", {})
        self.add_user("admin", "admin", "system:masters")
        self.add_user("psuser", "psuser", namespace=NAMESPACE)
        for number in range(2, self.count + 1):
            self.add_user(f"system:node:host{number}", f"host{number}", "system:nodes")
            (self.etc / f"host{number}.conflist").write_text(json.dumps(
                {"cniVersion": "0.4.0", "name": "lab", "plugins": [
                    {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
                     "ipam": {"type": "host-local", "ranges": [[{"subnet": f"10.82.{number}.0/24"}]],
                              "routes": [{"dst": "0.0.0.0/0"}]}}]}))

    def add_user(self, user, file, group="", namespace="default"):
        """In the list of tokens, with a kubeconfig of his own."""
        token = secrets.token_hex(16)
        with open(self.etc / "tokens.csv", "a") as tokens:
            tokens.write(f'{token},{user},{user},"{group}"\n')
        authority = base64.b64encode((self.etc / "ca.pem").read_bytes()).decode()
        (self.etc / f"{file}.conf").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": namespace}}],
            "clusters": [{"name": "lab", "cluster": {"server": SERVER, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": token}}]}))

    def kubelet(self):
        """What is not as usual: nothing is kept for the node itself, and no disk is ever too full."""
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                                   "x509": {"clientCAFile": "/etc/kubernetes/ca.pem"}},
                "authorization": {"mode": "AlwaysAllow"},
                "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
                "cgroupDriver": "cgroupfs", "enforceNodeAllocatable": [], "failCgroupV1": False, "failSwapOn": False,
                "oomScoreAdj": 0,
                "makeIPTablesUtilChains": False, "localStorageCapacityIsolation": False, "resolvConf": "",
                "clusterDNS": [f"{NETWORK}.1"], "clusterDomain": "cluster.local",
                "nodeStatusUpdateFrequency": "2s", "nodeLeaseDurationSeconds": 8, "imageGCHighThresholdPercent": 100,
                "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                                 "imagefs.available": "0%"}}

    # ---- once they run

    def up(self):
        until(lambda: self.ready() == self.count - 1,
              lambda: f"Kubernetes: {self.kubectl('get', 'nodes', check=False)}", SECONDS)
        self.kubectl("create", "namespace", NAMESPACE)
        self.give_rights("jobs", RIGHTS, "--user=psuser")
        self.first.run(["sh", "-c", "install -D --owner=psuser --mode=600 /etc/kubernetes/psuser.conf "
                        "~psuser/.kube/config"], user=0)
        # Whatever comes with each name space: an account for pods, and the certificate of the API.
        until(lambda: len(self.objects()) == 4, lambda: f"name space: {self.objects()}", SECONDS)
        self.empty = self.objects()

    def kubectl(self, *words, check=True, given=""):
        """By somebody who may do everything."""
        command = self.first.command(["kubectl", "--namespace", NAMESPACE, *words], user=0, variables={
            "KUBECONFIG": "/etc/kubernetes/admin.conf", "PATH": "/opt/kubernetes:/usr/bin:/bin", "HOME": "/root"})
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {words}: {done.stderr}")
        return done.stdout

    def give_rights(self, name, rules, whom):
        """In the name space, to `whom`, as kubectl says it."""
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
                "rules": rules}
        self.kubectl("create", "--filename", "-", given=json.dumps(role))
        self.kubectl("create", "rolebinding", name, f"--role={name}", whom)

    def ready(self):
        return self.kubectl("get", "nodes", "--no-headers", check=False).split().count("Ready")

    def objects(self):
        """All of the name space but what is only told about it, as KIND/NAME."""
        kinds = getattr(self, "kinds", None)
        if kinds is None:
            listed = self.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
            kinds = self.kinds = ",".join(kind for kind in listed if not kind.startswith("events"))
        return sorted(self.kubectl("get", kinds, "--output=name").split())

    def left(self):
        """What was not there at the beginning."""
        return sorted(set(self.objects()) - set(self.empty))

    def containers(self, machine):
        """Those that run on a node, with those that hold a pod's network."""
        return machine.run(["ctr", "--namespace", "k8s.io", "tasks", "list", "--quiet"], user=0).stdout.split()

    def load(self, archive):
        """An image for all nodes; the archive lies in the folder that they share."""
        for node in self.nodes:
            node.run(["ctr", "--namespace", "k8s.io", "images", "import",
                      f"/shared/{archive.relative_to(self.shared)}"], user=0)

    def logs(self):
        """The last that each program has said."""
        files = sorted((self.shared / "logs").glob("*.log"))
        return super().logs() + "".join(f"\n{path.stem}:\n{path.read_text(errors='replace')[-3000:]}"
                                        for path in files)

    def down(self):
        for machine in self.machines:
            machine.process.kill()
        until(lambda: not remove_cgroups(self.folder.name), lambda: f"end of {remove_cgroups(self.folder.name)}")
        super().down()
        shutil.rmtree(self.etc, ignore_errors=True)


if __name__ == "__main__":
    show(KubeLab, missing(), 2)
