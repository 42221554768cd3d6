#!/usr/bin/env python3
"""What `make bench` calls slower, and what it keeps."""

import unittest

import run
from run import Figure


class Slower(unittest.TestCase):
    def test_only_what_does_not_overlap_and_is_more_than_a_tenth(self):
        last = Figure(False, [1.0, 1.1, 1.2])
        self.assertAlmostEqual(Figure(False, [1.5, 1.6, 1.7]).worse_than(last), 1.6 / 1.1 - 1)
        self.assertEqual(Figure(False, [1.0, 1.6, 1.7]).worse_than(last), 0)  # one round was as fast as before
        self.assertEqual(Figure(False, [1.15, 1.18, 1.19]).worse_than(last), 0)  # within what was seen before
        self.assertEqual(Figure(False, [1.11, 1.11, 1.12]).worse_than(Figure(False, [1.1])), 0)  # too little
        self.assertEqual(Figure(False, [0.5]).worse_than(last), 0)

    def test_where_more_is_better_it_is_the_other_way(self):
        last = Figure(True, [50, 60, 70])
        self.assertAlmostEqual(Figure(True, [30, 40, 45]).worse_than(last), 60 / 40 - 1)
        self.assertEqual(Figure(True, [80]).worse_than(last), 0)


class History(unittest.TestCase):
    def test_the_newest_of_each_figure_of_this_machine_counts(self):
        def entry(machine, **figures):
            return {"machine": machine, "figures": {name: {"higher_is_better": False, "values": values}
                                                    for name, values in figures.items()}}
        history = [entry("a", x=[1], y=[2]), entry("b", x=[9]), entry("a", x=[3])]
        last = run.last_of(history, "a")
        self.assertEqual((last["x"].values, last["y"].values), ([3], [2]))
        self.assertEqual(run.last_of(history, "c"), {})


if __name__ == "__main__":
    unittest.main()
