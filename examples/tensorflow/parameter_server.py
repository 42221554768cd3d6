#!/usr/bin/env python3
"""Linear regression with the parameter servers of TensorFlow 2, as its guide has it: nothing here knows of pscloud.

    pip install -r examples/tensorflow/requirements.txt
    pscloud run --framework tensorflow --chief --workers 2 --servers 1 -- \\
        python examples/tensorflow/parameter_server.py

Each task reads from TF_CONFIG what it is. Workers and servers serve until they are stopped: TensorFlow has no way to
end them, so the launcher does when the chief is done. A loop of its own, for Keras 3 knows no parameter servers.
"""

import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

WEIGHTS, BIAS = (2.0, -1.0, 0.5), 3.0  # to be found


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> None:
    config = tf.compat.v1.ConfigProto()
    # On a small machine there are fewer threads than functions that wait for each other.
    config.inter_op_parallelism_threads = max(4, resolver.cluster_spec().num_tasks("worker") + 1)
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                         config=config, protocol="grpc").join()


def examples(batch: int) -> tf.data.Dataset:
    """Made up, and without end."""
    def make(_step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x = tf.random.normal([batch, len(WEIGHTS)])
        return x, tf.linalg.matvec(x, tf.constant(WEIGHTS)) + BIAS + tf.random.normal([batch], stddev=0.01)
    return tf.data.Dataset.counter().map(make)


def train(resolver: tf.distribute.cluster_resolver.ClusterResolver, flags: argparse.Namespace) -> bool:
    """Asynchronous gradient descent; true if it has found what there is to find."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([len(WEIGHTS)]))
        bias = tf.Variable(0.0)

    @tf.function
    def step(iterator) -> tf.Tensor:
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, weights) + bias - y))
        for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
            variable.assign_sub(flags.rate * gradient)
        return loss

    rows = iter(coordinator.create_per_worker_dataset(lambda: examples(flags.batch)))
    losses = [coordinator.schedule(step, args=(rows,)) for _ in range(flags.steps)]
    coordinator.join()
    loss = coordinator.fetch(losses[-1])
    found = [*weights.numpy().tolist(), float(bias.numpy())]
    workers = resolver.cluster_spec().num_tasks("worker")
    print(f"{flags.steps} steps on {workers} workers, loss {loss:.5f}, found", *(f"{value:.2f}" for value in found))
    return all(abs(value - wanted) < 0.05 for value, wanted in zip(found, (*WEIGHTS, BIAS)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.05)
    flags = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    return 0 if train(resolver, flags) else 1


if __name__ == "__main__":
    sys.exit(main())
