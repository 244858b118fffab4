"""Messages to destinations of which one is slow and loses datagrams, over real sockets.

Loss is made by a rule of nftables in a network namespace of its own (loopback only), delay by a
proxy with a bounded buffer. Where namespaces or nft are not allowed, nothing is lost on the way,
and the test says so. What is judged are counts."""

import json
import os
import subprocess
import sys
import unittest

from destinations_testing import Destinations

INSIDE = "WEIR_TEST_NAMESPACE"
LOSSY = "127.0.0.2"
LOSS_PERCENT = 10
DELAY_S = 0.3
PROGRAM = os.path.join(os.environ["WEIR_BUILD"], "tests/integration/weir_test_fanout")
ENDS = ("sent", "failed", "dropped", "refused", "expired")
RULES = f"""table ip loss {{
  chain input {{
    type filter hook input priority 0;
    ip daddr {LOSSY} udp dport 1-65535 numgen random mod 100 < {LOSS_PERCENT} drop
  }}
}}
"""


def enter_namespace():
    """Runs this script again in a namespace, if that is possible."""
    if INSIDE in os.environ:
        return
    probe = subprocess.run(["unshare", "-rn", "sh", "-c", "ip link set lo up && nft -c -f -"],
                           input=RULES, text=True, capture_output=True, check=False)
    if probe.returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-rn", sys.executable, "-B", *sys.argv])
    print("no network namespace with nft: nothing is lost on the way", flush=True)


def prepare_network():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["nft", "-f", "-"], input=RULES, text=True, check=True)


def send(names, **options):
    """The row of each destination, in their order."""
    command = [PROGRAM]
    for name in names:
        command += ["--to", name]
    for name, value in options.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = json.loads(done.stdout)
    for row in rows[:2]:
        print(row, flush=True)
    return rows


def windows(seconds):
    """The most messages that a destination can acknowledge: 64 are on the way for 300 ms."""
    return 64 * (int(seconds / DELAY_S) + 1)


class DestinationsTest(unittest.TestCase):
    def assert_each_ends_once(self, rows):
        for row in rows:
            self.assertEqual(row["offered"], sum(row[end] for end in ENDS), row)

    def test_a_slow_and_lossy_destination_delays_no_other(self):
        lossy = INSIDE in os.environ
        with Destinations(6, delayed=DELAY_S, host=LOSSY if lossy else "127.0.0.1") as others:
            rows = send(others.names, rate=500, seconds=4, ack_ms=2000)
        self.assert_each_ends_once(rows)
        slow, fast = rows[0], rows[1:]
        for row in fast:
            self.assertEqual(row["sent"], row["offered"], row)
        self.assertIn(slow["worst"], ("overflow", "saturated"))
        # A window every 300 ms: less than it is offered, and far more than one at a time.
        self.assertGreater(slow["sent"], 100)
        self.assertLessEqual(slow["sent"], windows(4 + 2))
        if lossy:
            self.assertGreater(slow["failed"], 0, "lost on the way")
            self.assertGreater(slow["sent"], slow["failed"])

    def test_overflow_keeps_the_newest(self):
        with Destinations(1) as one:
            rows = send(one.names, burst=2000, drain_s=30)
            numbers = one.end()
        self.assert_each_ends_once(rows)
        self.assertEqual(rows[0]["worst"], "saturated")
        self.assertEqual(rows[0]["dropped"], 1400)
        # The queue has 500 places, first come, first served; the overflow ring the newest 100.
        self.assertEqual(numbers, list(range(500)) + list(range(1900, 2000)))

    def test_10000_updates_a_second_shed_low_and_keep_critical(self):
        with Destinations(1, delayed=DELAY_S) as one:
            rows = send(one.names, rate=10000, seconds=3, low=99, critical_every=500, ack_ms=10000,
                        drain_s=10)
        self.assert_each_ends_once(rows)
        row = rows[0]
        self.assertEqual(row["worst"], "saturated")
        offered, acknowledged = row["low"]
        self.assertGreater(offered, 29000)
        self.assertLessEqual(acknowledged, windows(3 + 10))
        self.assertEqual(row["critical_refused"], 0)
        self.assertEqual(row["critical"], [60, 60], "each one offered was acknowledged")
        # Normal ones are 100 a second, within what the destination takes: low ones make way.
        offered, acknowledged = row["normal"]
        self.assertGreater(offered, 250)
        self.assertEqual(acknowledged, offered)


if __name__ == "__main__":
    enter_namespace()
    if INSIDE in os.environ:
        prepare_network()
    unittest.main()
