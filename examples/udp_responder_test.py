"""A flood of updates takes every unit of the limit; every probe that is read is answered."""

import multiprocessing
import select
import socket
import sys
import time
import unittest

from example_process import Example

PROGRAM = sys.argv.pop(1)
PROBES = 4000  # to be answered
WINDOW = 8     # probes on the way at once: few enough for any socket buffer
PATIENCE_S = 0.05


def flood(port, under_way, stop):
    """Updates as fast as the system takes them; says when there are far more than the limit."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("127.0.0.1", port))
    update = b"U" + b"x" * 63
    while not stop.is_set():
        for _ in range(1000):
            try:
                sender.send(update)
            except OSError:  # a full queue of the system's: that is the point
                pass
        under_way.set()


class Prober:
    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.sent = 0
        self.waiting = {}  # number -> when it was sent
        self.answered = set()
        self.twice = 0

    def take_answers(self, seconds):
        while select.select([self.socket], [], [], seconds)[0]:
            data = self.socket.recv(2048)
            assert data[:1] == b"A", data
            number = int(data[1:])
            self.twice += number in self.answered
            self.answered.add(number)
            self.waiting.pop(number, None)
            seconds = 0

    def run(self, wanted, until):
        while len(self.answered) < wanted and time.monotonic() < until:
            # One that the server's full socket never let in is given up; a late answer counts.
            now = time.monotonic()
            for number in [n for n, at in self.waiting.items() if now - at > PATIENCE_S]:
                del self.waiting[number]
            while len(self.waiting) < WINDOW:
                self.socket.send(b"P%d" % self.sent)
                self.waiting[self.sent] = now
                self.sent += 1
            self.take_answers(0.01)


class UdpResponder(unittest.TestCase):
    def probe_under_flood(self, flooders):
        stop = multiprocessing.Event()
        under_way = [multiprocessing.Event() for _ in range(flooders)]
        with Example(PROGRAM) as server:
            processes = [multiprocessing.Process(target=flood, args=(server.port, event, stop))
                         for event in under_way]
            for process in processes:
                process.start()
            try:
                for event in under_way:
                    event.wait(20)
                prober = Prober(server.port)
                prober.run(PROBES, time.monotonic() + 20)
            finally:
                stop.set()
                for process in processes:
                    process.join()
            prober.take_answers(0.5)
            counts = server.end()
            prober.take_answers(0.5)
        return prober, counts

    def test_probes_are_never_dropped_at_full_saturation(self):
        prober, counts = self.probe_under_flood(2)
        self.assertGreater(len(prober.answered), 0)
        # Every probe that was read was answered, and every answer arrived: exactly.
        self.assertEqual(counts["answers"], counts["probes"])
        self.assertEqual(len(prober.answered), counts["probes"])
        self.assertEqual(prober.twice, 0)
        self.assertLessEqual(counts["probes"], prober.sent)
        self.assertEqual(counts["critical_shed"], 0)
        # It was full: most answers were given while no further update would have been let in.
        self.assertGreater(counts["answers_at_the_limit"], counts["answers"] // 2)
        # And every update that was read was either worked off or shed.
        self.assertGreater(counts["shed"], 0)
        self.assertEqual(counts["done"] + counts["shed"], counts["updates"])

    def test_without_a_flood_nothing_is_shed(self):
        prober, counts = self.probe_under_flood(0)
        self.assertEqual(len(prober.answered), counts["probes"])
        self.assertGreaterEqual(counts["probes"], PROBES)
        self.assertEqual(counts["shed"], 0)


if __name__ == "__main__":
    unittest.main()
