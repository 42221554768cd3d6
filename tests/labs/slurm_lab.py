"""A real Slurm cluster on one computer, for tests: slurmctld, and a slurmd on each of several machines (machines.py)
over this computer's own root. Needs root, slurmctld, slurmd, slurm-client and munge (tools/setup.sh labs).

    tests/labs/slurm_lab.py 4       # brings up four machines, says how to enter them, and keeps them until Enter
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from machines import Lab, missing as nothing_for_machines, show, until  # noqa: E402

# Machines with four pretended cores. What is left of a job is asked for by our tests: MinJobAge keeps it a while.
# A power cut is noticed after ten seconds.
CONFIG = """ClusterName=lab
SlurmctldHost=host1({network}.1)
AuthType=auth/munge
CredType=cred/munge
SlurmUser=root
StateSaveLocation=/var/lib/slurm/ctld
SlurmdSpoolDir=/var/lib/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge=60
SlurmdParameters=config_overrides
NodeName=host[1-{count}] NodeAddr={network}.[1-{count}] CPUs=4 RealMemory=1024 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=NO
PartitionName=small Nodes=host1 MaxTime=60 State=UP OverSubscribe=NO
"""

# The autodetection of cgroups fails where /sys/fs/cgroup is not mounted. munged refuses to run as root.
INIT = """mkdir -p /etc/slurm /var/lib/slurm/ctld /var/lib/slurm/d /run/munge
cat > /etc/slurm/slurm.conf <<'CONFIG'
{config}CONFIG
echo CgroupPlugin=cgroup/v1 > /etc/slurm/cgroup.conf
printf '%s' {key} > /etc/munge/munge.key
chown -R munge: /etc/munge /run/munge /var/log/munge /var/lib/munge
chmod 400 /etc/munge/munge.key; chmod 755 /run/munge
setpriv --reuid=munge --regid=munge --clear-groups munged --force
{controller}
slurmd -N host{number}
sleep infinity & while :; do wait; done
"""


def missing():
    """Why there can be no lab here; None if there can."""
    return nothing_for_machines("slurmctld", "slurmd", "sbatch", "munged")


class SlurmLab(Lab):
    def __init__(self, count=4, binds=None):
        network = "10.80.0"
        config = CONFIG.format(network=network, count=count)
        key = os.urandom(512).hex()

        def init(number):
            return INIT.format(config=config, key=key, number=number, controller="slurmctld" if number == 1 else "")
        super().__init__("slurm", network, "/", count, init, binds)
        try:
            until(lambda: self.idle() == count, lambda: f"Slurm of {count}: {self.logs()}")
        except BaseException:
            self.down()
            raise

    def idle(self):
        return self.first.run(["sinfo", "--noheader", "--Node", "--partition=main", "--format=%T"],
                              check=False).stdout.split().count("idle")

    def jobs(self):
        """Those that wait or run, by name."""
        return self.first.run(["squeue", "--noheader", "--format=%j"]).stdout.split()


if __name__ == "__main__":
    show(SlurmLab, missing(), 4)
