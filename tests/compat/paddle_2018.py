"""Reads what the images of Paddle's tool for Amazon's machines read in 2018: all ten names."""

from meeting import answer_all, ask, listen, only, wait_to_be_stopped

environment = only("TASK_NAME", "TRAINING_ROLE", "PSERVER_HOSTS", "PSERVERS", "TRAINERS", "TRAINER_COUNT",
                   "TRAINER_INDEX", "MASTER_ENDPOINT", "SERVER_ENDPOINT", "PADDLE_INIT_TRAINER_ID")
servers = environment["PSERVERS"].split(",")
trainers = int(environment["TRAINERS"])
assert environment["PSERVER_HOSTS"] == environment["PSERVERS"]
assert environment["TRAINER_COUNT"] == environment["TRAINERS"] == str(trainers)
assert environment["TASK_NAME"] and "MASTER_ENDPOINT" in environment

if environment["TRAINING_ROLE"] == "PSERVER":
    assert environment["TRAINER_INDEX"] == "0"
    me = environment["SERVER_ENDPOINT"]
    place = servers.index(me) + 1
    answer_all(listen(me), trainers, lambda said: sum(said) * place)
    wait_to_be_stopped()
else:
    index = int(environment["TRAINER_INDEX"])
    assert environment["PADDLE_INIT_TRAINER_ID"] == environment["TRAINER_INDEX"] and index < trainers
    print("sum", sum(ask(server, index + 1) for server in servers))
