"""Made-up runs for the page's tests: some that live, one that failed, one whose names and lines are hostile, one that
floods, and a long history. Everything is derived from a formula, so that tests know what must be seen."""

import math
import threading
import time

STEP_MS = 2000  # between samples, as of a real agent
HOSTILE = '<img src=x onerror="window.pwned=1">'
HOSTILE_LINES = (
    HOSTILE,
    "<script>window.pwned=1</script>",
    "</span></div><style>*{display:none}</style>",
    "javascript:window.pwned=1 {{constructor.constructor('window.pwned=1')()}}",
    "safe \u202eesrever si siht\u202c \x1b[31mred\x1b[0m bell\x07 nul\x00 end\r",
    "\ud83d\ude00 \u6f22\u5b57 \u0639\u0631\u0628\u064a tab\there " + "long " * 4000,
)


def now_ms():
    return int(time.time() * 1000)


class Run:
    """`roles` is {"worker": 4}; a run that lives grows by advance()."""

    def __init__(self, name, roles, state="running", where="local", age_s=600, framework="pscloud", message="",
                 cause=None, cost=None, lines_per_s=3, drained=None):
        self.name, self.state, self.where, self.framework = name, state, where, framework
        self.drained = drained  # a task whose machine was taken away
        self.message, self.cause, self.cost, self.lines_per_s = message, cause, cost, lines_per_s
        self.since = now_ms() - age_s * 1000
        self.ended = None if state in ("running", "waiting", "starting") else self.since + age_s * 700
        self.tasks = [(role, i) for role, count in roles.items() for i in range(count)]
        self.logs = {task: bytearray() for task in [*map("{0[0]}-{0[1]}".format, self.tasks), "launcher"]}
        self.samples = []
        self.version = 0
        self.written = 0
        self.sampled = self.since
        self.flood_from = time.monotonic()

    def task_state(self, name):
        if name == self.cause:
            return "failed"
        if self.state == "waiting" and name.endswith(("4", "7")):
            return "planned"
        if name == self.drained:
            return "drained"
        states = {"running": "running", "waiting": "arrived", "done": "done", "stopping": "running"}
        return states.get(self.state, "stopped")

    def sample_until(self, until):
        """All figures up to a time."""
        while self.sampled + STEP_MS <= until:
            self.sampled += STEP_MS
            t = (self.sampled - self.since) / 1000
            for role, i in self.tasks:
                told = figures(role, i, t)
                self.samples += [[self.sampled, f"{role}-{i}", name, value] for name, value in told.items()]

    def say(self, task, *lines):
        self.logs[task] += "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")

    def advance(self):
        """To now: lines at a steady rate, samples, and the end of what was asked to stop."""
        if self.state == "stopping" and now_ms() - self.stop_asked > 700:
            self.state, self.ended, self.message = "interrupted", now_ms(), "stopped by its user"
            self.version += 1
        if self.state != "running":
            return
        self.sample_until(now_ms())
        wanted = int((time.monotonic() - self.flood_from) * self.lines_per_s)
        stamp = time.strftime("%H:%M:%S", time.localtime())
        for number in range(self.written, wanted):
            role, i = self.tasks[number % len(self.tasks)]
            self.say(f"{role}-{i}", log_line(role, i, number, f"{stamp}.{number % 1000:03}"))
        self.written = max(wanted, self.written)

    def stop(self):
        self.state, self.stop_asked = "stopping", now_ms()
        self.version += 1

    def brief(self):
        return {"name": self.name, "where": self.where, "state": self.state, "nodes": len(self.tasks),
                "since_unix_ms": self.since, "ended_unix_ms": self.ended, "waiting_for": self.waiting(),
                "cost_usd": self.spent()}

    def waiting(self):
        return self.message if self.state in ("waiting", "starting") else ""

    def spent(self):
        return None if self.cost is None else round(self.cost * ((self.ended or now_ms()) - self.since) / 3.6e6, 4)

    def full(self):
        last = {}
        for t, task, name, value in self.samples[-30 * len(self.tasks):]:
            last.setdefault(task, {})["unix_ms"] = t
            last[task][name] = value
        tasks = []
        for role, i in self.tasks:
            name = f"{role}-{i}"
            tasks.append({"task": name, "role": role, "index": i, "host": f"host{i % 4 + 1}",
                          "address": f"10.0.0.{i + 1}:5000", "state": self.task_state(name),
                          "code": 137 if name == self.cause else None, "log_bytes": len(self.logs[name]),
                          "sample": last.get(name)})
        return {**self.brief(), "framework": self.framework, "message": self.message, "root_cause": self.cause,
                "cost_usd_per_hour": self.cost, "tasks": tasks}

    def nodes(self):
        """The last status of each node. Keys have 64 bits."""
        status = {}
        for role, i in self.tasks:
            status[f"{role}-{i}"] = {"waiting_for": ["server-1"] if (role, i) == ("worker", 2) else []}
            if role == "server":
                keys = [[(1 << 63) + 977 * k + i, 90000 // (k + 1 + i)] for k in range(6)]
                status[f"server-{i}"]["hot_keys"] = keys
        return status


def figures(role, i, t):
    """What a node tells at second t of its run."""
    wave = math.sin(t / 17 + i) + 0.6 * math.sin(t / 5.3 + 2 * i) + 0.4 * math.sin(t * 1.9 + i)
    told = {"cpu_percent": {"worker": 92, "server": 55}.get(role, 9) + 4 * wave,
            "memory_bytes": {"worker": 6e8, "server": 2.2e9}.get(role, 4e7) + 2e5 * t,
            "sent_bytes": 8e6 * t + 3e6 * math.sin(t / 20 + i), "received_bytes": 6e6 * t + 3e6 * math.sin(t / 16),
            "heartbeat_age_ms": 300 + 200 * math.sin(t + i)}
    if role == "worker":
        told |= {"loss": 0.40 + 0.29 * math.exp(-t / 150) + 0.004 * wave,
                 "auc": 0.79 - 0.24 * math.exp(-t / 120) + 0.002 * wave,
                 "examples_per_s": 52000 + 2500 * wave + 900 * i,
                 "staleness": max(0, round(1.4 + math.sin(t / 40 + i))),
                 "staleness_max": max(0, round(1.4 + math.sin(t / 40 + i)))}
    if role == "server":
        told |= {"push_ms_p50": 0.9 + 0.1 * wave, "push_ms_p99": 4.1 + wave + (12 if int(t / 2) % 90 == 44 else 0),
                 "pull_ms_p50": 0.7 + 0.1 * wave, "pull_ms_p99": 3.0 + 0.7 * wave,
                 "push_bytes": 21e6 * t + 2e6 * math.sin(t / 9), "pull_bytes": 34e6 * t + 3e6 * math.sin(t / 11),
                 "keys": 1.8e6 * (1 - math.exp(-t / 200)) + 1000 * i, "requests": (2100 + 340 * i) * t}
    return told


def log_line(role, i, number, stamp):
    if number % 97 == 13:
        return f"{stamp} W {role} {i}: line {number}, server 1 answers slowly, 212 ms for a pull of 1,024 keys"
    return f"{stamp} I {role} {i}: line {number}, pass 3, part {number % 64}, loss {0.4 + 0.1 / (1 + number % 50):.4f}"


class World:
    """All runs, newest first, and a thread that lets them live."""

    def __init__(self, history=200, flood_lines_per_s=1000):
        self.lock = threading.Lock()
        self.token = "made-up-token"
        self.posts = []
        cluster = {"scheduler": 1, "server": 2, "worker": 4}
        wide = {"server": 4, "worker": 16}
        runs = [
            Run("ctr-ftrl", cluster, where="local", lines_per_s=10),
            Run("criteo-fm", {"scheduler": 1, "server": 3, "worker": 8}, where="ec2 us-west-2, 6 c6i.2xlarge",
                age_s=5400, cost=2.04, drained="worker-2"),
            Run("stop-me", cluster),
            Run("wide-and-deep", {"server": 2, "chief": 1, "worker": 8}, state="waiting", where="kubernetes", age_s=41,
                framework="tensorflow", message="9 of 11 have arrived; missing: worker-4, worker-7"),
            Run("flood", wide, where="ssh, 4 hosts", age_s=20, lines_per_s=flood_lines_per_s),
            Run(HOSTILE, cluster, where=HOSTILE, age_s=30, message=HOSTILE),
            Run("rcv1-darlin", cluster, state="failed", age_s=900, where="slurm", cause="worker-1",
                message="worker-1 on host2 was killed by signal 9 after 10 m 30 s; the others were stopped"),
        ]
        for i in range(history):
            state = "done" if i % 7 else ("failed" if i % 2 else "interrupted")
            runs.append(Run(f"night-{history - i:05}", cluster, state=state, age_s=3600 * (i + 1),
                            cause="worker-0" if state == "failed" else None,
                            where=("local", "ssh, 4 hosts", "slurm", "swarm")[i % 4],
                            message="" if state == "done" else "it ended early"))
        self.runs = {run.name: run for run in runs}
        self.failed = self.runs["rcv1-darlin"]
        self.failed.sample_until(self.failed.ended)
        self.failed.say("worker-1", *(log_line("worker", 1, n, "09:14:01.000") for n in range(3000)),
                        "09:14:02.113 W worker 1: 96% of memory is used",
                        "terminate called after throwing 'std::bad_alloc'", "Killed")
        for run in runs[:2]:
            run.say("launcher", f"all {len(run.tasks)} nodes have arrived", "released")
            run.sample_until(now_ms())
        self.runs[HOSTILE].say("worker-0", *HOSTILE_LINES)
        threading.Thread(target=self.live, daemon=True).start()

    def live(self):
        while True:
            time.sleep(0.05)
            with self.lock:
                for run in list(self.runs.values())[:7]:
                    run.advance()
