"""The JSON Schema of weir.toml says the same as `weir check`.

tests/corpus/config: good/ both accept, bad/ both refuse, together/ only `weir check` refuses: no
schema can say what options mean together, nor the range of a size or a time written as text.
"""

import glob
import json
import os
import re
import subprocess
import tempfile
import tomllib
import unittest

import jsonschema

from processes import WEIR

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CORPUS = os.path.join(SOURCE, "tests", "corpus", "config")


def weir(*arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    return subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=20,
                          env=environment)


def read(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def options_of(table, path=""):
    """(key, schema) of every option in a table of the schema."""
    for name, inner in table["properties"].items():
        key = f"{path}.{name}" if path else name
        if inner.get("type") == "object":
            yield from options_of(inner, key)
        elif inner.get("type") == "array" and inner["items"].get("type") == "object":
            yield from options_of(inner["items"], f"{key}[0]")
        else:
            yield key, inner


def range_of(option):
    for one in option.get("anyOf", [option]):
        if "minimum" in one:
            return one["minimum"], one["maximum"], one["type"] == "integer"
    return None


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        printed = weir("check", "--print-schema")
        assert printed.returncode == 0, printed.stderr
        cls.schema = json.loads(printed.stdout)
        jsonschema.Draft7Validator.check_schema(cls.schema)
        cls.judge = jsonschema.Draft7Validator(cls.schema)

    def verdicts(self, path):
        checked = weir("check", path)
        self.assertIn(checked.returncode, (0, 2), checked.stderr)
        return checked.returncode == 0, self.judge.is_valid(read(path))

    def test_the_corpus(self):
        for folder, expected in (("good", (True, True)), ("bad", (False, False)),
                                 ("together", (False, True))):
            files = glob.glob(os.path.join(CORPUS, folder, "*.toml"))
            self.assertGreater(len(files), 5)
            for path in files:
                with self.subTest(os.path.relpath(path, SOURCE)):
                    self.assertEqual(self.verdicts(path), expected)

    def test_examples_and_printed_defaults_are_good(self):
        files = glob.glob(os.path.join(SOURCE, "examples", "config", "*.toml"))
        self.assertGreater(len(files), 3)
        for path in files:
            with self.subTest(path):
                self.assertTrue(self.judge.is_valid(read(path)))
        defaults = tomllib.loads(weir("check", "--print-defaults").stdout)
        self.assertEqual(list(self.judge.iter_errors(defaults)), [])
        for key, option in options_of(self.schema):
            if "[" in key:
                continue
            value = defaults
            for part in key.split("."):
                value = value[part]
            self.assertEqual(value, option["default"], key)

    def refused(self, values):
        """The keys that weir check, and that the schema, refuse in a file of these values."""
        lines = {}
        for key, value in values.items():
            section, name = key.rsplit(".", 1)
            lines.setdefault(section, []).append(f"{name} = {value}")
        text = ""
        # A table inside of [[upstream]] follows it.
        for section, entries in sorted(lines.items(), key=lambda entry: entry[0].split("[")[0]):
            header = f"[[{section[:-3]}]]" if section.endswith("[0]") else f"[{section}]"
            text += "\n".join([header.replace("[0].", "."), *entries]) + "\n"
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            said = weir("check", file.name).stderr
            by_check = set(re.findall(r"^\S+:\d+: ([a-z0-9_.\[\]]+) = ", said, re.M))
            by_schema = set()
            for error in self.judge.iter_errors(read(file.name)):
                if error.validator == "required":
                    continue
                key = ""
                for part in list(error.absolute_path):
                    if isinstance(part, int):
                        if part == 0 and key in ("upstream", "route"):
                            key += "[0]"
                        continue
                    key += ("." if key else "") + part
                by_schema.add(key)
            return by_check, by_schema

    def test_both_refuse_the_same_options_out_of_their_ranges(self):
        for step, bound in ((-1, 0), (1, 1)):
            values = {}
            for key, option in options_of(self.schema):
                found = range_of(option)
                if found:
                    values[key] = found[bound] + (step if found[2] else step / 2)
            self.assertGreater(len(values), 100)
            by_check, by_schema = self.refused(values)
            self.assertEqual(by_schema, set(values))
            self.assertLessEqual(by_schema, by_check)

    def test_both_refuse_the_same_options_of_another_kind(self):
        values = {key: "[1]" for key, _ in options_of(self.schema)}
        self.assertGreater(len(values), 150)
        by_check, by_schema = self.refused(values)
        self.assertEqual(by_schema, set(values))
        self.assertLessEqual(by_schema, by_check)


if __name__ == "__main__":
    unittest.main()
