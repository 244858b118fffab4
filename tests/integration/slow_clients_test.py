"""Two thousand slow clients beside normal ones: who drips, who does not read, who says nothing."""

import resource
import socket
import time
import unittest

from processes import Nginx, ProcessTest, Weir, result_of, start_traffic

BIG = b"b" * (256 * 1024)


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
        backend = self.started(Nginx({"big": BIG, "small": b"s" * 128}))
        gateway = self.started(Weir(config=self.app_config([backend.port], """
[server]
max_connections = 3000
streams_max = 3000
tcp_write_buffer_pool_size = 6000
backpressure_list_max = 3000
[admission]
streams_max = 4096
[admin]
access_log = "off"
""", upstream="max_connections = 3000\n")))
        alone = self.probe(gateway.port)
        slow = []
        self.addCleanup(lambda: [client.close() for client in slow])
        for i in range(2000):
            client = connect(gateway.port)
            slow.append(client)
            if i % 4 == 0:    # a head that never ends
                client.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nx-slow: ")
            elif i % 4 == 1:  # a body that drips
                client.sendall(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\nx")
            elif i % 4 == 2:  # an answer that nobody reads
                client.sendall(b"GET /big HTTP/1.1\r\nhost: t\r\n\r\n")
            # and every fourth says nothing at all
        time.sleep(0.5)
        beside = self.probe(gateway.port)
        print(alone, beside, gateway.memory_bytes() >> 20, "MiB")
        self.assertEqual(beside["broken"] + beside["other"] + beside["refused"], 0)
        self.assertGreaterEqual(beside["ok"], (beside["offered"] - beside["unsent"]) * 0.99)
        self.assertLess(gateway.memory_bytes(), gateway.stats()["memory"]["ceiling_bytes"])
        self.assertEqual(gateway.stats()["admission"]["critical_shed"], 0)
        for client in slow:
            client.close()
        self.assertEqual(gateway.balance(), 0)

    @staticmethod
    def probe(port):
        result = result_of(start_traffic(port, 2, ["/small:500"], connections=32))
        return result["classes"]["/small"]


if __name__ == "__main__":
    unittest.main()
