"""What EC2 has just made it may not know for a moment, neither in its lists nor when a call names it. Moto knows it at
once: this stands between it and who asks (ec2_lab.py)."""

import re
import time
import xml.etree.ElementTree

# What names a thing in the answer of the call that makes it, and in that which lists it.
MAKES = {"CreateSubnet": "subnetId", "CreateSecurityGroup": "groupId", "ImportKeyPair": "keyName",
         "RunInstances": "instanceId"}
LISTS = {"DescribeInstances": "instanceId", "DescribeSubnets": "subnetId", "DescribeSecurityGroups": "groupId",
         "DescribeKeyPairs": "keyName", "DescribePlacementGroups": "groupName",
         "DescribeSpotInstanceRequests": "spotInstanceRequestId"}
# Parameters that name a thing, and what EC2 says if it does not know it.
UNKNOWN = {"SubnetId": "InvalidSubnetID.NotFound", "GroupId": "InvalidGroup.NotFound",
           "GroupName": "InvalidPlacementGroup.Unknown", "InstanceId": "InvalidInstanceID.NotFound",
           "SpotInstanceRequestId": "InvalidSpotInstanceRequestID.NotFound",
           "NetworkInterface.1.SubnetId": "InvalidSubnetID.NotFound",
           "NetworkInterface.1.SecurityGroupId.1": "InvalidGroup.NotFound", "KeyName": "InvalidKeyPair.NotFound",
           "Placement.GroupName": "InvalidPlacementGroup.Unknown"}


class YoungThings:
    def __init__(self):
        self.lag_s = 0  # so long EC2 does not know what it has made
        self.born = {}  # when that was, by its name

    def note(self, name):
        self.born[name] = time.monotonic()

    def note_made(self, action, answer):
        if action in MAKES:
            for name in re.findall(r"<{0}>([^<]+)</{0}>".format(MAKES[action]), answer.decode()):
                self.note(name)

    def has(self, name):
        return time.monotonic() - self.born.get(name, -1e9) < self.lag_s

    def refusal(self, action, form):
        """(code, message) for a call that names one."""
        if action.startswith(("Create", "Import")):
            return None  # a name is that of what is to be made
        for parameter, name in form.items():
            code = UNKNOWN.get(re.sub(r"^(InstanceId|SpotInstanceRequestId)\.\d+$", r"\1", parameter))
            if code and self.has(name):
                return code, f"{name} does not exist"
        return None

    def hidden_from(self, action, answer):
        """The answer without those that EC2 would not list."""
        if not self.lag_s or action not in LISTS:
            return answer
        root = xml.etree.ElementTree.fromstring(re.sub(rb' xmlns="[^"]*"', b"", answer))
        for parent in list(root.iter()):
            for child in [each for each in parent if self.has(each.findtext(LISTS[action]))]:
                parent.remove(child)
        return xml.etree.ElementTree.tostring(root)
