"""The gateway in front of the value store: reads that are late at a stopped node are hedged,
writes are acknowledged by two nodes as before."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from admission_test import Pauses  # noqa: E402
from cluster import BUILD, PATIENCE, Cluster, grpc, key_of, pb, rpc, values_of  # noqa: E402

SEED = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 30)))
PAUSE = 0.3
CONFIG = """
[listen]
addresses = ["127.0.0.1:0"]
[admin]
listen = ""
[[upstream]]
name = "store"
endpoints = [{endpoints}]
protocol = "http2"
[[route]]
grpc = "valuestore.ValueStore/GetValue"
upstream = "store"
priority = "high"
idempotent = true
[[route]]
upstream = "store"
[hedge]
enabled = {hedging}
"""


class Gateway:
    def __init__(self, cluster, hedging):
        self._file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self._file.write(CONFIG.format(
            hedging=hedging,
            endpoints=", ".join(f'"{node.address}"' for node in cluster.nodes.values())))
        self._file.flush()
        self._process = subprocess.Popen(
            [str(BUILD.parent.parent / "weir"), "run", "--config", self._file.name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self._process.stdout:
            if "listening on " in line:
                self.channel = grpc.insecure_channel(line.split("listening on ")[1].split()[0])
                self.stub = rpc.ValueStoreStub(self.channel)
                # Read on: a gateway whose log nobody reads would block when the pipe is full.
                self._reader = threading.Thread(target=self._process.stdout.read)
                self._reader.start()
                return
        raise AssertionError(f"no address; status {self._process.wait(PATIENCE)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        self._process.terminate()
        self.status = self._process.wait(PATIENCE)
        self._reader.join()
        self._process.stdout.close()
        self._file.close()


def late(times):
    """How many reads took as long as the rest of a stop."""
    return sum(took > PAUSE / 2 for took in times)


def read_until(enough, stub, values):
    """The times of the reads; each has the right bytes."""
    times = []
    begin = time.monotonic()
    while not enough(times, time.monotonic() - begin):
        for value in values:
            start = time.monotonic()
            reply = stub.GetValue(pb.GetValueRequest(key=key_of(value)), timeout=5)
            times.append(time.monotonic() - start)
            assert reply.value == value
    return times


class InFront(unittest.TestCase):
    def reads(self, hedging, enough):
        """The times of reads while two nodes stop in turn."""
        values = values_of(50, SEED)
        with Cluster("--cache-mb", "0") as cluster:
            gateway = Gateway(cluster, hedging)
            with gateway:
                for value in values:
                    reply = gateway.stub.PutLeaf(pb.PutLeafRequest(value=value), timeout=5)
                    self.assertFalse(reply.hinted)
                self.assertFalse(cluster.missing(values))
                with Pauses([cluster["a"], cluster["b"]], PAUSE, 0.2):
                    times = read_until(enough, gateway.stub, values)
            self.assertEqual(gateway.status, 0)
        return times

    def test_reads_do_not_wait_for_a_node_that_is_stopped(self):
        # As long as it takes until enough reads have waited for a difference to mean something.
        took = []

        def four_are_late(times, passed):
            took[:] = [passed]
            return late(times) >= 4 or passed > 60
        without = late(self.reads("false", four_are_late))
        self.assertGreaterEqual(without, 4)
        hedged = late(self.reads("true", lambda _, passed: passed > took[0]))
        print(f"seed {SEED}: reads that waited for a stopped node in {took[0]:.1f} s: {without}, "
              f"hedged {hedged}")
        self.assertLessEqual(hedged, without // 2)


if __name__ == "__main__":
    unittest.main()
