#!/usr/bin/env python3
"""The arithmetic of tools/bench.py on a made-up report."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bench  # noqa: E402


def row(name, time, unit="ns", family=0, **more):
    return {"run_name": name, "run_type": "iteration", "cpu_time": time, "real_time": 2 * time,
            "time_unit": unit, "family_index": family, **more}


def summary(*rows):
    return {r["name"]: r for r in bench.summarise("p", {"benchmarks": list(rows)})}


class Summary(unittest.TestCase):
    def test_median_and_quartiles_over_repetitions(self):
        got = summary(*(row("a", t) for t in (5, 1, 3, 2, 4)))["a"]
        self.assertEqual((got["median_ns"], got["quartiles_ns"]), (3, [2, 4]))
        self.assertEqual((got["min_ns"], got["max_ns"], got["repetitions"]), (1, 5, 5))
        self.assertAlmostEqual(got["spread"], 2 / 3)

    def test_units_become_nanoseconds(self):
        self.assertEqual(summary(row("a", 2, "us"))["a"]["median_ns"], 2000)

    def test_real_time_where_the_benchmark_asks_for_it(self):
        self.assertEqual(summary(row("a/real_time", 3))["a/real_time"]["median_ns"], 6)

    def test_ratio_to_the_mutex_pair_with_as_many_threads(self):
        got = summary(row("mutex_pair/real_time/threads:1", 5),
                      row("mutex_pair/real_time/threads:8", 50),
                      row("a/real_time/threads:8", 100), row("b", 20))
        self.assertEqual(got["a/real_time/threads:8"]["ratio"], 2)
        self.assertEqual(got["b"]["ratio"], 2)

    def test_no_yardstick_no_ratio(self):
        self.assertIsNone(summary(row("a", 1))["a"]["ratio"])

    def test_aggregates_and_errors_are_no_samples(self):
        got = summary(row("a", 1), row("a", 99, run_type="aggregate"),
                      row("b", 1, error_occurred=True))
        self.assertEqual(list(got), ["a"])
        self.assertEqual(got["a"]["repetitions"], 1)

    def test_order_of_definition(self):
        self.assertEqual(list(summary(row("z", 1, family=0), row("a", 1, family=1))), ["z", "a"])


class Against(unittest.TestCase):
    def test_median_of_ratios_not_ratio_of_medians(self):
        pairs = [({"a": 1}, {"a": 2}), ({"a": 10}, {"a": 11}), ({"a": 100}, {"a": 90})]
        self.assertEqual(bench.median_ratios(pairs), {"a": 1.1})

    def test_only_what_both_builds_have(self):
        pairs = [({"a": 1, "old": 1}, {"a": 1, "new": 1})] * 9
        self.assertEqual(list(bench.median_ratios(pairs)), ["a"])


class Scripts(unittest.TestCase):
    def test_every_program_in_bench_can_be_named(self):
        programs = {path.stem for path in (bench.ROOT / "bench").glob("*.py")
                    if "__main__" in path.read_text(encoding="utf-8")}
        self.assertIn("compare", programs)
        self.assertEqual(set(bench.macro_scripts()), programs)


if __name__ == "__main__":
    unittest.main()
