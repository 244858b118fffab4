"""One destination is dead and one is slow: the others get every message, and all are counted."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
RATE = 400
COLUMNS = ("offered", "sent", "failed", "dropped", "refused", "expired")


def run(*options):
    """{destination: {column: number, "worst": state}}"""
    done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=100,
                          check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    rows = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] in ("dead", "slow", "others") and len(words) == 8:
            rows[words[0]] = dict(zip(COLUMNS, map(int, words[2:])), worst=words[1])
    return rows


class MessageFanout(unittest.TestCase):
    def test_a_dead_and_a_slow_destination_delay_no_other(self):
        rows = run("--seconds", "4", "--rate", str(RATE))
        for name, row in rows.items():
            ends = sum(row[column] for column in COLUMNS[1:])
            self.assertEqual(row["offered"], ends, f"{name}: each message ends exactly once")
        others, dead, slow = rows["others"], rows["dead"], rows["slow"]
        self.assertEqual(others["sent"], others["offered"])
        self.assertEqual(others["offered"], 98 * dead["offered"])
        self.assertEqual(dead["sent"], 0)
        self.assertIn(dead["worst"], ("overflow", "saturated"))
        self.assertGreater(dead["dropped"] + dead["expired"], 0)
        # A window of 64 every 300 ms is about 213 a second; one at a time would be 3.
        self.assertGreater(slow["sent"], 100)
        self.assertLess(slow["sent"], slow["offered"])

    def test_unknown_options_are_refused(self):
        done = subprocess.run([PROGRAM, "--nonsense", "1"], capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
