"""Slow clients beside normal ones: who drips, who does not read, who says nothing.

  python3 slow_clients_test.py [HOW_MANY]
"""

import contextlib
import os
import random
import resource
import socket
import sys
import threading
import unittest

from bars import bar
from processes import SIGHUP, Nginx, Origin, ProcessTest, Weir, get, result_of, start_traffic
from processes import wait_until

SEED = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
UPLOAD = b"POST /work HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\nx"
BIG = b"b" * (1024 * 1024)
SLOW = 2000

# Small socket buffers: what a client does not read is the gateway's problem, not the kernel's.
CONFIG = """
[server]
max_connections = {places}
streams_max = {places}
tcp_write_buffer_pool_size = {buffers}
backpressure_list_max = {places}
socket_send_buffer_size = "16KiB"
write_timeout_ms = 60000
[admission]
streams_max = {places}
[admin]
access_log = "off"
[[upstream]]
name = "files"
endpoints = ["127.0.0.1:{files}"]
max_connections = {places}
policy = "fixed"
initial_limit = 1000
[[upstream]]
name = "work"
endpoints = ["127.0.0.1:{work}"]
[[route]]
path_prefix = "/work"
upstream = "work"
[[route]]
upstream = "files"
"""


def config(files, work):
    places = SLOW * 3 // 2
    return CONFIG.format(files=files, work=work, places=places, buffers=2 * places)


def connect(port):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(10)
    client.connect(("127.0.0.1", port))
    return client


class Dripping:
    """A byte to one of the clients now and then, from a thread of its own."""

    def __init__(self, clients, rng):
        self.clients, self.rng = clients, rng
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.stop.wait(self.rng.random() * 0.004):
            with contextlib.suppress(OSError):  # it has lost its place
                self.rng.choice(self.clients).send(b"x", socket.MSG_DONTWAIT)

    def wait(self, seconds):
        self.stop.wait(seconds)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


class SlowClients(ProcessTest):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 32768), hard))
        if hard < 3 * SLOW:
            self.skipTest(f"fewer than {3 * SLOW} descriptors")

    def test_normal_clients_do_not_notice(self):
        files = self.started(Nginx({"big": BIG, "small": b"s" * 128}))
        work = self.started(Origin(16, 2))
        gateway = self.started(Weir(config=config(files.port, work.port)))
        alone = self.probe(gateway.port)
        rng = random.Random(SEED)
        slow, uploads = [], []
        self.addCleanup(lambda: [client.close() for client in slow])
        requests = [b"GET / HTTP/1.1\r\nhost: t\r\nx-slow: ",  # a head that never ends
                    UPLOAD,
                    b"GET /big HTTP/1.1\r\nhost: t\r\n\r\n",   # an answer that nobody reads
                    b""] * (SLOW // 4)                                   # and nothing at all
        rng.shuffle(requests)
        for request in requests:
            slow.append(connect(gateway.port))
            slow[-1].sendall(request)
            if request == UPLOAD:
                uploads.append(slow[-1])
        # Those who hold places by dripping lose them when others want them, after a second: from
        # the first request on.
        with Dripping(uploads, rng) as dripping:
            dripping.wait(1.2)
            probes = [self.probe(gateway.port) for _ in range(2)]
        stats = gateway.stats()
        print(f"WEIR_TEST_SEED={SEED}", [self.short(probe) for probe in (alone, *probes)],
              stats["requests"], gateway.memory_bytes() >> 20, "MiB")
        for i, probe in enumerate(probes):
            for name, one in probe.items():
                with self.subTest(name, probe=i):
                    asked = one["offered"] - one["unsent"]
                    self.assertGreaterEqual(one["ok"], bar(0.99, 0.90) * asked)
        self.assertGreater(stats["requests"]["active"], SLOW // 5, "nobody was slow")
        self.assertLess(gateway.memory_bytes(), stats["memory"]["ceiling_bytes"])
        self.assertEqual(stats["admission"]["critical_shed"], 0)
        for client in slow:
            client.close()
        self.assertEqual(gateway.balance(), 0)

    def test_slow_uploads_make_room_when_the_limit_falls(self):
        work = self.started(Origin(16, 2))
        text = config(work.port, work.port).replace(
            'name = "work"', 'name = "work"\npolicy = "fixed"\ninitial_limit = {}')
        gateway = self.started(Weir(config=text.format(100)))
        slow = [connect(gateway.port) for _ in range(90)]
        self.addCleanup(lambda: [client.close() for client in slow])
        for client in slow:
            client.sendall(UPLOAD)
        wait_until(lambda: gateway.upstream("work")["in_flight"] == 90)
        with Dripping(slow, random.Random(SEED)) as dripping:
            dripping.wait(1.2)
            gateway.write_config(text.format(60))
            gateway.signal(SIGHUP)
            wait_until(lambda: gateway.upstream("work")["limit"] == 60)
            answers = [get(gateway.port, "/work").status for _ in range(100)]
        print(f"WEIR_TEST_SEED={SEED}", answers.count(200), gateway.stats()["requests"])
        self.assertGreaterEqual(answers.count(200), bar(99, 90))

    @staticmethod
    def short(probe):
        return {name: {key: one[key] for key in ("ok", "unsent", "ok_p99_ms")}
                for name, one in probe.items()}

    @staticmethod
    def probe(port):
        return result_of(start_traffic(port, 2, ["/small:300", "/work:300"],
                                       connections=64))["classes"]


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SLOW = int(sys.argv.pop(1))
    unittest.main()
