#!/usr/bin/python3
"""The same attacks by a tool that others wrote, slowhttptest, and honest load by wrk, alone and
while the attack goes on. What must hold is in attack.py."""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile

import attack
from attack import AttackTest
from catalog import against

CONNECTIONS = 100


class Tools(AttackTest):
    tight = 48 << 20  # 512 write buffers, for a hundred who read slowly

    def slowhttptest(self, server, path, *options):
        """Runs it for at most four seconds; the rows of its own protocol, numbers as numbers."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "slow")
            command = ["slowhttptest", "-c", CONNECTIONS, "-r", CONNECTIONS, "-l", 4, "-p", 2,
                       "-g", "-o", out, "-v", 0, "-u", f"http://127.0.0.1:{server.port}{path}",
                       *options]
            subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, timeout=40,
                           stdin=subprocess.DEVNULL, check=False)
            with out.with_suffix(".csv").open(newline="") as rows:
                found = list(csv.DictReader(rows))
        self.assertTrue(found, "slowhttptest wrote nothing")
        return found

    def wrk(self, server, path, *options):
        command = ["wrk", "-t", "1", "-c", "16", "-d", "2", *options,
                   f"http://127.0.0.1:{server.port}{path}"]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=40,
                              check=True).stdout

    def assert_probe_was_served(self, rows):
        """slowhttptest asks by itself, beside its attack, whether the service still answers."""
        column = next(name for name in rows[0] if "available" in name.lower())
        unavailable = [row for row in rows if row[column] in ("0", "")]
        self.assertFalse(unavailable, f"its probe found the service gone: {rows}")

    @against(18)
    def test_slowhttptest_slow_headers(self):
        server = self.start("--header-timeout-ms", 1000, "--max-connections", 256)
        with self.attack(server):
            rows = self.slowhttptest(server, "/", "-H", "-i", 1, "-x", 10)
        self.assert_probe_was_served(rows)
        self.assertGreaterEqual(server.stats()["closed"]["header_timeout"], CONNECTIONS * 0.9)

    @against(19)
    def test_slowhttptest_slow_bodies(self):
        server = self.start("--body-timeout-ms", 1000, "--body-min-rate", 1000,
                            "--max-connections", 256, "--arenas", 8)
        with self.attack(server):
            rows = self.slowhttptest(server, "/echo", "-B", "-i", 1, "-s", 8192, "-x", 10)
            self.assertEqual(server.stats()["arenas"]["used"], 0)
        self.assert_probe_was_served(rows)
        self.assertGreaterEqual(server.stats()["closed"]["body_timeout"], CONNECTIONS * 0.9)

    @against(20)
    def test_slowhttptest_slow_reading(self):
        server = self.start("--write-timeout-ms", 1000, "--write-min-rate", 4000,
                            "--max-connections", 256, "--write-buffers", 512,
                            "--send-buffer", 32768)
        with self.attack(server):
            rows = self.slowhttptest(server, "/bytes/10000000", "-X", "-w", 256, "-y", 512,
                                     "-n", 1, "-z", 32, "-k", 1)
            stats = server.stats()
            self.assertEqual(stats["write_buffers"]["exhausted"], 0, "the pool was drained")
        self.assert_probe_was_served(rows)
        closed = server.stats()["closed"]
        self.assertGreaterEqual(closed["write_timeout"] + closed["backpressure"],
                                CONNECTIONS * 0.9)

    @against(20)
    def test_slowhttptest_overlapping_ranges(self):
        server = self.start("--max-connections", 256)
        before = server.stats()
        with self.attack(server):
            rows = self.slowhttptest(server, "/bytes/2000", "-R", "-a", 1, "-b", 500)
        self.assert_probe_was_served(rows)
        after = server.stats()
        # Whether a head of a thousand ranges fits (the Range is ignored) or not (431): one answer
        # each, and nothing of the amplification it hopes for.
        sent = after["bytes_sent"] - before["bytes_sent"]
        asked = after["requests"] - before["requests"] + after["responses_4xx"]
        self.assertLess(sent, (asked + 10) * 4096)

    @against()
    def test_wrk_finds_no_error_under_load(self):
        server = self.start("--max-connections", 64)
        with self.attack(server):
            report = self.wrk(server, "/")
        self.assertNotIn("Socket errors", report)
        self.assertNotIn("Non-2xx", report)
        served = int(re.search(r"(\d+) requests in", report).group(1))
        self.assertGreater(served, 100)
        self.assertGreaterEqual(server.stats()["responses_2xx"], served)

    @against(18)
    def test_wrk_finds_no_error_while_slow_heads_hold_half_of_the_places(self):
        server = self.start("--header-timeout-ms", 20000, "--max-connections", 128)
        with self.attack(server):
            drips = [server.connect() for _ in range(60)]
            for s in drips:
                s.sendall(b"GET / HTTP/1.1\r\nhost:")
            report = self.wrk(server, "/bytes/100000")
            for s in drips:
                s.close()
        self.assertNotIn("Socket errors", report)
        self.assertNotIn("Non-2xx", report)


if __name__ == "__main__":
    attack.raise_open_files()
    attack.main(sys.argv)
