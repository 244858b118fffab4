"""An untrusted client cannot raise its class, choose an actor, or set our headers."""

import functools
import json
import socket
import subprocess
import threading
import time
import unittest

import grpc_calls_test
from end_to_end_test import PythonBackend
from processes import ProcessTest, Weir, get, wait_until

CLAIMS = {"x-weir-priority": "critical", "X-Weir-Actor": "victim", "x-weir-peer": "gate",
          "x-weir-attempt": "2", "x-weir-deadline-ms": "0", "x_weir_priority": "critical",
          "x-weir-reason": "overload", "x-weir-anything": "1", "x-forwarded-for": "10.0.0.1",
          "forwarded": "for=10.0.0.1", "x-real-ip": "10.0.0.1", "X_Forwarded_For": "10.0.0.1",
          "baggage": "team=blue,weir.priority=critical"}


class Spoofing(ProcessTest):
    def setUp(self):
        self.backend = self.started(PythonBackend())

    def seen_by_backend(self, gateway, headers):
        answer = get(gateway.port, "/", headers)
        self.assertEqual(answer.status, 200, answer.body)
        return {name.lower(): value for name, value in json.loads(answer.body)["headers"]}

    def ways(self):
        """name -> (upstream's options, port of the service, ask): `ask(gateway, headers)` sends one
        request and returns the fields that the service saw."""
        service = self.started(grpc_calls_test.Service())
        return {"http1": ("", self.backend.port, self.seen_by_backend),
                "http2": ("", self.backend.port, self.seen_over_http2),
                "grpc": ('protocol = "http2"', service.port,
                         functools.partial(self.seen_by_service, service))}

    def seen_over_http2(self, gateway, headers):
        fields = [text for name, value in headers.items() for text in ("-H", f"{name}: {value}")]
        answer = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", *fields,
                                 f"http://127.0.0.1:{gateway.port}/"],
                                capture_output=True, check=True, timeout=20).stdout
        return {name.lower(): value for name, value in json.loads(answer)["headers"]}

    @staticmethod
    def seen_by_service(service, gateway, headers):
        with grpc_calls_test.grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            say = channel.unary_unary("/test.Kinds/say", **grpc_calls_test.PLAIN)
            said = say(b"x", timeout=20, metadata=[(name.lower(), value)
                                                   for name, value in headers.items()])
        assert said == b"x"
        return dict(service.metadata[-1])

    def test_a_strangers_claims_are_removed_and_do_nothing(self):
        for way, (upstream, port, ask) in self.ways().items():
            with self.subTest(way):
                gateway = self.started(Weir(config=self.app_config(
                    [port], '[actors]\nidentity = ["header"]\n', upstream)))
                seen = ask(gateway, CLAIMS)
                # Baggage may have named a class on the way here: the gateway says which one holds.
                self.assertEqual(seen.pop("x-weir-priority"), "normal")
                self.assertFalse([name for name in seen if "weir" in name.replace("_", "-")])
                self.assertFalse([value for value in seen.values() if "10.0.0.1" in value])
                self.assertEqual(seen["x-forwarded-for"], "127.0.0.1")
                self.assertEqual(seen["baggage"], "team=blue")
                stats = gateway.stats()
                classes = stats["upstreams"]["app"]["classes"]
                self.assertEqual(classes["normal"]["admitted"], 1)
                self.assertEqual(classes["critical"]["admitted"], 0)
                self.assertEqual((stats["admission"]["actors"], stats["admission"]["peers"]),
                                 (0, 0))

    def test_a_trusted_peers_claims_count(self):
        for way, (upstream, port, ask) in self.ways().items():
            with self.subTest(way):
                gateway = self.started(Weir(config=self.app_config([port], """
[trust]
peers = ["127.0.0.0/8"]
[actors]
identity = ["header"]
""", upstream)))
                seen = ask(gateway, {"x-weir-priority": "critical", "x-weir-actor": "alice"})
                self.assertEqual(seen["x-weir-priority"], "critical")
                self.assertEqual(seen["x-weir-actor"], "alice")
                ask(gateway, {"baggage": "weir.priority=high"})
                stats = gateway.stats()
                classes = stats["upstreams"]["app"]["classes"]
                self.assertEqual((classes["critical"]["admitted"], classes["high"]["admitted"]),
                                 (1, 1))
                self.assertEqual((stats["admission"]["actors"], stats["admission"]["peers"]),
                                 (1, 1))
                self.assertEqual(get(gateway.port, "/", {"x-weir-deadline-ms": "0"}).reason,
                                 "deadline")

    def test_a_deadline_is_passed_on_less_what_was_waited(self):
        config = self.app_config([self.backend.port], """
[server]
buffer_request_max = 0
[trust]
peers = ["127.0.0.0/8"]
[admission]
normal_wait_max_ms = 30000
[admission.limit]
policy = "fixed"
initial_limit = 1
""")
        gateway = self.started(Weir(config=config))
        seen = {}
        with socket.create_connection(("127.0.0.1", gateway.port)) as first:
            # Holds the only place until its body is complete.
            first.sendall(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\na")
            wait_until(lambda: gateway.upstream()["in_flight"] == 1)
            second = threading.Thread(target=lambda: seen.update(
                self.seen_by_backend(gateway, {"x-weir-deadline-ms": "60000"})))
            second.start()
            wait_until(lambda: gateway.upstream()["waiting"] == 1)
            waiting_since = time.monotonic()
            wait_until(lambda: time.monotonic() - waiting_since > 0.1)
            first.sendall(b"b")
            second.join()
        self.assertLessEqual(int(seen["x-weir-deadline-ms"]), 60000 - 100)
        self.assertGreater(int(seen["x-weir-deadline-ms"]), 0)

    def test_a_proxy_names_the_client_and_nothing_else(self):
        config = self.app_config([self.backend.port], """
[trust]
proxies = ["127.0.0.1"]
[actors]
identity = ["address"]
""")
        gateway = self.started(Weir(config=config))
        seen = self.seen_by_backend(gateway, {"x-forwarded-for": "203.0.113.9",
                                              "x-weir-priority": "critical"})
        self.assertNotIn("x-weir-priority", seen)
        self.assertEqual(seen["x-forwarded-for"], "203.0.113.9, 127.0.0.1")
        actors = json.loads(gateway.page("/actors").body)
        self.assertEqual(actors["actors_known"], 1)

    def test_a_dot_segment_does_not_buy_a_class(self):
        config = f"""
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{self.backend.port}"]
[[route]]
path_prefix = "/health"
priority = "critical"
upstream = "app"
[[route]]
upstream = "app"
"""
        gateway = self.started(Weir(config=config))
        for path in ("/health/../report", "/health/%2e%2e/report"):
            answer = get(gateway.port, path)
            self.assertEqual((answer.status, answer.reason), (400, "ambiguous_path"))
        for path in ("/health", "/health/./x", "/x/../y"):
            self.assertEqual(get(gateway.port, path).status, 200)
        classes = gateway.upstream()["classes"]
        self.assertEqual(classes["critical"]["admitted"], 2)
        self.assertEqual(classes["normal"]["admitted"], 1)


if __name__ == "__main__":
    unittest.main()
