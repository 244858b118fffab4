"""Reloads of everything that is live, and drains, under load of HTTP/1.1, HTTP/2 with TLS, gRPC
calls and streams: no request fails.

  python3 reload_under_load_test.py [REQUESTS_PER_SECOND]
"""

import hashlib
import os
import shutil
import ssl
import sys
import unittest

from processes import SIGHUP, SIGTERM, Weir, get, wait_until
from replicas_testing import LIMIT, Replica
from take_over_testing import (GrpcCalls, GrpcStreams, Http2Load, SlowReaders, SlowWriters,
                               TakeOverTest, start_open_loop)
from tls_test import Certificates

RATE = 200  # of HTTP/1.1 and HTTP/2 together
CROWD = 4   # slow clients of each kind, and clients of gRPC
RELOADS = 12
KINDS = (SlowReaders, SlowWriters, GrpcCalls, GrpcStreams)


class UnderLoad(TakeOverTest):
    def setUp(self):
        super().setUp()
        self.other = self.started(Replica(os.path.join(self.folder, "other")))
        certificates = Certificates(self.folder)
        self.pairs = [certificates.make(f"server{i}", "/CN=localhost") for i in range(2)]
        self.certificate, self.key = (os.path.join(self.folder, name) for name in ("live.pem",
                                                                                   "live.key"))
        self.keys = os.path.join(self.folder, "keys")
        self.replace_files(0)
        self.gateway = self.started(Weir(config=self.turn(0)))
        self.tls = int(self.gateway.line_with(r"listening with TLS on .*:(\d+)")[1])

    def replace_files(self, turn):
        """Certificate and keys are other ones under the same names."""
        for source, target in zip(self.pairs[turn % 2], (self.certificate, self.key)):
            shutil.copyfile(source, target)
        with open(self.keys, "w", encoding="utf-8") as file:
            file.write(f"{hashlib.sha256(b'key%d' % turn).hexdigest()} owner\n")

    def turn(self, i, delay_ms=0):
        """Another set of endpoints, upstreams and routes each time. What it leaves as it is serves
        the load."""
        endpoints = [self.replica.port, self.other.port][:1 + i % 2]
        drained = " drain=true" if i % 4 == 3 else ""
        added = f"""
[[upstream]]
name = "added{i}"
endpoints = ["127.0.0.1:{self.other.port}"]
max_connections = 100
[[route]]
path_prefix = "/added"
upstream = "added{i}"
""" if i % 3 else ""
        pairs = [f'"127.0.0.1:{port}{drained if n else ""}"' for n, port in enumerate(endpoints)]
        return f"""
{LIMIT}
[tls]
listen = ["127.0.0.1:0"]
certificate = "{self.certificate}"
private_key = "{self.key}"
[actors]
identity = ["api_key"]
keys_file = "{self.keys}"
[admin]
access_log = "off"
drain_timeout_ms = 20000
drain_delay_ms = {delay_ms}
[[upstream]]
name = "app"
endpoints = [{", ".join(pairs)}]
max_connections = 300
[[upstream]]
name = "slow"
endpoints = ["127.0.0.1:{self.slow.port}"]
max_connections = 100
[[upstream]]
name = "calls"
endpoints = ["127.0.0.1:{self.calls.port}"]
protocol = "http2"
max_connections = 100
{added}
[[route]]
path_prefix = "/slow"
upstream = "slow"
[[route]]
path_prefix = "/test.Kinds"
upstream = "calls"
[[route]]
upstream = "app"
"""

    def loaded(self):
        """(HTTP/1.1, HTTP/2, workers), after the first second of them."""
        http1 = start_open_loop(self.gateway.port, RATE * 0.6)
        http2 = self.started(Http2Load(self.tls, 4, RATE * 0.4, tls=True))
        workers = [kind(self.gateway.port, CROWD).start() for kind in KINDS]
        wait_until(lambda: self.answered() > RATE)
        return http1, http2, workers

    def answered(self):
        return self.gateway.stats()["requests"]["answered"]

    def test_reloads_of_everything_fail_no_request(self):
        load = self.loaded()
        for i in range(1, RELOADS + 1):
            self.replace_files(i)
            self.gateway.write_config(self.turn(i))
            self.gateway.signal(SIGHUP)
            wait_until(lambda n=i: self.gateway.stats()["reloads"]["ok"] == n)
            at = self.answered()
            wait_until(lambda n=at: self.answered() > n + RATE // 10)
            self.assertEqual(get(self.gateway.port, "/item?9", {"x-api-key": f"key{i}"}).body, b"9")
            with open(self.pairs[i % 2][0], encoding="ascii") as file:
                self.assertEqual(self.served_certificate(), file.read())
        self.assert_no_failure(*load)
        self.assertEqual(self.gateway.stats()["reloads"], {"ok": RELOADS, "refused": 0})
        self.assertEqual(self.gateway.stats()["admission"]["critical_shed"], 0)
        self.assertEqual(self.gateway.balance(), 0)

    def served_certificate(self):
        return ssl.get_server_certificate(("127.0.0.1", self.tls))

    def test_a_drain_fails_no_request(self):
        """The balancer sends nothing more once it sees /readyz; what is under way then is longer
        than the delay."""
        self.gateway.write_config(self.turn(0, delay_ms=1000))
        self.gateway.signal(SIGHUP)
        wait_until(lambda: self.gateway.stats()["reloads"]["ok"] == 1)
        load = self.loaded()
        self.gateway.signal(SIGTERM)
        wait_until(lambda: self.gateway.page("/readyz").status == 503)
        for worker in load[2]:
            worker.stopping = True
        self.assert_no_failure(*load)
        self.assertEqual(self.gateway.wait(30), 0)
        self.assertIn("weir: drained", self.gateway.lines)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        RATE = int(sys.argv.pop(1))
    unittest.main()
