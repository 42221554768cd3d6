"""Keys of AWS's that are lent for a while, for the EC2 of ec2_lab.py. Those that moto lends by GetFederationToken are
known to none of its services, and it knows neither the conditions of policies nor their resources. So each loan is a
role of moto's, which checks signature, token and actions; conditions on tags and kinds of resources are checked here.
"""

import fnmatch
import json
import re
import uuid

POLICY_MAX = 2048  # AWS's own
# Which parameter names a thing of which kind.
RESOURCES = {"InstanceId.1": "instance", "SubnetId": "subnet", "GroupId": "security-group",
             "SecurityGroupId.1": "security-group", "NetworkInterfaceId": "network-interface", "KeyName": "key-pair",
             "GroupName": "placement-group", "SpotInstanceRequestId.1": "spot-instances-request"}
USED_BY_MACHINES = {"ImageId": "image", "KeyName": "key-pair", "Placement.GroupName": "placement-group",
                    "NetworkInterface.1.SubnetId": "subnet", "NetworkInterface.1.SecurityGroupId.1": "security-group"}


def listed(value):
    return value if isinstance(value, list) else [value]


def for_moto(policy):
    """To moto every call is one on "*"."""
    return json.dumps({**policy, "Statement": [{**each, "Resource": "*"} for each in policy["Statement"]]})


def allows(statement, action):
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in listed(statement["Action"]))


def arn(kind, name):
    return f"arn:aws:ec2:us-east-1:{'' if kind == 'image' else 1}:{kind}/{name}"


def permits(statement, action, resource, known):
    """Whether a statement allows that; `known` is what its conditions may ask for."""
    return (allows(statement, action)
            and any(fnmatch.fnmatchcase(resource, pattern) for pattern in listed(statement["Resource"]))
            and all(holds(operator, known.get(key), listed(wanted))
                    for operator, keys in statement.get("Condition", {}).items() for key, wanted in keys.items()))


def holds(operator, value, wanted):
    if operator == "Null":
        return (value is None) == (wanted[0] == "true")
    if operator.endswith("IfExists"):
        return value is None or holds(operator.removesuffix("IfExists"), value, wanted)
    tests = {"StringEquals": lambda pattern: value == pattern,
             "ArnLike": lambda pattern: fnmatch.fnmatchcase(value, pattern)}
    return value is not None and any(tests[operator](pattern) for pattern in wanted)


def tags_for(kind, form):
    """The tags that a call gives to what it makes of this kind."""
    return {f"aws:RequestTag/{form[f'TagSpecification.{n}.Tag.{m}.Key']}": form[f"TagSpecification.{n}.Tag.{m}.Value"]
            for n in range(1, 10) if form.get(f"TagSpecification.{n}.ResourceType") == kind
            for m in range(1, 20) if f"TagSpecification.{n}.Tag.{m}.Key" in form}


def access_key(environment):
    found = re.search(r"Credential=([^/]+)/", environment.get("HTTP_AUTHORIZATION", ""))
    return found.group(1) if found else None


