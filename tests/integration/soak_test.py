"""A mixed load for SECONDS (the argument, 5 by default): memory is flat, every request is answered,
refused or aborted, and counted once."""

import json
import os
import random
import socket
import sys
import threading
import time
import unittest

from processes import SIGHUP, Nginx, Origin, ProcessTest, Weir, result_of, start_traffic, wait_until

SECONDS = 5
GROWTH_MAX = 1 << 20
# Every connection is busy: what follows, even after a stall of the machine, touches no more memory.
WARM_UP = ["/high:2000", "/work:6000", "/low:3000", "/small:3000", "/big:2000"]
SEED = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
BIG = b"b" * (512 * 1024)

CONFIG = """
[admin]
access_log = "sampled"
[[upstream]]
name = "work"
endpoints = ["127.0.0.1:{one}", "127.0.0.1:{two}"]
[[upstream]]
name = "files"
endpoints = ["127.0.0.1:{files}"]
[[route]]
path_prefix = "/high"
priority = "high"
upstream = "work"
[[route]]
path_prefix = "/work"
upstream = "work"
[[route]]
path_prefix = "/low"
priority = "low"
upstream = "work"
[[route]]
upstream = "files"
"""


class Rude:
    """Clients that leave at every moment of an exchange."""

    def __init__(self, port):
        self.port = port
        self.stopping = False
        self.threads = [threading.Thread(target=self._run, args=(SEED + i,), daemon=True)
                        for i in range(4)]
        for thread in self.threads:
            thread.start()

    def _run(self, seed):
        rng = random.Random(seed)
        while not self.stopping:
            try:
                client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except OSError:
                continue
            with client:
                request = rng.choice((b"GET /big HTTP/1.1\r\nhost: t\r\n\r\n",
                                      b"GET /work HTTP/1.1\r\nhost: t\r\n\r\n",
                                      b"POST /work HTTP/1.1\r\nhost: t\r\n"
                                      b"content-length: 9999\r\n\r\nx",
                                      b"GET /high HTTP/1.1\r\nhost: t\r\n\r\nGET /high HT"))
                try:
                    client.sendall(request[:rng.randint(1, len(request))]
                                   if rng.random() < 0.3 else request)
                    if rng.random() < 0.7:
                        client.settimeout(rng.random() * 0.05 + 0.001)
                        client.recv(rng.choice((1, 100, 100000)))
                except OSError:
                    pass
            time.sleep(rng.random() * 0.01)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(10)


class Soak(ProcessTest):
    def test_memory_is_flat_and_the_books_balance(self):
        one, two = (self.started(Origin(16, 10)) for _ in range(2))
        files = self.started(Nginx({"big": BIG, "small": b"s" * 128}))
        gateway = self.started(Weir(config=CONFIG.format(one=one.port, two=two.port,
                                                         files=files.port)))
        rng = random.Random(SEED)
        print(f"WEIR_TEST_SEED={SEED}")
        rude = Rude(gateway.port)
        results = [result_of(start_traffic(gateway.port, 3, WARM_UP))]
        gateway.signal(SIGHUP)
        gateway.line_with(r"reload")
        warm = gateway.memory_bytes("VmRSS")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            results.append(result_of(start_traffic(gateway.port, min(5, SECONDS),
                                                   self.classes(rng))))
            gateway.signal(SIGHUP)
        rude.stop()
        grown = gateway.memory_bytes("VmRSS") - warm
        stats = gateway.stats()
        print(stats["requests"], f"grown {grown >> 10} KiB of {warm >> 20} MiB")
        for result in results:
            for name, one_class in result["classes"].items():
                self.assertEqual((one_class["broken"], one_class["other"]), (0, 0), name)
        self.assertEqual(gateway.balance(), 0)
        self.assertEqual(stats["admission"]["critical_shed"], 0)
        self.assertLessEqual(grown, GROWTH_MAX)
        self.assertLess(gateway.memory_bytes(), stats["memory"]["ceiling_bytes"])
        wait_until(lambda: self.pools_are_empty(gateway))

    @staticmethod
    def classes(rng):
        """Rates, in all about as many as the origins can serve, or twice that."""
        return [f"{path}:{rng.randint(most // 2, most)}" for path, most in
                (("/high", 300), ("/work", 4000), ("/low", 2000), ("/small", 400), ("/big", 30))]

    @staticmethod
    def pools_are_empty(gateway):
        pools = json.loads(gateway.page("/pools").body)["pools"]
        return all(pools[name]["used"] == 0 for name in ("proxied_requests", "request_heads",
                                                         "response_regions", "write_buffers"))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SECONDS = int(sys.argv.pop(1))
    unittest.main()
