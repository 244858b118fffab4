"""WebSocket between peers that nobody here wrote: the `ws` of Node as client and server, by
HTTP/1.1, by HTTP/2 (RFC 8441), and to its server from the strict sockets of websocket_testing.
`websocket_peer_test.py [messages]`."""

import json
import os
import struct
import subprocess
import sys
import unittest

from processes import Process, ProcessTest, Weir, wait_until
from websocket_testing import CLOSE, Http1Socket, Http2Socket

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "websocket_peer.mjs")
MESSAGES = 3000


class Server(Process):
    def __init__(self):
        super().__init__("node", PEER, "server", stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline())

    def said(self):
        return json.loads(self.child.stdout.readline())


class Ws(ProcessTest):
    def setUp(self):
        self.server = self.started(Server())
        self.weir = self.started(Weir(config=self.app_config([self.server.port])))

    def client(self, protocol, path, count):
        """What it saw, after it ended in order."""
        done = subprocess.run(["node", PEER, "client", protocol,
                               f"ws://127.0.0.1:{self.weir.port}{path}", str(count)],
                              capture_output=True, text=True, timeout=30 + count / 500, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def converse(self, protocol, extensions):
        saw = self.client(protocol, f"/both?count={MESSAGES}", MESSAGES)
        right = {"received": MESSAGES, "wrong": 0, "checksum": True, "extensions": extensions}
        self.assertEqual(saw, {**right, "pong": "are you there", "code": 4001,
                               "why": "by the client"})
        self.assertEqual(self.server.said(), right)
        self.assertEqual(self.server.said(), {"code": 4001, "why": "by the client"})
        wait_until(lambda: self.weir.metric('weir_tunnels_open{upstream="app"}') == 0)
        self.assertEqual(self.weir.balance(), 0)

    def test_messages_both_ways_over_http1_with_compression(self):
        self.converse("http1", "permessage-deflate")

    def test_messages_both_ways_over_http2(self):
        self.converse("http2", "")

    def test_a_close_of_the_server_keeps_its_code(self):
        for protocol in ("http1", "http2"):
            with self.subTest(protocol):
                self.assertEqual(self.client(protocol, "/close", 0),
                                 {"code": 4002, "why": "by the server"})
        for kind in (Http1Socket, Http2Socket):
            client = kind(self.weir.port, "/close")
            self.assertEqual(client.receive(),
                             [(CLOSE, struct.pack(">H", 4002) + b"by the server")])
            client.close()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        MESSAGES = int(sys.argv.pop(1))
    unittest.main(verbosity=2)
