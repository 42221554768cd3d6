"""Reads what a program of TensorFlow reads. If there is a chief, only it ends by itself, as with a real server."""

import json

from meeting import exchange, only, wait_to_be_stopped

environment = only("TF_CONFIG", "GRPC_FAIL_FAST", "CUDA_VISIBLE_DEVICES")
config = json.loads(environment["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
assert environment["GRPC_FAIL_FAST"] == "use_caller"
assert (environment.get("CUDA_VISIBLE_DEVICES") == "") == (task["type"] == "ps")
me = cluster[task["type"]][task["index"]]

if task["type"] == "evaluator":
    print("sees", sum(len(job) for job in cluster.values()))
    wait_to_be_stopped()
else:
    assert "evaluator" not in cluster
    print("sum", exchange(me, [address for job in sorted(cluster) for address in cluster[job]]))
    if task["type"] == "ps" or (task["type"] == "worker" and "chief" in cluster):
        wait_to_be_stopped()
