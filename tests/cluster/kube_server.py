"""An API server of Kubernetes for tests, and the nodes behind it: as much as a job of ours needs, and strict. What is
sent must have the fields that the real one demands, and none that are not known here. Pods run as processes of this
machine: their `args`, with variables as Kubernetes expands them, and secrets as files below a folder of the pod's own.
"""

import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse

KINDS = {"services": ("v1", "Service"), "secrets": ("v1", "Secret"), "pods": ("v1", "Pod"),
         "statefulsets": ("apps/v1", "StatefulSet"), "jobs": ("batch/v1", "Job")}
APIS = {"services": "/api/v1", "secrets": "/api/v1", "pods": "/api/v1", "statefulsets": "/apis/apps/v1",
        "jobs": "/apis/batch/v1"}
POD = {"restartPolicy", "subdomain", "automountServiceAccountToken", "enableServiceLinks", "securityContext",
       "terminationGracePeriodSeconds", "containers", "volumes"}
SPECS = {
    "services": {"clusterIP", "publishNotReadyAddresses", "selector", "ports"},
    "statefulsets": {"serviceName", "replicas", "podManagementPolicy", "selector", "template"},
    "jobs": {"completionMode", "completions", "parallelism", "backoffLimitPerIndex", "podReplacementPolicy",
             "template"},
}
CONTAINER = {"name", "image", "imagePullPolicy", "workingDir", "args", "env", "resources", "volumeMounts"}
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def demand(condition, message, status=422):
    if not condition:
        raise Refused(status, message)


def known(fields, allowed, where):
    demand(set(fields) <= allowed, f"{where}: unknown field {sorted(set(fields) - allowed)}", 400)


def expand(text, variables):
    """$(NAME) of variables that stand before; $$ is $."""
    def value(match):
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])
    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", value, text)


class Pod:
    def __init__(self, cluster, name, template, index, owner, final):
        self.cluster = cluster
        self.name = name
        self.owner = owner
        self.final = final  # is not started again
        self.folder = cluster.folder / name
        self.folder.mkdir()
        self.log_path = self.folder / "log"
        self.spec = template["spec"]
        self.labels = dict(template["metadata"]["labels"])
        self.annotations = {}
        if final:
            self.annotations["batch.kubernetes.io/job-completion-index"] = str(index)
        else:
            self.labels["apps.kubernetes.io/pod-index"] = str(index)
        self.container = self.spec["containers"][0]
        self.deleted = None
        self.kill_at = float("inf")
        self.forced = False  # deleted without waiting for its node
        self.lost = False    # with its node, of which nothing is heard any more
        self.process = None
        if self.container["image"] != "test/missing":
            self.run()

    def field(self, path):
        match = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
        return getattr(self, match[1])[match[2]]

    def files(self):
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container.get("volumeMounts", [])}
        for volume in self.spec.get("volumes", []):
            secret = self.cluster.objects["secrets"][volume["secret"]["secretName"]]
            for item in volume["secret"]["items"]:
                path = self.folder / (mounts[volume["name"]] + "/" + item["path"]).lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(secret["data"][item["key"]], validate=True))
                path.chmod(volume["secret"]["defaultMode"])

    def run(self):
        self.files()
        variables = {"PATH": os.environ["PATH"], "ROOT": str(self.folder)}
        for variable in self.container["env"]:
            variables[variable["name"]] = (self.field(variable["valueFrom"]["fieldRef"]["fieldPath"])
                                           if "valueFrom" in variable else expand(variable["value"], variables))
        arguments = [expand(word, variables) for word in self.container.get("args", ["echo", "its own"])]
        stamp = 'import sys,time\nfor line in sys.stdin.buffer:\n' \
                ' sys.stdout.buffer.write(time.strftime("%Y-%m-%dT%H:%M:%S.",time.gmtime()).encode()' \
                '+b"%09dZ "%(time.time_ns()%10**9)+line); sys.stdout.flush()'
        with open(self.log_path, "wb") as log:
            self.stamper = subprocess.Popen(["python3", "-c", stamp], stdin=subprocess.PIPE, stdout=log)
        self.process = subprocess.Popen(arguments, env=variables, stdin=subprocess.DEVNULL, start_new_session=True,
                                        stdout=self.stamper.stdin, stderr=self.stamper.stdin)
        self.stamper.stdin.close()

    def ended(self):
        return self.process is not None and self.process.poll() is not None and self.stamper.poll() is not None

    def remove(self, grace):
        """With a grace of 0 the API forgets it at once. Its node goes on with what it was told first."""
        if self.deleted is None:
            self.deleted = time.monotonic()
            self.kill_at = self.deleted + grace
            self.signal(signal.SIGTERM if grace > 0 else signal.SIGKILL)
        self.forced = self.forced or grace == 0

    def signal(self, number):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def lose_node(self):
        """A power cut. What was known last stays, but that it is not ready; so does the pod, until it is forced."""
        self.lost = True
        self.signal(signal.SIGKILL)

    def runs(self):
        return self.process is not None and not self.ended()

    def gone(self):
        return self.forced or self.deleted is not None and not self.lost and not self.runs()

    def state(self):
        if self.process is None:
            return {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        if self.ended() and not self.lost:
            code = self.process.returncode
            return {"terminated": {"exitCode": code if code >= 0 else 128 - code,
                                   "reason": "Completed" if code == 0 else "Error"}}
        return {"running": {"startedAt": "2026-01-01T00:00:00Z"}}

    def json(self):
        metadata = {"name": self.name, "labels": self.labels, "annotations": self.annotations}
        if self.deleted:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"metadata": metadata, "spec": {"nodeName": "node-a"},
                "status": {"phase": "Running", "containerStatuses": [{"state": self.state(), "ready": True}],
                           "conditions": [{"type": "Ready", "status": "False" if self.lost else "True"}]}}


