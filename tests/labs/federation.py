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


def listed(value):
    return value if isinstance(value, list) else [value]


def for_moto(policy):
    """To moto every call is one on "*"."""
    return json.dumps({**policy, "Statement": [{**each, "Resource": "*"} for each in policy["Statement"]]})


def allows(statement, action):
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in listed(statement["Action"]))


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
        if policy is None:
            return None
        statements = [each for each in policy["Statement"] if allows(each, f"ec2:{action}")]
        if any(each["Resource"] == "*" and "Condition" not in each for each in statements):
            return None
        for parameter, kind in RESOURCES.items():
            if parameter in form and not any(self.permits(each, kind, form[parameter]) for each in statements):
                return "UnauthorizedOperation", "You are not authorized to perform this operation."
        return None

    def permits(self, statement, kind, name):
        pattern = statement["Resource"]
        if pattern != "*" and not fnmatch.fnmatchcase(f"arn:aws:ec2:us-east-1:1:{kind}/{name}", pattern):
            return False
        tags = self.tags_of(kind, name)
        for operator, wanted in statement.get("Condition", {}).items():
            for key, value in wanted.items():
                tag = tags.get(key.removeprefix("aws:ResourceTag/"))
                if operator == "StringEquals" and tag != value:
                    return False
                if operator == "Null" and (tag is None) != (value == "true"):
                    return False
        return True

    def tags_of(self, kind, name):
        ec2 = self.lab.ec2
        if kind == "placement-group":
            return self.lab.placement_groups.get(name, {})
        if kind == "key-pair":
            pairs = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])["KeyPairs"]
            found = [tag for pair in pairs for tag in pair.get("Tags", [])]
        elif kind == "network-interface":  # moto does not keep what RunInstances says of these
            found = [tag for each in self.lab.instances() for tag in each["Tags"]
                     if any(own["NetworkInterfaceId"] == name for own in each["NetworkInterfaces"])]
        else:
            found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [name]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}
