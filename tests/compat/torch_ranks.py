"""Reads what torch.distributed reads. All meet at rank 0, which sees that the numbers of every machine are complete."""

import collections

from meeting import answer_all, ask, listen, only

NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
           "ROLE_WORLD_SIZE")
environment = only("MASTER_ADDR", "MASTER_PORT", "ROLE_NAME", *NUMBERS)
mine = {name: int(environment[name]) for name in NUMBERS} | {"ROLE_NAME": environment["ROLE_NAME"]}
assert all(environment[name] == str(mine[name]) for name in NUMBERS)
master = environment["MASTER_ADDR"] + ":" + environment["MASTER_PORT"]


def check(everybody):
    assert sorted(one["RANK"] for one in everybody) == list(range(mine["WORLD_SIZE"])), everybody
    for group, rank, size in (("GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
                              ("ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE")):
        ranks = collections.defaultdict(list)
        for one in everybody:
            ranks[one[group], one[size]].append(one[rank])
        for (_, count), found in ranks.items():
            assert sorted(found) == list(range(count)), everybody
    return sum(one["RANK"] + 1 for one in everybody)


if mine["RANK"] == 0:
    said = answer_all(listen(master), mine["WORLD_SIZE"] - 1, lambda said: check([mine, *said]))
    print("sum", check([mine, *said]))
else:
    print("sum", ask(master, mine))