class Cluster:
    def __init__(self, folder, token, name_space="team"):
        self.folder = folder
        self.token = token
        self.name_space = name_space
        self.lock = threading.RLock()
        # A StatefulSet makes revisions of itself, which its user may not even see.
        self.objects = {kind: {} for kind in (*KINDS, "controllerrevisions")}
        self.history = []  # of what was made and removed
        self.pods = []     # all that were ever made
        self.logs_denied = False

    # What the API does.

    def create(self, kind, body):
        with self.lock:
            metadata = body.get("metadata", {})
            demand(kind != "pods", "pods is forbidden: cannot create", 403)
            demand((body.get("apiVersion"), body.get("kind")) == KINDS[kind], f"{kind}: wrong apiVersion or kind", 400)
            name = metadata.get("name", "")
            demand(NAME.fullmatch(name), f"metadata.name: {name!r}")
            known(metadata, {"name", "labels"}, "metadata")
            demand(name not in self.objects[kind], f"{kind} {name!r} already exists", 409)
            if kind in SPECS:
                known(body["spec"], SPECS[kind], "spec")
            self.objects[kind][name] = body
            self.history.append(("create", kind, name))
            if kind in ("statefulsets", "jobs"):
                self.make_pods(kind, name, body)

    def make_pods(self, kind, name, body):
        spec, template = body["spec"], body["spec"]["template"]
        known(template["spec"], POD, "pod")
        for container in template["spec"]["containers"]:
            known(container, CONTAINER, "container")
            names = [variable["name"] for variable in container["env"]]
            demand(len(names) == len(set(names)), "a variable stands twice")
        demand(template["spec"]["subdomain"] in self.objects["services"], "no such service")
        if kind == "jobs":
            demand(template["spec"]["restartPolicy"] in ("Never", "OnFailure"), "restartPolicy")
            demand(spec["completionMode"] == "Indexed", "completionMode")
            count = spec["completions"]
        else:
            demand(template["spec"]["restartPolicy"] == "Always", "restartPolicy")
            labels = template["metadata"]["labels"]
            demand(spec["selector"]["matchLabels"].items() <= labels.items(), "selector does not match template labels")
            count = spec["replicas"]
            self.objects["controllerrevisions"][f"{name}-5d9c7b8f4d"] = {"metadata": {"labels": labels}, "owner": name}
        for index in range(count):
            pod_name = f"{name}-{index}" + ("-x7k2p" if kind == "jobs" else "")
            pod = Pod(self, pod_name, template, index, (kind, name), kind == "jobs")
            self.objects["pods"][pod_name] = pod
            self.pods.append(pod)

    def remove(self, kind, name, options):
        with self.lock:
            demand(name in self.objects[kind], f"{kind} {name!r} not found", 404)
            self.history.append(("remove", kind, name))
            if kind == "pods":
                pod = self.objects["pods"][name]
                pod.remove(options.get("gracePeriodSeconds", pod.spec["terminationGracePeriodSeconds"]))
                return
            del self.objects[kind][name]
            if kind == "statefulsets" and options.get("propagationPolicy") != "Orphan":
                revisions = self.objects["controllerrevisions"]
                for revision in [each for each in revisions if revisions[each]["owner"] == name]:
                    del revisions[revision]
            for pod in list(self.objects["pods"].values()):
                if pod.owner != (kind, name):
                    continue
                if options.get("propagationPolicy") == "Orphan":
                    pod.owner = None
                else:
                    pod.remove(pod.spec["terminationGracePeriodSeconds"])

    def list(self, kind, selector):
        with self.lock:
            self.tick()
            items = [item.json() if kind == "pods" else item for item in self.objects[kind].values()]
            wanted = dict(pair.split("=") for pair in selector.split(",")) if selector else {}
            return [item for item in items if wanted.items() <= item["metadata"].get("labels", {}).items()]

    def tick(self):
        """Pods that were removed and have ended are gone; a controller makes new ones for its own."""
        for pod in self.pods:
            if time.monotonic() >= pod.kill_at:
                pod.signal(signal.SIGKILL)
        for name, pod in list(self.objects["pods"].items()):
            if pod.gone():
                del self.objects["pods"][name]
                assert pod.owner is None or pod.owner[1] not in self.objects[pod.owner[0]], "it would come again"

    def end(self):
        for pod in self.pods:
            if pod.process is not None:
                pod.signal(signal.SIGKILL)
                pod.process.wait()
                pod.stamper.wait()
        shutil.rmtree(self.folder)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def handle_request(self):
        cluster = self.server.cluster
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            by_certificate = isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert()
            by_token = self.headers.get("Authorization") == f"Bearer {cluster.token}"
            demand(by_certificate or by_token, "Unauthorized", 401)
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            match = re.fullmatch(r"(/api/v1|/apis/\w+/v1)/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?(/log)?", url.path)
            demand(match and match[3] in KINDS and APIS[match[3]] == match[1], "no such path", 404)
            demand(match[2] == cluster.name_space, f"forbidden in {match[2]}", 403)
            kind, name = match[3], match[4]
            if match[5]:
                demand(not cluster.logs_denied, "forbidden: pods/log", 403)
                return self.log(cluster, name, query)
            if self.command == "POST" and not name:
                cluster.create(kind, json.loads(body))
                return self.answer(201, {})
            if self.command == "DELETE" and name:
                cluster.remove(kind, name, json.loads(body) if body else {})
                return self.answer(200, {})
            demand(self.command == "GET" and not name, "method not allowed", 405)
            self.answer(200, {"items": cluster.list(kind, query.get("labelSelector", ""))})
        except Refused as refused:
            self.answer(refused.status, {"kind": "Status", "message": str(refused)})

    do_GET = do_POST = do_DELETE = handle_request

    def log(self, cluster, name, query):
        with cluster.lock:
            pod = cluster.objects["pods"].get(name)
        demand(pod and pod.process, f"pods {name!r} not found", 404)
        demand(query.get("container") == pod.container["name"] and query.get("timestamps") == "true", "query", 400)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with open(pod.log_path, "rb") as log:
            while True:
                over = pod.ended() and (not pod.lost or pod.gone()) or query.get("follow") != "true"
                piece = log.read(1 << 16)
                if piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                elif over:
                    break
                else:
                    time.sleep(0.01)
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster, certificates=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster = cluster
        if certificates:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
            context.load_verify_locations(certificates / "ca.pem")
            context.verify_mode = ssl.CERT_OPTIONAL
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'s' if certificates else ''}://127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def server_bind(self):
        # As the base class does, without asking for the host's name.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address

    def handle_error(self, *_):
        pass  # somebody who was killed

    def stop(self):
        self.shutdown()
        self.server_close()
        self.cluster.end()
