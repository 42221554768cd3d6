"""Builds a Kubernetes for kube_lab.py from its published Go modules: kube_build.py FOLDER [PROGRAM...]. What is there
already is left alone. The first time takes about ten minutes of two cores and 3 GB of disk for sources and objects.

Needs a Go that is not older than Kubernetes wants; where there is none, or an old one, that of requirements-go.txt is
installed beside the programs.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
from environment import prepare  # noqa: E402

KUBERNETES = "1.34.4"
COREDNS = "1.14.0"
GO = (1, 24)
REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements-go.txt"

# Which package each program is, and of which module.
PROGRAMS = {name: ("k8s.io/kubernetes", f"k8s.io/kubernetes/cmd/{name}")
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
                         "kubectl")}
PROGRAMS["etcd"] = ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")
PROGRAMS["coredns"] = ("github.com/coredns/coredns", "lab")
VERSIONS = {"k8s.io/kubernetes": f"v{KUBERNETES}", "github.com/coredns/coredns": f"v{COREDNS}"}

# A CoreDNS with the plugins that the lab needs; the usual one has those of all clouds.
COREDNS_MAIN = """package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
"""


def missing_programs(folder):
    return [name for name in PROGRAMS if not (folder / name).exists()]


def find_go(folder):
    """A Go that is new enough."""
    found = shutil.which("go")
    if found:
        said = subprocess.run([found, "env", "GOVERSION"], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "GOTOOLCHAIN": "local"}).stdout
        version = re.match(r"go(\d+)\.(\d+)", said)
        if version and tuple(map(int, version.groups())) >= GO:
            return found
    try:
        return str(prepare(folder / "go", REQUIREMENTS).parent / "go")
    except subprocess.CalledProcessError as error:
        sys.exit(f"kube_build: wants Go {GO[0]}.{GO[1]} or later in PATH; "
                 f"{'that here is older' if found else 'there is none'}, and it could not be installed: {error}")


class Builder:
    def __init__(self, folder):
        self.folder = folder
        self.go = find_go(folder)
        # Pure Go: the programs run on any machine. The objects of the build are kept by Go itself.
        self.environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GO111MODULE": "on",
                            "GOWORK": "off", "GOFLAGS": "-modcacherw -buildvcs=false"}

    def run(self, *words, at):
        done = subprocess.run([self.go, *words], cwd=at, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"kube_build: go {' '.join(words)} failed:\n{done.stderr[-4000:]}")
        return done.stdout

    def source(self, module):
        """A module of our own that wants this one, as others do. Kubernetes itself cannot be installed as it is: it
        says that its parts are folders that only its repository has. They are published, too: 1.X.Y as 0.X.Y."""
        at = self.folder / "source" / module.rpartition("/")[2]
        at.mkdir(parents=True, exist_ok=True)
        if (at / "go.mod").exists():
            return at
        version = VERSIONS[module]
        there = pathlib.Path(json.loads(self.run("mod", "download", "-json", f"{module}@{version}", at=at))["Dir"])
        theirs = (there / "go.mod").read_text()
        parts = sorted(set(re.findall(r"^\s*(\S+) => \./staging/", theirs, re.MULTILINE)))
        settings = re.findall(r"^(?:go|godebug) .*$", theirs, re.MULTILINE)
        shutil.copyfile(there / "go.sum", at / "go.sum")
        if module.endswith("coredns"):
            (at / "main.go").write_text(COREDNS_MAIN)
        lines = ["module lab", *settings, f"require {module} {version}",
                 *[f"replace {part} => {part} {version.replace('v1.', 'v0.', 1)}" for part in parts]]
        (at / "go.mod").write_text("\n".join(lines) + "\n")
        return at

    def build(self, name):
        began = time.monotonic()
        module, package = PROGRAMS[name]
        numbers = KUBERNETES.split(".")
        of = "k8s.io/component-base/version"
        flags = f"-s -w -X {of}.gitVersion=v{KUBERNETES} -X {of}.gitMajor={numbers[0]} -X {of}.gitMinor={numbers[1]}"
        new = self.folder / f"{name}.new"
        self.run("build", "-mod=mod", "-ldflags", flags, "-o", str(new), package, at=self.source(module))
        new.rename(self.folder / name)
        print(f"built {name} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def build(folder, wanted=None):
    names = [name for name in missing_programs(folder) if not wanted or name in wanted]
    if not names:
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(f"building {', '.join(names)}; the first time this takes ten minutes", file=sys.stderr, flush=True)
    builder = Builder(folder)
    for name in names:
        builder.build(name)


if __name__ == "__main__":
    if len(sys.argv) < 2 or set(sys.argv[2:]) - set(PROGRAMS):
        sys.exit(f"usage: kube_build.py FOLDER [{'|'.join(PROGRAMS)}]...")
    build(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
