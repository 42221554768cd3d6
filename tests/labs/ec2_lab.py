"""An EC2 on one computer, for tests: moto answers the API, with signatures and policies checked, and each instance that
it says is running is a machine of its own (machines.py) with a real sshd, an instance metadata service, its security
groups as rules of iptables, and its user-data executed at boot. `shutdown` inside terminates the instance.

What EC2 does and moto does not is added in front of it: a ClientToken makes a group of machines once; subnets and
groups that are in use cannot be deleted; placement groups; requests for spot machines; keys that STS lends
(federation.py); and, for tests, failures of any call: refused, throttled, done and the answer lost or held back; and
things that EC2 does not know for a while after it has made them (young_things.py). With `engines` each machine has a
Docker engine of its own, as images have that come with one. Needs root, openssh-server and iptables
(tools/setup.sh labs), and moto, which `make labs` installs.

All runs in this process and a network name space of its own, which its main thread enters for good.
"""

import ctypes
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machines  # noqa: E402
from federation import Federation, for_moto  # noqa: E402
from young_things import YoungThings  # noqa: E402

CLONE_NEWNET = 0x40000000
REGION = "us-east-1"
NETWORK = "172.31"       # of the default VPC
OUTSIDE = f"{NETWORK}.255.254"  # where the launcher is; no subnet begins there
STRANGER = f"{NETWORK}.255.253"  # somebody else
USER = "psuser"          # of machines.py
HOME = f"home/{USER}"
METADATA = pathlib.Path(__file__).resolve().parents[1] / "cluster" / "metadata_server.py"
ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / "build" / "moto"
LIVE = ("pending", "running", "stopping", "stopped", "shutting-down")

INIT = r"""
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
home=/%(home)s
mkdir -p /run/sshd $home/.ssh /usr/local/sbin
cp /shared/%(id)s.pub $home/.ssh/authorized_keys
chmod 700 $home/.ssh; chown -R %(user)s:%(user)s $home
rm -rf /var/lib/pscloud
printf '#!/bin/sh\ntouch /run/poweroff\n' > /usr/local/sbin/shutdown; chmod +x /usr/local/sbin/shutdown
ssh-keygen -q -t ed25519 -N '' -f /run/host_key
printf 'Port 22\nHostKey /run/host_key\nPidFile none\nUsePAM no\nPasswordAuthentication no\n' > /run/sshd.conf
ip addr add 169.254.169.254/32 dev lo
python3 /shared/metadata.py 169.254.169.254 80 /shared/%(id)s.json &
/usr/sbin/sshd -D -e -f /run/sshd.conf &
%(engine)s
cp /shared/%(id)s.data /run/user-data; chmod 700 /run/user-data
( cd /; /run/user-data; echo "user-data ended with $?" ) > /var/log/cloud-init-output.log 2>&1 &
while [ ! -e /run/poweroff ]; do sleep 0.2; done
"""

# Layers lie in memory: an overlay cannot lie on another. Rules of iptables are those of the security groups alone.
ENGINE = r"""
mkdir -p /var/lib/docker; mount -t tmpfs -o size=2g lab /var/lib/docker
dockerd --storage-driver overlay2 --cgroup-parent "/%(cgroup)s" --log-level warn --shutdown-timeout 1 --bridge none \
  --iptables=false --ip-forward=false > /var/log/dockerd.log 2>&1 &
"""


def missing(*programs):
    if not (ENVIRONMENT / "installed").exists():
        return "needs moto (make labs)"
    if not os.path.exists("/usr/sbin/sshd"):
        return "needs sshd (tools/setup.sh labs)"
    return machines.missing("ssh", "ssh-keygen", "iptables-restore", *programs)


def enter_environment():
    """Runs this script again by the Python that has moto."""
    python = ENVIRONMENT / "bin" / "python"
    if missing() is None and pathlib.Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        os.execv(python, [str(python), *sys.argv])


def error_answer(code, message):
    return (f"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>"
            f"<Message>{message}</Message></Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>").encode()


def groups_of(instance):
    """The security groups of its interfaces."""
    return sorted({group["GroupId"] for each in instance["NetworkInterfaces"] for group in each["Groups"]})


