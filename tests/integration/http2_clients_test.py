"""Real HTTP/2 clients through the gateway, in cleartext by prior knowledge: curl, nghttp, h2load,
python3-h2. What a backend of HTTP/1.1 sees of their requests."""

import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import unittest

import h2.connection
import h2.events

from end_to_end_test import PythonBackend
from processes import Origin, ProcessTest, Weir, wait_until

BLOB = os.urandom(1024 * 1024)


class Clients(ProcessTest):
    @classmethod
    def setUpClass(cls):
        cls.backend = PythonBackend()
        cls.weir = Weir("--to", f"127.0.0.1:{cls.backend.port}")

    @classmethod
    def tearDownClass(cls):
        cls.weir.end()
        cls.backend.end()

    def curl(self, *arguments, **options):
        done = subprocess.run(
            ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", *arguments,
             f"http://127.0.0.1:{self.weir.port}/x?y=1"], capture_output=True, timeout=30,
            **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_backend_sees_a_plain_request(self):
        seen = json.loads(self.curl("-H", "cookie: a=1; b=2", "-H", "te: trailers"))
        self.assertEqual(seen["path"], "/x?y=1")
        headers = [(name.lower(), value) for name, value in seen["headers"]]
        names = [name for name, _ in headers]
        self.assertEqual(names.count("host"), 1)
        self.assertIn(("host", f"127.0.0.1:{self.weir.port}"), headers)
        self.assertIn(("cookie", "a=1; b=2"), headers)
        self.assertIn(("via", "2 weir"), headers)
        self.assertIn(("te", "trailers"), headers)
        self.assertFalse([name for name in names if name.startswith(":")])
        self.assertNotIn("transfer-encoding", names)

    def test_cookie_crumbs_are_one_field(self):
        with socket.create_connection(("127.0.0.1", self.weir.port), timeout=10) as wire:
            peer = h2.connection.H2Connection()
            peer.initiate_connection()
            peer.send_headers(1, [(":method", "GET"), (":scheme", "http"), (":path", "/"),
                                  (":authority", "a"), ("cookie", "a=1"), ("x", "y"),
                                  ("cookie", "b=2"), ("cookie", "c=3")], end_stream=True)
            wire.sendall(peer.data_to_send())
            body, over = b"", False
            while not over:
                for event in peer.receive_data(wire.recv(65536)):
                    if isinstance(event, h2.events.DataReceived):
                        body += event.data
                    over = over or isinstance(event, h2.events.StreamEnded)
                wire.sendall(peer.data_to_send())
        headers = json.loads(body)["headers"]
        self.assertEqual([value for name, value in headers if name.lower() == "cookie"],
                         ["a=1; b=2; c=3"])

    def test_bodies_of_known_and_unknown_length(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(BLOB)
            file.flush()
            sha = hashlib.sha256(BLOB).hexdigest()
            known = json.loads(self.curl("--data-binary", f"@{file.name}"))
            self.assertEqual((known["body_bytes"], known["body_sha"]), (len(BLOB), sha))
            self.assertIn(str(len(BLOB)), dict(known["headers"]).values())
            unknown = json.loads(self.curl("-T", "-", "-X", "POST", input=BLOB))
            self.assertEqual((unknown["body_bytes"], unknown["body_sha"]), (len(BLOB), sha))

    def test_nghttp_and_h2load(self):
        url = f"http://127.0.0.1:{self.weir.port}/"
        done = subprocess.run(["nghttp", "-nv", url, url + "a", url + "b"], capture_output=True,
                              text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall(r":status: 200", done.stdout)), 3, done.stdout)
        # No more at once than fit the backlog of Python's server.
        done = subprocess.run(["h2load", "-n", "400", "-c", "2", "-m", "2", url],
                              capture_output=True, text=True, timeout=50)
        self.assertIn("400 succeeded, 0 failed, 0 errored", done.stdout)

    def test_a_page_of_thirty_requests_with_one_token_is_served_by_default(self):
        # So slow that all of them are in flight together.
        origin = self.started(Origin(workers=64, service_ms=200))
        weir = self.started(Weir("--to", f"127.0.0.1:{origin.port}"))
        statuses = []
        with socket.create_connection(("127.0.0.1", weir.port), timeout=10) as wire:
            peer = h2.connection.H2Connection()
            peer.initiate_connection()
            for stream in range(1, 61, 2):
                peer.send_headers(stream, [(":method", "GET"), (":scheme", "http"),
                                           (":path", f"/{stream}"), (":authority", "a"),
                                           ("authorization", "Bearer one-token")], end_stream=True)
            wire.sendall(peer.data_to_send())
            ended = 0
            while ended < 30:
                for event in peer.receive_data(wire.recv(65536)):
                    if isinstance(event, h2.events.ResponseReceived):
                        statuses.append(dict(event.headers)[b":status"])
                    ended += isinstance(event, h2.events.StreamEnded)
                wire.sendall(peer.data_to_send())
        self.assertEqual(statuses, [b"200"] * 30)

    def test_the_admin_endpoint_is_read_only_here_too(self):
        done = subprocess.run(
            ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "--data-binary", "xyz",
             "-w", "%{http_code}", f"http://127.0.0.1:{self.weir.admin}/stats"],
            capture_output=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, b"only GET\n405"))

    def test_counters_and_pools_come_back(self):
        self.curl()
        self.assertGreater(self.weir.metric("weir_http2_requests_total"), 0)

        def rest():
            pools = json.loads(self.weir.page("/pools").body)["pools"]
            return all(pools[name]["used"] == 0
                       for name in ("streams", "body_leases", "http2_sessions", "write_buffers"))
        wait_until(rest)
        self.assertEqual(self.weir.balance(), 0)


if __name__ == "__main__":
    unittest.main()
