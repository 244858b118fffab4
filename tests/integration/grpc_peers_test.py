"""gRPC's own libraries for C++ and Python as clients and servers, each with each, through the
gateway: in cleartext on both sides, and with TLS on both sides."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from bars import bar
from http2_tap import Tap
from processes import BUILD, Process, ProcessTest, Weir, wait_until
from tls_test import Certificates

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../grpc")
MADE = os.path.abspath(BUILD / "tests/grpc")
sys.path.insert(0, MADE)
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402
import peers_pb2  # noqa: E402
import peers_pb2_grpc  # noqa: E402

ENVIRONMENT = {**os.environ, "WEIR_BUILD": os.path.abspath(BUILD)}
LANGUAGES = ("C++", "Python")
DEADLINE_MS = 400  # of the word "deadline"
WAIT_MS = 150


def program(language, side):
    if language == "C++":
        return [f"{MADE}/weir_test_grpc_{side}"]
    return [sys.executable, "-B", f"{HERE}/peer_{side}.py"]


class Server(Process):
    def __init__(self, language, certificate, key):
        super().__init__(*program(language, "server"), certificate, key, stdout=subprocess.PIPE,
                         env=ENVIRONMENT)
        self.language = language
        self.port, self.tls_port = (int(word) for word in self.child.stdout.readline().split())
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.peer = peers_pb2_grpc.PeerStub(self.channel)
        self.seen = []

    def calls(self, method):
        """Calls of the method that ended since `forget`."""
        self.seen += self.peer.Tell(peers_pb2.Piece(), timeout=10).calls
        return [call for call in self.seen if call.method == method]

    def forget(self):
        self.peer.Tell(peers_pb2.Piece(), timeout=10)
        self.seen = []

    def end(self):
        self.channel.close()
        super().end()


class Caller(Process):
    """A client process that does words."""

    def __init__(self, language, port, *ca_file):
        super().__init__(*program(language, "client"), f"127.0.0.1:{port}", *ca_file,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)

    def start(self, word):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()

    def pairs(self, word):
        self.start(word)
        return self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            self.child.wait(10)
            raise AssertionError("\n".join(self.lines))
        return [pair.split("=", 1) for pair in line.split()]

    def do(self, word):
        return dict(self.pairs(word))

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended before
            self.child.stdin.close()
        super().end()


class Peers(ProcessTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-peers-")
        cls.addClassCleanup(folder.cleanup)
        cls.certificates = Certificates(folder.name)
        cls.pair = cls.certificates.make("server", "/CN=localhost")
        cls.servers = [Server(language, *cls.pair) for language in LANGUAGES]
        for server in cls.servers:
            cls.addClassCleanup(server.end)

    def gateway(self, server, tls, limit=1024, wait_ms=2000):
        """With TLS to clients and to the server, or to neither."""
        certificate, key = self.pair
        authority = self.certificates.authority
        listen = f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{certificate}"
private_key = "{key}"
"""
        gateway = self.started(Weir(config=self.app_config(
            [server.tls_port if tls else server.port], f"""
{listen if tls else ""}
[server]
loops = 2
streams_max = 3000
body_lease_pool_size = 2400
[http2]
concurrent_streams_max = 1000
sessions_max = 64
session_bytes_max = "700KiB"
[admission]
normal_wait_max_ms = {wait_ms}
[admission.limit]
policy = "fixed"
initial_limit = {limit}
""", 'protocol = "http2"\n' + (f'[upstream.tls]\nenabled = true\nca = "{authority}"\n'
                                if tls else ""))))
        gateway.plain_port = gateway.port
        if tls:
            gateway.port = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])
        return gateway

    def caller(self, language, port, tls):
        return self.started(Caller(language, port, *([self.certificates.authority] * tls)))

    def everywhere(self, check, transports=(False, True)):
        """check(caller, server, gateway) for each client with each server, both ways."""
        for server in self.servers:
            for tls in transports:
                gateway = self.gateway(server, tls)
                for language in LANGUAGES:
                    with self.subTest(client=language, server=server.language, tls=tls):
                        server.forget()
                        check(self.caller(language, gateway.port, tls), server, gateway)
                wait_until(lambda g=gateway: g.balance() == 0)

    def test_calls_of_every_kind_large_messages_errors_health_and_cancels(self):
        """One after the other on the same connections, so that each leaves them sound."""
        def check(caller, server, gateway):
            self.check_kinds(caller)
            self.check_errors(caller)
            self.assertEqual(caller.do("large"), {"code": "0", "same": "1"})
            self.check_deadline(caller, server)
            self.check_cancel(caller, server)
            self.check_health(caller)
            self.check_kinds(caller)
            self.assertEqual(gateway.metric(
                'weir_requests_refused_total{upstream="app",reason="overload"}'), 0)
        self.everywhere(check)

    def check_kinds(self, caller):
        self.assertEqual(caller.do("unary"), {"code": "0", "answer": "hello", "keys": "61,62",
                                              "blob": "00ff"})
        self.assertEqual(caller.do("split"), {"code": "0", "answer": "abcdefgh"})
        self.assertEqual(caller.do("join"), {"code": "0", "answer": "onetwothree"})
        self.assertEqual(caller.do("chat"), {"code": "0", "answer": "badcfe"})

    def check_errors(self, caller):
        """Every code, as a response of trailers alone and behind an answer."""
        expected = []
        for code in range(1, 17):
            expected += 2 * [["codes", str(code)],
                             ["messages", "as asked: 100 % €".encode().hex()],
                             ["details", "080500ff"],
                             ["why", b"as asked".hex() + ",0001fe"]]
        self.assertEqual(caller.pairs("errors"), expected)

    def check_deadline(self, caller, server):
        said = caller.do("deadline")
        self.assertEqual(said["code"], "4", "DEADLINE_EXCEEDED")
        self.assertGreaterEqual(int(said["ms"]), DEADLINE_MS - 5)
        self.assertLess(int(said["ms"]), DEADLINE_MS + bar(100, 1500))
        call, = wait_until(lambda: server.calls("Sleep"))
        self.assertTrue(call.cancelled, "the server is told")
        self.assertGreater(call.left_ms, 0)
        self.assertLessEqual(call.left_ms, DEADLINE_MS + 5, "clients round up a little")

    def check_cancel(self, caller, server):
        self.assertEqual(caller.do("cancel"), {"first": "held", "code": "1"})
        call, = wait_until(lambda: server.calls("Hold"), 5)
        self.assertTrue(call.cancelled)

    def check_health(self, caller):
        self.assertEqual(caller.do("health"), {
            "check": "1", "unknown": "-5", "watched": "1", "watched_then": "2", "check_then": "2",
            "code": "1"})

    def test_a_thousand_conversations_at_once(self):
        def check(caller, server, gateway):
            connections = gateway.metric("weir_http2_connections_total")
            self.assertEqual(caller.do("thousand"), {"open": "1000", "good": "1000"})
            self.assertEqual(len(wait_until(
                lambda: len(server.calls("Chat")) >= 1000 and server.calls("Chat"))), 1000)
            self.assertEqual(gateway.metric("weir_http2_connections_total"), connections + 1)
        self.everywhere(check, bar((False, True), (True,)))

    def test_the_time_that_a_call_waits_is_taken_from_its_deadline(self):
        for server in self.servers:
            gateway = self.gateway(server, True, limit=1)
            caller = self.caller("C++", gateway.port, True)
            caller.do("unary")
            for _ in range(10):  # on a busy machine a deadline may pass before the call is served
                calls = self.waited(caller, server, gateway)
                if calls:
                    break
            self.assertTrue(calls, "served within its deadline, once in ten times")
            self.assertLessEqual(calls[0].left_ms, DEADLINE_MS - WAIT_MS + 5)
            self.assertGreater(calls[0].left_ms, 0)

    def waited(self, caller, server, gateway):
        """What the server saw of a call that waited for its place for WAIT_MS at least."""
        server.forget()
        channel = grpc.insecure_channel(f"127.0.0.1:{gateway.plain_port}")
        self.addCleanup(channel.close)
        held = peers_pb2_grpc.PeerStub(channel).Sleep.future(peers_pb2.Piece(), timeout=20)
        wait_until(lambda: gateway.upstream()["in_flight"] == 1)
        caller.start("deadline")
        wait_until(lambda: gateway.upstream()["waiting"] == 1)
        time.sleep(WAIT_MS / 1000)  # time itself is what is tested
        held.cancel()
        self.assertEqual(dict(caller.answer())["code"], "4")
        wait_until(lambda: gateway.upstream()["in_flight"] == 0)
        return [call for call in server.calls("Sleep") if call.left_ms < DEADLINE_MS + 5]

    def test_a_stock_retry_policy_obeys_the_pushback(self):
        for server in self.servers:
            gateway = self.gateway(server, False, limit=1, wait_ms=0)
            for language in LANGUAGES:
                with self.subTest(client=language, server=server.language):
                    self.check_retry(server, gateway, language)

    def check_retry(self, server, gateway, language):
        """The client's own delay is 1 ms: whatever is longer is the gateway's word."""
        server.forget()
        shed = 'weir_requests_refused_total{upstream="app",reason="overload"}'
        before = gateway.metric(shed)
        channel = grpc.insecure_channel(f"127.0.0.1:{gateway.port}")
        self.addCleanup(channel.close)
        held = peers_pb2_grpc.PeerStub(channel).Sleep.future(peers_pb2.Piece(), timeout=20)
        wait_until(lambda: gateway.stats()["upstreams"]["app"]["in_flight"] == 1)
        tap = self.started(Tap(gateway.port))
        caller = self.caller(language, tap.port, False)
        said = {}
        calling = threading.Thread(target=lambda: said.update(caller.do("retry")))
        calling.start()
        wait_until(lambda: len(tap.answered) >= 2 or not calling.is_alive())
        held.cancel()
        calling.join(30)
        self.assertEqual(said["code"], "0", "served once there is a place")
        refused = [answer for answer in tap.answered if answer[2].get("grpc-status") == "8"]
        self.assertGreaterEqual(len(refused), 2)
        self.assertEqual(len(tap.asked), len(refused) + 1)
        for number, (at, stream, fields) in enumerate(refused):
            self.assertEqual(stream, tap.asked[number][1])
            pushback = int(fields["grpc-retry-pushback-ms"]) / 1000
            self.assertGreaterEqual(pushback, 0.05)
            later, _, again = tap.asked[number + 1]
            self.assertEqual(again["grpc-previous-rpc-attempts"], str(number + 1))
            self.assertGreaterEqual(later - at, pushback - 0.002, "not before it was told to")
            self.assertLess(later - at, pushback + bar(0.1, 1.0))
        self.assertEqual(len(wait_until(lambda: server.calls("Echo"))), 1, "one reached the server")
        self.assertEqual(gateway.metric(shed) - before, len(refused))


if __name__ == "__main__":
    unittest.main(verbosity=2)
