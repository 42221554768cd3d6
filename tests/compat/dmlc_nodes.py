"""Reads what ps-lite, MXNet and BytePS read. All meet at the scheduler, which tells where the servers are."""

from meeting import answer_all, ask, listen, only

environment = only("DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER",
                   "DMLC_NODE_HOST", "PORT", "DMLC_WORKER_ID", "DMLC_SERVER_ID")
role = environment["DMLC_ROLE"]
root = environment["DMLC_PS_ROOT_URI"] + ":" + environment["DMLC_PS_ROOT_PORT"]
me = environment["DMLC_NODE_HOST"] + ":" + environment["PORT"]
servers, workers = int(environment["DMLC_NUM_SERVER"]), int(environment["DMLC_NUM_WORKER"])

if role == "scheduler":
    assert me == root
    nodes = answer_all(listen(root), servers + workers,
                       lambda said: sorted((one["id"], one["address"]) for one in said if one["role"] == "server"))
    for kind, count in (("server", servers), ("worker", workers)):
        assert sorted(one["id"] for one in nodes if one["role"] == kind) == list(range(count)), nodes
    print("sum", servers + workers)
elif role == "server":
    listener = listen(me)  # before anybody is told of it
    place = int(environment["DMLC_SERVER_ID"])
    found = ask(root, {"role": role, "id": place, "address": me})
    assert [place, me] in found, found
    answer_all(listener, workers, lambda said: sum(said) * (place + 1))
    print("sum", servers + workers)
else:
    index = int(environment["DMLC_WORKER_ID"])
    found = ask(root, {"role": role, "id": index, "address": me})
    print("sum", sum(ask(address, index + 1) for _, address in found))
