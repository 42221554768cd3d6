"""Launchers that are killed at every step of a run, on any kind of cluster, several runs at once. A moment is
- a number n: strace kills it when it is about to write its ledger or its state for the n-th time;
- ("sendto", n), or another call: when it is about to call that for the n-th time, such as a request to an engine;
- the name of a step that lasts: when state.json says it.
"""

import json
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "labs"))
from machines import until  # noqa: E402

SECONDS = 120
STEPS = ("planned", "starting", "waiting", "running", "stopping")
# A server that takes its time to stop, and a worker that takes its time to end.
SCRIPT = ('if [ "$PSCLOUD_ROLE" = server ]; then trap "sleep 1; exit 0" TERM; while :; do sleep 0.05; done; fi; '
          'echo works; sleep 2')


def missing():
    return None if shutil.which("strace") else "needs strace (tools/setup.sh test)"


def words_before(moment, folder, strace):
    """In front of the command line of a launcher whose run has this folder."""
    if isinstance(moment, str):
        return []
    call, number = ("write", moment) if isinstance(moment, int) else moment
    files = ["-P", f"{folder}/ledger.jsonl", "-P", f"{folder}/state.json.new"] if isinstance(moment, int) else []
    return [strace, "-qq", "-o", "/dev/null", *files, "-e", f"trace={call}", "-e",
            f"inject={call}:signal=KILL:when={number}"]


class KilledLaunchers:
    """For a test case that has `home`, where runs have their folders; pscloud(*words), which gives what it says;
    begin(name, before), which starts `before` and a launcher of one server and one worker, and gives its process;
    nothing_is_left(). The rest, and `strace`, is for those whose launchers run on another machine.
    """

    def run_of(self, name):
        """The folder of a run, as it is seen here."""
        return self.home / "runs" / name

    def run_there(self, name):
        """The same as the launcher sees it."""
        return self.run_of(name)

    def kill_process(self, pid):
        os.kill(int(pid), signal.SIGKILL)

    def status_of(self, name):
        return json.loads(self.pscloud("status", name, "--json"))

    def down(self):
        self.pscloud("down")

    def step_of(self, name):
        return json.loads((self.run_of(name) / "state.json").read_text())["state"]

    def things_of(self, name):
        """What the ledger still has."""
        things = set()
        path = self.run_of(name) / "ledger.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            things.add(entry["intend"]) if "intend" in entry else things.discard(entry.get("gone"))
        return len(things)

    def kill_at(self, *groups):
        """Each group of moments at once: a small cluster has no place for many jobs. All steps must be met."""
        met = set()
        for number, moments in enumerate(groups):
            met |= self.kill_group({f"killed-{number}-{n}": moment for n, moment in enumerate(moments)})
        self.assertEqual([step for step in STEPS if step not in met], [], "were not met")

    def kill_group(self, runs):
        strace = getattr(self, "strace", "strace")
        processes = {name: self.begin(name, words_before(moment, self.run_there(name), strace))
                     for name, moment in runs.items()}
        for name, moment in runs.items():
            if isinstance(moment, str):
                until(lambda: self.run_of(name).exists() and self.step_of(name) == moment, f"{name}: {moment}", SECONDS)
                self.kill_process((self.run_of(name) / "lock").read_text().split()[0])
        for process in processes.values():
            process.wait(SECONDS)
        # One that is killed before its folder has its name has made nothing.
        left = {name: self.step_of(name) for name in runs if self.run_of(name).exists()}
        for name, step in left.items():
            told = self.status_of(name)
            self.assertEqual(told["state"], "lost" if step in STEPS else step, name)
            self.assertEqual(told["things_left"], self.things_of(name), name)
        self.down()
        self.nothing_is_left()
        for name, step in left.items():
            told = self.status_of(name)
            self.assertEqual(told["state"], "lost" if step in STEPS else step, name)
            self.assertEqual(told["things_left"], 0, name)
        return set(left.values())
