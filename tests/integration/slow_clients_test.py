"""Two thousand slow clients beside normal ones: who drips, who does not read, who says nothing."""

import contextlib
import resource
import socket
import time
import unittest

from processes import Nginx, Origin, ProcessTest, Weir, result_of, start_traffic

BIG = b"b" * (1024 * 1024)

# Small socket buffers: what a client does not read is the gateway's problem, not the kernel's.
CONFIG = """
[server]
max_connections = 3000
streams_max = 3000
tcp_write_buffer_pool_size = 6000
backpressure_list_max = 3000
socket_send_buffer_size = "16KiB"
write_timeout_ms = 60000
[admission]
streams_max = 4096
[admin]
access_log = "off"
[[upstream]]
name = "files"
endpoints = ["127.0.0.1:{files}"]
max_connections = 3000
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


def connect(port):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(10)
    client.connect(("127.0.0.1", port))
    return client


class SlowClients(ProcessTest):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
        if min(hard, 16384) < 6000:
            self.skipTest("fewer than 6000 descriptors")

    def test_normal_clients_do_not_notice(self):
        files = self.started(Nginx({"big": BIG, "small": b"s" * 128}))
        work = self.started(Origin(16, 2))
        gateway = self.started(Weir(config=CONFIG.format(files=files.port, work=work.port)))
        alone = self.probe(gateway.port)
        slow, drips = [], []
        self.addCleanup(lambda: [client.close() for client in slow])
        for i in range(2000):
            client = connect(gateway.port)
            slow.append(client)
            if i % 4 == 0:    # a head that never ends
                client.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nx-slow: ")
            elif i % 4 == 1:  # a body that drips, to a service that waits for all of it
                client.sendall(b"POST /work HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\nx")
                drips.append(client)
            elif i % 4 == 2:  # an answer that nobody reads
                client.sendall(b"GET /big HTTP/1.1\r\nhost: t\r\n\r\n")
            # and every fourth says nothing at all
        # Those who hold places by dripping lose them when others want them, after a second.
        time.sleep(1.5)
        for client in drips:
            with contextlib.suppress(OSError):
                client.sendall(b"x")
        self.probe(gateway.port)
        beside = self.probe(gateway.port)
        stats = gateway.stats()
        print(alone, beside, stats["requests"], gateway.memory_bytes() >> 20, "MiB")
        for name, one in beside.items():
            with self.subTest(name):
                self.assertEqual(one["broken"] + one["other"] + one["refused"], 0)
                self.assertGreaterEqual(one["ok"], (one["offered"] - one["unsent"]) * 0.99)
        self.assertGreater(stats["requests"]["active"], 400, "nobody was slow")
        self.assertLess(gateway.memory_bytes(), stats["memory"]["ceiling_bytes"])
        self.assertEqual(stats["admission"]["critical_shed"], 0)
        for client in slow:
            client.close()
        self.assertEqual(gateway.balance(), 0)

    @staticmethod
    def probe(port):
        return result_of(start_traffic(port, 2, ["/small:300", "/work:300"],
                                       connections=64))["classes"]


if __name__ == "__main__":
    unittest.main()
