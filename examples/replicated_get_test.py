"""A value comes from cache, local store, its owner or, if the owner is slow, a replica as well."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
KEYS = 120


def run(**options):
    """{first word of a line: its other words}"""
    command = [PROGRAM, "--keys", str(KEYS)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def reads(table, source):
    return int(table[source][0])


class ReplicatedGet(unittest.TestCase):
    def assert_every_key_was_fetched_once(self, table):
        self.assertEqual(reads(table, "local"), 1)
        self.assertEqual(reads(table, "owner") + reads(table, "hedged"), KEYS - 1)
        self.assertEqual(reads(table, "cache"), KEYS)

    def test_replicas_answer_for_a_slow_owner(self):
        table = run(slow_ms=2000)
        self.assert_every_key_was_fetched_once(table)
        asked, answered, aborted = (int(word) for word in table["slow"])
        self.assertGreater(asked, 0)
        # Its keys came from a replica, and its handler learned that nobody waits any more. (A
        # request that began before the replica's connection was ready waits for its answer.)
        self.assertGreaterEqual(aborted, asked - 2)
        self.assertLessEqual(answered, 2)
        # Nobody is asked but owners and hedges.
        total = sum(int(table[node][0]) for node in ("slow", "second", "third"))
        self.assertEqual(total, KEYS - 1 + int(table["hedges"][0]))

    def test_without_hedging_the_owner_is_waited_for(self):
        table = run(slow_ms=20, hedge=0)
        self.assert_every_key_was_fetched_once(table)
        self.assertEqual(reads(table, "hedged"), 0)
        self.assertEqual(table["hedges"][0], "0")
        self.assertEqual(table["slow"][2], "0")
        total = sum(int(table[node][0]) for node in ("slow", "second", "third"))
        self.assertEqual(total, KEYS - 1)

    def test_unknown_options_are_refused(self):
        done = subprocess.run([PROGRAM, "--nonsense", "1"], capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