def tags_of_new(kind, form):
    """Those that a call gives to what it makes of this kind."""
    return {form[f"TagSpecification.{n}.Tag.{m}.Key"]: form[f"TagSpecification.{n}.Tag.{m}.Value"]
            for n in range(1, 10) if form.get(f"TagSpecification.{n}.ResourceType") == kind
            for m in range(1, 20) if f"TagSpecification.{n}.Tag.{m}.Key" in form}


def fits(tags, form):
    """Whether a thing with these tags is asked for: "tag:NAME" and its value, or "tag-key" and a name."""
    name, value = form.get("Filter.1.Name", ""), form.get("Filter.1.Value.1")
    return value in tags if name == "tag-key" else tags.get(name.removeprefix("tag:")) == value


def tag_set(tags):
    items = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags.items())
    return f"<tagSet>{items}</tagSet>"


class Lost(ConnectionError):
    """The connection ends without an answer. To werkzeug it has ended already; to other exceptions it would answer."""


class Ec2Lab(machines.Lab):
    prefix = 16

    def __init__(self, engines=False):
        self.engines = engines
        self.booted = {}     # instance id -> Machine
        self.addresses = {}
        self.rules = {}
        self.number = 0
        self.lock = threading.RLock()
        self.calls = []      # actions, in the order they came
        self.on_call = None  # is asked about each call: (number, action, form) -> None, (status, code), "lost", "hangs"
        self.released = threading.Event()  # then calls that hang end
        self.young = YoungThings()
        self.after_call = None
        self.tokens = {}
        self.placement_groups = {}
        self.spot_requests = {}  # id -> tags; they stay until they are cancelled, though their machine has ended
        self.metadata = {}   # for each new machine
        self.profiles = {}   # the same for those of an instance profile, by its name
        self.profile_of = {}  # instance id -> that name
        self.policies = {}   # of users, by their keys
        self.prices = {}     # of types on demand
        self.boots = True    # whether instances become machines
        self.stopping = threading.Event()
        super().__init__("ec2", NETWORK, "/", 0, None, {"/sys/fs/cgroup": "/sys/fs/cgroup"} if engines else None)
        try:
            self.enter()
            (self.shared / "metadata.py").write_text(METADATA.read_text())
            self.serve()
            self.watcher = threading.Thread(target=self.watch, daemon=True)
            self.watcher.start()
        except BaseException:
            self.down()
            raise

    def enter(self):
        """This thread, and those it starts, are in the machines' network from now on."""
        space = os.open(f"/proc/{self.switch.pid}/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(space)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        for address in (OUTSIDE, STRANGER):
            subprocess.run(["ip", "addr", "add", f"{address}/16", "dev", "bridge0"], check=True)

    # ---- the API

    def serve(self):
        os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"  # then moto checks signatures and policies
        os.environ["no_proxy"] = "*"
        import boto3
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server
        import logging
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)

        class Handler(WSGIRequestHandler):
            def connection_dropped(self, error, environ=None):
                self.close_connection = True

        self.moto = DomainDispatcherApplication(create_backend_app)
        self.server = make_server(OUTSIDE, 0, self.application, threaded=True, request_handler=Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://{OUTSIDE}:{self.server.server_port}"  # machines reach it too
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        iam = boto3.client("iam", region_name=REGION, endpoint_url=self.endpoint, aws_access_key_id="boot",
                           aws_secret_access_key="boot")
        iam.create_user(UserName="admin")
        self.key = iam.create_access_key(UserName="admin")["AccessKey"]
        iam.put_user_policy(UserName="admin", PolicyName="all", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
        self.admin = self.client(self.key)
        self.ec2, self.iam = self.admin("ec2"), self.admin("iam")
        self.federation = Federation(self)
        images = self.ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"]
        self.image = next(each for each in images if "Windows" not in each["Name"])
        self.empty = self.account()

    def client(self, key):
        import boto3
        return lambda service: boto3.client(
            service, region_name=REGION, endpoint_url=self.endpoint, aws_access_key_id=key["AccessKeyId"],
            aws_secret_access_key=key["SecretAccessKey"])

    def variables(self, key=None):
        key = key or self.key
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
                "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.endpoint, "AWS_MAX_ATTEMPTS": "2",
                "AWS_EC2_METADATA_DISABLED": "true"}

    def new_user(self, name, policy):
        """The key of a user who may do what the policy says."""
        self.iam.create_user(UserName=name)
        self.iam.put_user_policy(UserName=name, PolicyName="policy", PolicyDocument=for_moto(policy))
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        self.policies[key["AccessKeyId"]] = policy
        return key

    def application(self, environment, start):
        length = int(environment.get("CONTENT_LENGTH") or 0)
        body = environment["wsgi.input"].read(length)
        environment["wsgi.input"] = io.BytesIO(body)
        form = dict(urllib.parse.parse_qsl(body.decode("utf-8", "replace")))
        action = form.get("Action")
        ours = "botocore" in environment.get("HTTP_USER_AGENT", "").lower()
        if "PriceList" in environment.get("HTTP_X_AMZ_TARGET", ""):
            return self.price(json.loads(body), start)
        if not action or ours:
            return self.moto(environment, start)
        with self.lock:
            self.calls.append(action)
            number = len(self.calls)
            fault = self.on_call(number, action, form) if self.on_call else None
        if isinstance(fault, tuple):
            return self.reply(start, f"{fault[0]} Fault", error_answer(fault[1], "injected"))
        if fault == "lost before":
            raise Lost
        with self.lock:
            status, headers, answer = self.act(environment, action, form)
            if self.after_call:
                self.after_call(number, action, form)
        if fault == "hangs":
            self.released.wait()
        if fault in ("lost", "hangs"):
            raise Lost
        start(status, headers)
        return [answer]

    def price(self, question, start):
        wanted = {each["Field"]: each["Value"] for each in question["Filters"]}
        dollars = self.prices.get(wanted["instanceType"])
        offer = {"terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": str(dollars)}}}}}}}
        return self.reply(start, "200 OK", json.dumps({"PriceList": [json.dumps(offer)] if dollars else []}).encode())

    @staticmethod
    def reply(start, status, answer):
        start(status, [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))])
        return [answer]

    def act(self, environment, action, form):
        """What EC2 would do: moto, and what it lacks."""
        token = form.get("ClientToken")
        if action == "RunInstances" and token in self.tokens:
            return self.tokens[token]
        if action == "DeleteKeyPair" and self.young.has(form["KeyName"]):  # of a key EC2 says that it is done, anyway
            return self.answer_of("200 OK", f"<{action}Response/>".encode())
        refusal = (self.young.refusal(action, form) or self.in_use(action, form)
                   or self.federation.refusal(environment, action, form))
        if refusal:
            return self.answer_of("400 Bad Request", error_answer(*refusal))
        if action.endswith(("PlacementGroup", "PlacementGroups", "SpotInstanceRequests")):
            answer = self.spot(action, form) if "Spot" in action else self.placement(action, form)
            return self.answer_of("200 OK", self.young.hidden_from(action, answer))
        got = {}

        def start(status, headers, _=None):
            got.update(status=status, headers=headers)
        answer = b"".join(self.moto(environment, start))
        if action == "GetFederationToken" and got["status"].startswith("200"):
            answer = self.federation.lend(environment, form)
            got["headers"] = [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))]
        if got["status"].startswith("200"):
            self.young.note_made(action, answer)
        if action == "RunInstances" and got["status"].startswith("200"):
            # To moto the first of them alone has the profile, and none a request for a spot machine.
            for each in re.findall(r"<instanceId>([^<]+)</instanceId>", answer.decode()):
                self.profile_of[each] = form.get("IamInstanceProfile.Name")
                if form.get("InstanceMarketOptions.MarketType") == "spot":
                    request = f"sir-{each[2:10]}"
                    self.spot_requests[request] = tags_of_new("spot-instances-request", form)
                    self.young.note(request)
                    known = f"<instanceId>{each}</instanceId>".encode()
                    answer = answer.replace(
                        known, known + f"<spotInstanceRequestId>{request}</spotInstanceRequestId>".encode())
            got["headers"] = [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))]
            if token:
                self.tokens[token] = (got["status"], got["headers"], answer)
        if self.young.lag_s:
            return self.answer_of(got["status"], self.young.hidden_from(action, answer))
        return got["status"], got["headers"], answer

    @staticmethod
    def answer_of(status, answer):
        return status, [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))], answer

    def placement(self, action, form):
        items = ""
        if action == "CreatePlacementGroup":
            self.placement_groups[form["GroupName"]] = tags_of_new("placement-group", form)
            self.young.note(form["GroupName"])
        elif action == "DeletePlacementGroup":
            self.placement_groups.pop(form["GroupName"], None)
        else:
            items = "".join(f"<item><groupName>{name}</groupName><state>available</state>{tag_set(tags)}</item>"
                            for name, tags in self.placement_groups.items() if fits(tags, form))
        return f"<{action}Response><placementGroupSet>{items}</placementGroupSet></{action}Response>".encode()

    def spot(self, action, form):
        items = ""
        if action == "CancelSpotInstanceRequests":
            for parameter, name in form.items():
                if parameter.startswith("SpotInstanceRequestId."):
                    self.spot_requests.pop(name, None)
        else:
            items = "".join(f"<item><spotInstanceRequestId>{name}</spotInstanceRequestId><state>active</state>"
                            f"{tag_set(tags)}</item>" for name, tags in self.spot_requests.items() if fits(tags, form))
        return f"<{action}Response><spotInstanceRequestSet>{items}</spotInstanceRequestSet></{action}Response>".encode()

    def in_use(self, action, form):
        if action not in ("DeleteSubnet", "DeleteSecurityGroup"):
            return None
        live = self.instances()
        if action == "DeleteSubnet" and any(each.get("SubnetId") == form.get("SubnetId") for each in live):
            return "DependencyViolation", "the subnet has dependencies and cannot be deleted"
        groups = {group for each in live for group in groups_of(each)}
        if action == "DeleteSecurityGroup" and form.get("GroupId") in groups:
            return "DependencyViolation", "the group has a dependent object"
        return None

    def instances(self):
        """Those that are not terminated."""
        pages = self.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": list(LIVE)}])
        return [each for page in pages for group in page["Reservations"] for each in group["Instances"]]

    def account(self):
        """All that an account pays for or that would be left in it."""
        ec2 = self.ec2
        return {
            "instances": sorted(each["InstanceId"] for each in self.instances()),
            "subnets": sorted(each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]),
            "groups": sorted(each["GroupId"] for each in ec2.describe_security_groups()["SecurityGroups"]),
            "keys": sorted(each["KeyName"] for each in ec2.describe_key_pairs()["KeyPairs"]),
            "volumes": sorted(each["VolumeId"] for each in ec2.describe_volumes()["Volumes"]),
            "interfaces": sorted(each["NetworkInterfaceId"]
                                 for each in ec2.describe_network_interfaces()["NetworkInterfaces"]),
            "spot": sorted(self.spot_requests),
            "placement": sorted(self.placement_groups),
        }

    def left(self):
        """What is there that was not there at the beginning."""
        return {kind: extra for kind, now in self.account().items()
                if (extra := sorted(set(now) - set(self.empty[kind])))}

    # ---- the machines

    def address(self, number):
        return self.addresses[number]

    def watch(self):
        while not self.stopping.wait(0.1):
            try:
                with self.lock:
                    self.follow()
            except Exception as error:  # the test shows what is missing
                print("ec2_lab:", repr(error), file=sys.stderr, flush=True)

    def follow(self):
        live = {each["InstanceId"]: each for each in self.instances()}
        for name, each in live.items():
            if each["State"]["Name"] == "running" and name not in self.booted and self.boots:
                self.boot(each)
        for name, machine in self.booted.items():
            if machine and name not in live:
                self.unplug(machine)
                self.booted[name] = None
            elif machine and machine.process.poll() is not None:  # it has shut itself down
                self.ec2.terminate_instances(InstanceIds=[name])
            elif machine:
                machine.instance = live[name]  # its groups may have changed
        self.apply_groups()

    def boot(self, instance):
        import base64
        name = instance["InstanceId"]
        self.booted[name] = None
        self.number += 1
        self.addresses[self.number] = instance["PrivateIpAddress"]
        data = self.ec2.describe_instance_attribute(InstanceId=name, Attribute="userData")["UserData"].get("Value", "")
        key = self.ec2.describe_key_pairs(KeyNames=[instance["KeyName"]], IncludePublicKey=True)["KeyPairs"][0]
        (self.shared / f"{name}.pub").write_text(key["PublicKey"] + "\n")
        (self.shared / f"{name}.data").write_bytes(base64.b64decode(data))
        profile = self.profiles.get(self.profile_of.get(name), self.metadata)
        (self.shared / f"{name}.json").write_text(json.dumps(profile))
        engine = ENGINE % {"cgroup": self.folder.name} if self.engines else ""
        init = INIT % {"id": name, "user": machines.USER, "home": HOME, "engine": engine}
        machine = machines.Machine(self, self.number, init, name)
        machine.instance, machine.port = instance, self.number
        self.close(machine)
        machine.link(self.switch.pid, self.number)
        self.booted[name] = machine

    def close(self, machine):
        """Nobody comes in before the groups have been looked at."""
        machines.until(machine.first_process, "the machine")
        self.set_rules(machine, [])

    def set_rules(self, machine, rules):
        first = machine.first_process()
        if first is None or self.rules.get(machine.name) == rules:
            return
        text = ("*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n"
                "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
                + "".join(f"-A INPUT {rule} -j ACCEPT\n" for rule in rules) + "COMMIT\n")
        subprocess.run(["nsenter", f"--net=/proc/{first}/ns/net", "iptables-restore"], input=text, text=True,
                       check=True)
        self.rules[machine.name] = rules

    def apply_groups(self):
        running = [machine for machine in self.booted.values() if machine]
        if not running:
            return
        groups = {each["GroupId"]: each for each in self.ec2.describe_security_groups()["SecurityGroups"]}
        of = {machine.name: groups_of(machine.instance) for machine in running}
        for machine in running:
            rules = []
            for permission in (each for group in of[machine.name] for each in groups[group]["IpPermissions"]):
                sources = [each["CidrIp"] for each in permission.get("IpRanges", [])]
                sources += [other.address for pair in permission.get("UserIdGroupPairs", []) for other in running
                            if pair["GroupId"] in of[other.name]]
                what = "" if permission["IpProtocol"] == "-1" else f" -p {permission['IpProtocol']}"
                if what and permission.get("FromPort", -1) >= 0:
                    what += f" --dport {permission['FromPort']}:{permission['ToPort']}"
                rules += [f"-s {source}{what}" for source in sources]
            self.set_rules(machine, rules)

    def unplug(self, machine):
        machine.process.kill()
        machine.process.wait()
        machine.process.stdin.close()

    def calm(self):
        """No call hangs any more, and all that is there is known."""
        self.young.lag_s = 0
        self.released.set()
        self.released = threading.Event()

    def warn(self, instance, seconds):
        """EC2 says that it takes a spot machine away."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        path = self.shared / f"{instance}.json"
        known = json.loads(path.read_text())
        known["spot/instance-action"] = {"action": "terminate", "time": at}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(known))
        new.rename(path)

    def machine(self, instance):
        return self.booted[instance]

    def down(self):
        self.stopping.set()
        if getattr(self, "watcher", None):
            self.watcher.join(10)
        for machine in self.booted.values():
            if machine:
                self.unplug(machine)
        if getattr(self, "server", None):
            self.server.shutdown()
            self.server.server_close()
        if self.switch:
            self.switch.kill()
            self.switch.wait()
            self.switch.stdout.close()
        # The kernel may take a moment for the groups of processes that engines have made.
        machines.until(lambda: not machines.remove_cgroups(self.folder.name),
                       lambda: f"end of {machines.remove_cgroups(self.folder.name)}")
        shutil.rmtree(self.folder)
