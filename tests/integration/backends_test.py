"""Backends of other people behind the gateway: GET, HEAD, 204, a body of a megabyte, trailers; and
connections that the backend ends all the time lose no request."""

import concurrent.futures
import http.client
import json
import socket
import sys
import tempfile
import unittest

from backends_testing import (GrpcBackend, HaproxyBackend, NginxBackend, NodeBackend,
                              PythonBackend)
from processes import ProcessTest, Weir, wait_until
from tls_test import Certificates

MEGABYTE = b"x" * 1_000_000


class Backends(ProcessTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-backends-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.certificates = Certificates(cls.folder.name)
        cls.certificate = cls.certificates.make("backend", "/CN=backend")

    def gateway_to(self, port, options=""):
        return self.started(Weir(config=self.app_config([port], upstream=options)))

    @property
    def verified(self):
        return f'[upstream.tls]\nenabled = true\nca = "{self.certificates.authority}"\n'

    def check(self, gateway, size="1000000"):
        """On one connection, so that each answer must end where it should. Returns the answer to
        the POST."""
        one = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        self.addCleanup(one.close)

        def ask(method, path, body=None):
            one.request(method, path, body=body)
            answer = one.getresponse()
            return answer, answer.read()

        for _ in range(3):
            answer, body = ask("GET", "/hello")
            self.assertEqual((answer.status, body), (200, b"hello"))
            answer, body = ask("HEAD", "/hello")
            self.assertEqual((answer.status, body), (200, b""))
            answer, body = ask("GET", "/empty")
            self.assertEqual((answer.status, body), (204, b""))
        answer, body = ask("POST", "/size", MEGABYTE)
        self.assertEqual(answer.status, 200)
        if size is not None:
            self.assertEqual(body.decode(), size)
        self.assertEqual(ask("GET", "/hello")[1], b"hello")
        return answer

    def check_trailers(self, gateway):
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as client:
            client.sendall(b"GET /trailers HTTP/1.1\r\nhost: t\r\nte: trailers\r\n"
                           b"connection: te\r\n\r\n")
            got = b""
            while not got.endswith(b"\r\n\r\n") or b"\r\n0\r\n" not in got:
                piece = client.recv(65536)
                self.assertTrue(piece, got)
                got += piece
        self.assertIn(b"\r\n0\r\nx-end: yes\r\n\r\n", got)

    def many(self, gateway, count, meanwhile=lambda: None):
        """How many of so many GETs over eight connections did not get their answer."""
        def share(_):
            one = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
            failed = []
            for _ in range(count // 8):
                one.request("GET", "/hello")
                answer = one.getresponse()
                body = answer.read()
                if (answer.status, body) != (200, b"hello"):
                    failed.append((answer.status, answer.headers.get("x-weir-reason")))
            one.close()
            return failed
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            shares = [pool.submit(share, i) for i in range(8)]
            meanwhile()
            return [one for share in shares for one in share.result()]

    # ---- one test per backend

    def test_nginx_http1(self):
        gateway = self.gateway_to(self.started(NginxBackend()).port)
        self.assertGreater(int(self.check(gateway, size=None).headers["x-size"]), len(MEGABYTE))

    def test_nginx_http2_with_tls(self):
        gateway = self.gateway_to(self.started(NginxBackend(self.certificate)).port, self.verified)
        self.assertGreater(int(self.check(gateway, size=None).headers["x-size"]), len(MEGABYTE))

    def test_haproxy_http1_and_http2(self):
        behind = self.started(PythonBackend())
        for http2 in (False, True):
            with self.subTest(http2=http2):
                backend = self.started(HaproxyBackend(http2, behind.port))
                gateway = self.gateway_to(backend.port, 'protocol = "http2"' if http2 else "")
                self.check(gateway)

    def test_node_http2(self):
        gateway = self.gateway_to(self.started(NodeBackend()).port, 'protocol = "http2"')
        self.check(gateway)
        self.check_trailers(gateway)

    def test_python(self):
        gateway = self.gateway_to(self.started(PythonBackend()).port)
        self.check(gateway)
        self.check_trailers(gateway)

    # ---- connections that end

    def test_goaway_after_every_ten_requests_loses_none(self):
        backend = self.started(NginxBackend(self.certificate, requests=10))
        gateway = self.gateway_to(backend.port, self.verified)
        self.assertEqual(self.many(gateway, 2000), [])
        self.assertGreater(gateway.metric('weir_upstream_connects_total{upstream="app"}'), 100)

    def test_http1_connections_of_ten_requests_lose_none(self):
        gateway = self.gateway_to(self.started(NginxBackend(requests=10)).port)
        self.assertEqual(self.many(gateway, 2000), [])
        self.assertGreater(gateway.metric('weir_upstream_connects_total{upstream="app"}'), 100)

    def test_reloads_of_nginx_lose_none(self):
        backend = self.started(NginxBackend(self.certificate))
        gateway = self.gateway_to(backend.port, self.verified)

        def reload_some_times():
            for _ in range(3):
                backend.reload()
                connects = gateway.metric('weir_upstream_connects_total{upstream="app"}')
                wait_until(lambda: gateway.metric(
                    'weir_upstream_connects_total{upstream="app"}') > connects)
        self.assertEqual(self.many(gateway, 4000, reload_some_times), [])

    # ---- gRPC

    def test_grpc_calls_and_its_health_service(self):
        import grpc
        backend = self.started(GrpcBackend())
        gateway = self.gateway_to(backend.port, 'protocol = "http2"\n'
                                  '[upstream.health]\nkind = "grpc"\ninterval_ms = 300\n'
                                  'timeout_ms = 300\nrise = 1\nfall = 2\n')
        with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            say = channel.unary_unary("/test.Echo/Say", bytes, bytes)
            for size in (0, 5, 100_000):
                self.assertEqual(say(b"e" * size, timeout=20), b"e" * size)

        def state():
            one = json.loads(gateway.page("/endpoints").body)["endpoints"][0]
            return one["state"], one["reason"]
        wait_until(lambda: backend.checks > 2)
        self.assertEqual(state()[0], "available")
        backend.health = GrpcBackend.NOT_SERVING
        wait_until(lambda: state()[0] != "available")
        self.assertEqual(state(), ("ejected", "checks_failed"))
        backend.health = GrpcBackend.SERVING
        wait_until(lambda: state()[0] in ("returning", "available"))


if __name__ == "__main__":
    sys.exit(unittest.main())
