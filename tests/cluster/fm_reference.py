"""A factorization machine in NumPy, trained as `pscloud train` says it does, by one worker and in double precision.

    fm_reference.py train-0 test-0 --dim 4 --passes 3    prints the logloss on the second file

Weights by FTRL, embeddings by AdaGrad; a key has an embedding once it was seen more than `threshold` times and while
its weight is not zero. All examples must have equally many features.
"""

import argparse
import pathlib

import numpy


def read_libsvm(path):
    """Labels of 0 or 1, keys and values: arrays of a row for each line."""
    text = pathlib.Path(path).read_text()
    numbers = numpy.array(text.replace(":", " ").split(), dtype=numpy.float64).reshape(text.count("\n"), -1)
    return (numbers[:, 0] > 0).astype(float), numbers[:, 1::2].astype(numpy.int64), numbers[:, 2::2]


class FactorizationMachine:
    def __init__(self, keys, options):
        """`keys` are below this number."""
        self.options = options
        self.weights, self.z, self.s = numpy.zeros(keys), numpy.zeros(keys), numpy.zeros(keys)
        random = numpy.random.default_rng(options.seed)
        self.embeddings = random.uniform(-options.init_scale, options.init_scale, (keys, options.dim))
        self.squares = numpy.zeros((keys, options.dim))
        self.counts = numpy.zeros(keys)

    def embedded(self, keys):
        return (self.counts[keys] > self.options.threshold) & (self.weights[keys] != 0)

    def score(self, keys, values):
        """Scores; and of each row its features' embeddings times their values, and the sum of these."""
        products = self.embeddings[keys] * (values * self.embedded(keys))[:, :, None]
        sums = products.sum(axis=1)
        pairs = (sums ** 2 - (products ** 2).sum(axis=1)).sum(axis=1) / 2
        return (self.weights[keys] * values).sum(axis=1) + pairs, products, sums

    def learn(self, labels, keys, values, count):
        different, numbers = numpy.unique(keys, return_inverse=True)
        numbers = numbers.ravel()
        if count:
            self.counts[different] += numpy.bincount(numbers)
        scores, products, sums = self.score(keys, values)
        steps = (1 / (1 + numpy.exp(-scores)) - labels)[:, None] * values
        per_feature = steps[:, :, None] * (sums[:, None, :] - products)
        of_embeddings = numpy.stack([numpy.bincount(numbers, per_feature[:, :, k].ravel())
                                     for k in range(self.options.dim)], axis=1)
        mine = self.embedded(different)
        self.update_embeddings(different[mine], of_embeddings[mine])
        self.update_weights(different, numpy.bincount(numbers, steps.ravel()))

    def update_embeddings(self, keys, gradient):
        gradient = gradient + self.options.lambda_l2 * self.embeddings[keys]
        self.squares[keys] += gradient ** 2
        self.embeddings[keys] -= self.options.alpha / (numpy.sqrt(self.squares[keys]) + self.options.beta) * gradient

    def update_weights(self, keys, gradient):
        alpha, beta, lambda1 = 0.1, 1.0, self.options.lambda1
        before = self.s[keys]
        self.s[keys] = numpy.sqrt(before ** 2 + gradient ** 2)
        self.z[keys] += gradient - (self.s[keys] - before) / alpha * self.weights[keys]
        z = self.z[keys]
        shrunk = numpy.sign(z) * numpy.maximum(numpy.abs(z) - lambda1, 0)
        self.weights[keys] = -shrunk / ((beta + self.s[keys]) / alpha)

    def logloss(self, labels, keys, values):
        scores = self.score(keys, values)[0]
        return numpy.logaddexp(0, numpy.where(labels > 0, -scores, scores)).mean()


def logloss_after_training(train, test, options):
    labels, keys, values = read_libsvm(train)
    held_out = read_libsvm(test)
    machine = FactorizationMachine(1 + max(keys.max(), held_out[1].max()), options)
    for number in range(options.passes):
        for first in range(0, len(labels), options.minibatch):
            some = slice(first, first + options.minibatch)
            machine.learn(labels[some], keys[some], values[some], count=number == 0)
    return machine.logloss(*held_out)


def options_of(words):
    parser = argparse.ArgumentParser()
    for name, default in (("dim", 4), ("threshold", 5), ("passes", 3), ("minibatch", 100), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("alpha", 0.2), ("beta", 1.0), ("lambda_l2", 0.0), ("init_scale", 0.01), ("lambda1", 0.1)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("files", nargs="*")
    return parser.parse_args(words)


if __name__ == "__main__":
    import sys
    chosen = options_of(sys.argv[1:])
    print(logloss_after_training(*chosen.files, chosen))
