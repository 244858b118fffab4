"""A flood of updates takes every unit of the limit; every probe is answered."""

import multiprocessing
import os
import random
import select
import socket
import sys
import unittest

from example_process import Example

PROGRAM = sys.argv.pop(1)
PROBES = 4000
WINDOW = 8  # probes on the way at once: few enough for any socket buffer
PATIENCE_S = 10
SEED = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))


def flood(port, seed, under_way, stop):
    """Updates as fast as the system takes them; says when there are far more than the limit."""
    rng = random.Random(seed)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("127.0.0.1", port))
    updates = [b"U" + b"x" * rng.randrange(1400) for _ in range(100)]
    while not stop.is_set():
        for _ in range(1000):
            try:
                sender.send(rng.choice(updates))
            except OSError:  # a full queue of the system's: that is the point
                pass
        under_way.set()


class Prober:
    """Sends probes, each once, at most WINDOW of them ahead of their answers."""

    def __init__(self, port, seed):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.rng = random.Random(seed)
        self.sent = 0
        self.answered = set()
        self.twice = 0

    def take_answers(self, seconds):
        """Those that are there, the first of them within so many seconds; whether one came."""
        came = False
        while select.select([self.socket], [], [], seconds)[0]:
            data = self.socket.recv(2048)
            assert data[:1] == b"A", data
            number = int(data[1:])
            self.twice += number in self.answered
            self.answered.add(number)
            came, seconds = True, 0
        return came

    def run(self, wanted):
        while len(self.answered) < wanted:
            window = self.rng.randint(1, WINDOW)
            while self.sent < min(wanted, len(self.answered) + window):
                self.socket.send(b"P%d" % self.sent)
                self.sent += 1
            if not self.take_answers(PATIENCE_S):
                return


class UdpResponder(unittest.TestCase):
    def probe_under_flood(self, flooders):
        print(f"WEIR_TEST_SEED={SEED}")
        stop = multiprocessing.Event()
        under_way = [multiprocessing.Event() for _ in range(flooders)]
        with Example(PROGRAM) as server:
            processes = [multiprocessing.Process(target=flood, args=(server.port, SEED + i, event,
                                                                     stop))
                         for i, event in enumerate(under_way)]
            for process in processes:
                process.start()
            try:
                for event in under_way:
                    event.wait(20)
                prober = Prober(server.port, SEED)
                prober.run(PROBES)
            finally:
                stop.set()
                for process in processes:
                    process.join()
            counts = server.end()
            prober.take_answers(0.5)
            prober.socket.close()
        return prober, counts

    def assert_every_probe_was_answered(self, prober, counts):
        self.assertEqual((prober.sent, len(prober.answered)), (PROBES, PROBES))
        self.assertEqual(prober.twice, 0)
        self.assertEqual((counts["probes"], counts["answers"]), (PROBES, PROBES))
        self.assertEqual(counts["critical_shed"], 0)

    def test_every_probe_is_answered_at_full_saturation(self):
        prober, counts = self.probe_under_flood(2)
        self.assert_every_probe_was_answered(prober, counts)
        # It was full: most answers were given while no further update would have been let in.
        self.assertGreater(counts["answers_at_the_limit"], counts["answers"] // 2)
        # And every update that was read was either worked off or shed.
        self.assertGreater(counts["shed"], 0)
        self.assertEqual(counts["done"] + counts["shed"], counts["updates"])

    def test_without_a_flood_nothing_is_shed(self):
        prober, counts = self.probe_under_flood(0)
        self.assert_every_probe_was_answered(prober, counts)
        self.assertEqual(counts["shed"], 0)


if __name__ == "__main__":
    unittest.main()
