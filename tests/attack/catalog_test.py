#!/usr/bin/python3
"""Every known attack has a test, and every test of one says which it is."""

import importlib
import unittest

import catalog


class Catalog(unittest.TestCase):
    def test_no_attack_is_without_a_test(self):
        found = {}
        for suite in catalog.SUITES:
            for test, numbers in catalog.tests_of(importlib.import_module(suite)):
                with self.subTest(test):
                    self.assertIsNotNone(numbers, "against what?")
                    for number in numbers:
                        found.setdefault(number, []).append(test)
        self.assertEqual(set(found), set(catalog.ATTACKS))
        for number, tests in sorted(found.items()):
            print(f"{number:2} {catalog.ATTACKS[number]}")
            for test in tests:
                print(f"     {test}")


if __name__ == "__main__":
    unittest.main()
