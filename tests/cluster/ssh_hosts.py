"""Tests whose jobs run on hosts by ssh, each a machine of its own (labs/ssh_lab.py)."""

from launch_harness import LaunchTest, until


class OnSshHosts(LaunchTest):
    """`lab` is made by setUpClass() of who is one."""

    @classmethod
    def use(cls, lab):
        cls.lab = lab
        cls.outside = staticmethod(lambda words: lab.outside_command(*words))

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()

    def setUp(self):
        super().setUp()
        self.on = self.lab.cluster_file(self.home / "cluster.json")
        self.before = {machine.name: set(self.lab.processes_of(machine)) for machine in self.lab.machines}

    def assert_nothing_left(self):
        for machine in self.lab.machines:
            left = lambda: set(self.lab.processes_of(machine)) - self.before[machine.name]  # noqa: E731
            until(lambda: not left(), lambda: f"the end of {left()} on {machine.name}")
            root = self.lab.root_of(machine)
            self.assertEqual([path for path in root.glob("tmp/*") if path.name != self.lab.folder.name], [])