class Federation:
    def __init__(self, lab):
        self.lab = lab
        self.sts = lab.admin("sts")
        self.sessions = {}  # what keys may do: access key id -> policy
        self.last = None    # keys that were made

    def role_keys(self, policy, name="role"):
        """Keys of a new role that has this policy, as STS gives them."""
        role = f"{name}-{uuid.uuid4().hex[:8]}"
        user = self.lab.iam.get_user(UserName="admin")["User"]["Arn"]
        made = self.lab.iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"AWS": user}, "Action": "sts:AssumeRole"}]}))
        self.lab.iam.put_role_policy(RoleName=role, PolicyName="policy", PolicyDocument=for_moto(policy))
        keys = self.sts.assume_role(RoleArn=made["Role"]["Arn"], RoleSessionName=name)["Credentials"]
        self.sessions[keys["AccessKeyId"]] = policy
        self.last = keys
        return keys

    def lend(self, environment, form):
        """The answer of GetFederationToken: what the policy of the call and that of its caller both allow."""
        if len(form["Policy"]) > POLICY_MAX or not 900 <= int(form["DurationSeconds"]) <= 129600:
            raise ValueError("AWS would refuse that")
        policy = json.loads(form["Policy"])
        callers = self.lab.policies.get(access_key(environment))  # None: one who may do everything
        for statement in policy["Statement"] if callers else []:
            statement["Action"] = [action for action in listed(statement["Action"])
                                   if any(allows(each, action) for each in callers["Statement"])]
        policy["Statement"] = [each for each in policy["Statement"] if each["Action"]]
        keys = self.role_keys(policy, form["Name"])
        return ("<GetFederationTokenResponse><GetFederationTokenResult><Credentials>"
                f"<AccessKeyId>{keys['AccessKeyId']}</AccessKeyId>"
                f"<SecretAccessKey>{keys['SecretAccessKey']}</SecretAccessKey>"
                f"<SessionToken>{keys['SessionToken']}</SessionToken>"
                f"<Expiration>{keys['Expiration']:%Y-%m-%dT%H:%M:%SZ}</Expiration>"
                "</Credentials></GetFederationTokenResult></GetFederationTokenResponse>").encode()

    def refusal(self, environment, action, form):
        """(code, message) if a condition of the keys' policy does not hold."""
        policy = self.sessions.get(access_key(environment))
        if policy is None or all(any(permits(each, *asked) for each in policy["Statement"])
                                 for asked in self.questions(action, form)):
            return None
        return "UnauthorizedOperation", "You are not authorized to perform this operation."

    def questions(self, action, form):
        """What AWS asks a policy about a call: (action, resource, what is known for conditions)."""
        if action == "RunInstances":
            return self.questions_of_new_machines(form)
        return [(f"ec2:{action}", arn(kind, form[parameter]), self.known(kind, form[parameter]))
                for parameter, kind in RESOURCES.items() if parameter in form]

    def questions_of_new_machines(self, form):
        asked = [("ec2:RunInstances", arn(kind, form[parameter]), self.known(kind, form[parameter]))
                 for parameter, kind in USED_BY_MACHINES.items() if parameter in form]
        profile = form.get("IamInstanceProfile.Name")
        if profile:
            asked.append(("iam:PassRole", f"arn:aws:iam::1:role/{profile}", {}))
        spot = "InstanceMarketOptions.MarketType" in form
        for kind in ("instance", "volume", "network-interface", *(["spot-instances-request"] if spot else [])):
            tags = tags_for(kind, form)
            known = dict(tags)
            if kind == "instance":
                known["ec2:InstanceType"] = form["InstanceType"]
                if profile:
                    known["ec2:InstanceProfile"] = f"arn:aws:iam::1:instance-profile/{profile}"
            asked.append(("ec2:RunInstances", arn(kind, "*"), known))
            if tags:
                asked.append(("ec2:CreateTags", arn(kind, "*"), {**tags, "ec2:CreateAction": "RunInstances"}))
        return asked

    def known(self, kind, name):
        return {f"aws:ResourceTag/{key}": value for key, value in self.tags_of(kind, name).items()}

    def tags_of(self, kind, name):
        ec2 = self.lab.ec2
        if kind == "placement-group":
            return self.lab.placement_groups.get(name, {})
        if kind == "spot-instances-request":
            return self.lab.spot_requests.get(name, {})
        if kind == "key-pair":
            pairs = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])["KeyPairs"]
            found = [tag for pair in pairs for tag in pair.get("Tags", [])]
        elif kind == "network-interface":  # moto does not keep what RunInstances says of these
            found = [tag for each in self.lab.instances() for tag in each["Tags"]
                     if any(own["NetworkInterfaceId"] == name for own in each["NetworkInterfaces"])]
        else:
            found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [name]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}
