#!/usr/bin/env python3
"""Calls that remove things of EC2 (labs/ec2_lab.py) fail, for a while or for good, in `pscloud cluster down` and in the
undo of a failed `up`, or EC2 does not know yet what it has made: nothing is left, or it is named and goes by the next
`down`."""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "labs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import ec2_lab  # noqa: E402

import cloud_test  # noqa: E402
from launch_harness import PSCLOUD, SECONDS, until  # noqa: E402

# The calls that remove something.
REMOVALS = {"TerminateInstances", "CancelSpotInstanceRequests", "DeletePlacementGroup", "DeleteSecurityGroup",
            "DeleteSubnet", "DeleteKeyPair"}


@unittest.skipIf(ec2_lab.missing(), ec2_lab.missing())
class CloudRemoval(cloud_test.Cloud):
    """Without machines that run: EC2 says that they do."""

    def setUp(self):
        super().setUp()
        self.lab.boots = False

    def half_up(self, name):
        """A cluster whose machines run, and nobody is there any more."""
        process = self.start(*self.up_words(name, 3, "--spot", "--placement"))
        until(lambda: "running" in self.story(process), lambda: self.story(process))
        self.kill(process)

    def failing_up(self, name, faults, timeout):
        """All is made, then a look at it is refused, and all is removed again, with these faults."""
        looked = []

        def choose(number, action, form):
            if action == "DescribeInstances" and "RunInstances" in self.lab.calls and not looked:
                looked.append(number)
                return 400, "InvalidParameterValue"
            return faults(number, action, form) if looked else None
        self.lab.calls.clear()
        with self.faults(choose):
            return self.up(name, 3, "--spot", "--placement", "--timeout", timeout, code=1)

    def test_removing_calls_that_fail_for_a_while_are_made_again(self):
        """Each of them fails as often as one call is sent, in an undo and in `down`."""
        for kind, fault in {"broken": (500, "InternalError"), "lost": "lost"}.items():
            seen = {}

            def fail(_, action, __):
                if action not in REMOVALS:
                    return None
                seen[action] = seen.get(action, 0) + 1
                return fault if seen[action] <= int(self.environment["AWS_MAX_ATTEMPTS"]) else None
            with self.subTest(kind=kind, of="up"):
                self.assertIn("nothing was left", self.failing_up("undone", fail, SECONDS))
                self.assertEqual(set(seen), REMOVALS)
                self.assert_empty(kind)
            seen.clear()
            with self.subTest(kind=kind, of="down"):
                self.half_up("ended")
                with self.faults(fail):
                    self.assertIn("nothing is left", self.cluster_down("ended"))
                self.assertEqual(set(seen), REMOVALS)
                self.assert_empty(kind)

    def test_what_ec2_does_not_list_yet_is_removed_all_the_same(self):
        """Nor does it know by its name what is so young. The last machines are just made, or refused."""
        for end in ("refused", "interrupted", "killed"):
            process = None

            def choose(_, action, form):
                if action == "RunInstances" and "InstanceMarketOptions.MarketType" in form:
                    self.lab.young.lag_s = 0.5
                    return (400, "InvalidParameterValue") if end == "refused" else None
                return None

            def act(_, action, __):
                if self.lab.young.lag_s and process.poll() is None and action == "RunInstances":
                    process.send_signal(signal.SIGKILL if end == "killed" else signal.SIGINT)
            with self.subTest(end=end), self.faults(choose):
                self.lab.young.lag_s = 0
                self.lab.after_call = act if end != "refused" else None
                process = self.start(*self.up_words("young", 3, "--spot", "--placement", settle=2))
                self.ends(process, {"refused": 1, "interrupted": 130, "killed": -signal.SIGKILL}[end])
                if end == "killed":
                    self.assertIn("nothing is left", self.cluster_down("young", settle=2))
                else:
                    self.assertIn("nothing was left", self.story(process))
                self.assert_empty(end)

    def test_what_ec2_does_not_know_yet_is_asked_for_again(self):
        self.lab.young.lag_s = 0.5
        process = self.start(*self.up_words("young", 3, "--spot", "--placement"))
        until(lambda: "worker-1" in self.story(process), lambda: self.story(process))
        process.send_signal(signal.SIGINT)
        self.ends(process, 130)
        self.assertIn("nothing was left", self.story(process))
        self.assert_empty()
        calls = self.lab.calls
        self.assertGreater(calls.count("AuthorizeSecurityGroupIngress"), 1)
        self.assertGreater(calls.count("RunInstances"), 2)
        self.assertEqual((calls.count("CreateSecurityGroup"), calls.count("ImportKeyPair")), (1, 1))

    def test_a_call_that_hangs_is_given_up_and_what_it_has_done_is_removed(self):
        def hang(_, action, form):
            return "hangs" if action == "RunInstances" and "InstanceMarketOptions.MarketType" in form else None
        with self.faults(hang):
            story = self.up("hangs", 3, "--spot", "--timeout", 1, code=3)
        self.assertIn("EC2 RunInstances: ", story)
        self.assertIn("nothing was left", story)
        self.assert_empty()

    def test_a_throttle_of_all_calls_is_waited_for(self):
        self.half_up("slow")
        self.lab.calls.clear()
        with self.faults(lambda number, *_: (400, "Throttling") if number <= 8 else None):
            self.assertIn("nothing is left", self.cluster_down("slow"))
        self.assert_empty()

    def test_what_is_never_removed_is_named_and_goes_later(self):
        for action in sorted(REMOVALS):
            # One for which EC2 itself is the reason, until the time is over; it takes longer.
            fault = (500, "InternalError") if action == "DeleteKeyPair" else (400, "OperationNotPermitted")

            def never(_, asked, __):
                return fault if asked == action else None
            with self.subTest(action=action):
                story = self.failing_up("stays", never, 1)
                self.assertRegex(story, rf"left: .*{action}: status {fault[0]} {fault[1]}")
                self.assertIn("`pscloud cluster down stays` tries again", story)
                with self.faults(never):
                    down = self.start(PSCLOUD, "cluster", "down", "stays", "--settle", 0, "--timeout", 1)
                    self.ends(down, 1)
                self.assertRegex(self.story(down), rf"left: .*{action}: status {fault[0]} {fault[1]}")
                self.assertIn("`pscloud cluster down stays` tries again", self.story(down))
                self.cluster_down("stays")
                self.assert_empty(action)


if __name__ == "__main__":
    unittest.main()
