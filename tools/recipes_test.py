#!/usr/bin/env python3
"""Follows the recipes of docs/design/config.md: the word of each sample stands in the production
files that the recipe lists, and in no other."""

import os
import re
import sys
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
SAMPLE = re.compile(r"^Sample: `(\w+)`:((?:\s+`[^`\n]+`)+)", re.M)
NOT_PRODUCTION = re.compile(r"_(test|testing|bench)\.\w+$")


def production_files():
    for top in ("src", "internal", "include", "apps"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith((".cc", ".h", ".def")) and not NOT_PRODUCTION.search(name):
                    yield os.path.join(folder, name)


class Recipes(unittest.TestCase):
    def test_each_sample_stands_in_the_files_that_its_recipe_lists(self):
        with open(os.path.join(ROOT, "docs/design/config.md"), encoding="utf-8") as file:
            samples = SAMPLE.findall(file.read())
        self.assertGreaterEqual(len(samples), 5)
        texts = {}
        for path in production_files():
            with open(path, encoding="utf-8") as file:
                texts[os.path.relpath(path, ROOT)] = file.read()
        for word, files in samples:
            # Types and enumerators of the sample begin with a capital letter, or kCapital.
            capital = word[0].upper() + word[1:]
            pattern = re.compile(rf"(?<![a-z]){word}(?![a-z])|k?{capital}(?![a-z])")
            found = sorted(path for path, text in texts.items() if pattern.search(text))
            with self.subTest(word):
                self.assertEqual(found, sorted(re.findall(r"`([^`]+)`", files)))


if __name__ == "__main__":
    sys.exit(unittest.main())
