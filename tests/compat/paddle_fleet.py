"""Reads what PaddleCloudRoleMaker of today reads: with servers as parameter servers, without as a collective."""

from meeting import answer_all, ask, exchange, listen, only, wait_to_be_stopped

environment = only("TRAINING_ROLE", "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID",
                   "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "PADDLE_PORT", "POD_IP", "PADDLE_GLOBAL_SIZE",
                   "PADDLE_GLOBAL_RANK", "PADDLE_LOCAL_SIZE", "PADDLE_LOCAL_RANK", "PADDLE_MASTER")
trainers = environment["PADDLE_TRAINER_ENDPOINTS"].split(",")
assert len(trainers) == int(environment["PADDLE_TRAINERS_NUM"])
me = environment["POD_IP"] + ":" + environment["PADDLE_PORT"]
servers = environment.get("PADDLE_PSERVERS_IP_PORT_LIST", "")

if environment["TRAINING_ROLE"] == "PSERVER":
    place = servers.split(",").index(me) + 1
    answer_all(listen(me), len(trainers), lambda said: sum(said) * place)
    wait_to_be_stopped()
else:
    index = int(environment["PADDLE_TRAINER_ID"])
    assert trainers[index] == me == environment["PADDLE_CURRENT_ENDPOINT"]
    total = exchange(me, trainers)
    if servers:
        total = sum(ask(server, index + 1) for server in servers.split(","))
    else:
        assert environment["PADDLE_MASTER"] == trainers[0]
        assert (environment["PADDLE_GLOBAL_RANK"], environment["PADDLE_GLOBAL_SIZE"]) == (
            str(index), environment["PADDLE_TRAINERS_NUM"])
        assert int(environment["PADDLE_LOCAL_RANK"]) < int(environment["PADDLE_LOCAL_SIZE"])
    print("sum", total)
