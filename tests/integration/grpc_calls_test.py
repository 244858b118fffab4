"""gRPC calls of all four kinds through the gateway, with gRPC's own Python client and server."""

import concurrent.futures
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from long_wire import LongWire  # noqa: E402
from processes import Process, ProcessTest, Weir, wait_until  # noqa: E402

PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}
RAW = {"request_deserializer": bytes, "response_serializer": bytes}
LARGE = 16 * 1024 * 1024
SIZES = [("grpc.max_receive_message_length", 2 * LARGE),
         ("grpc.max_send_message_length", 2 * LARGE)]


class Service:
    """Calls of all kinds, and what it saw of them."""

    def __init__(self):
        self.metadata = []
        self.left = []
        self.entered = threading.Event()
        self.cancelled = threading.Event()
        self.release = threading.Event()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), options=SIZES)
        kinds = {"say": grpc.unary_unary_rpc_method_handler(self.say, **RAW),
                 "split": grpc.unary_stream_rpc_method_handler(self.split, **RAW),
                 "join": grpc.stream_unary_rpc_method_handler(self.join, **RAW),
                 "chat": grpc.stream_stream_rpc_method_handler(self.chat, **RAW),
                 "fail": grpc.unary_unary_rpc_method_handler(self.fail, **RAW),
                 "wait": grpc.unary_unary_rpc_method_handler(self.wait, **RAW)}
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Kinds", kinds),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def say(self, said, context):
        self.metadata.append(list(context.invocation_metadata()))
        self.left.append(context.time_remaining())
        context.set_trailing_metadata((("trace-bin", b"\x00\xff"), ("twice", "1"), ("twice", "2")))
        return said

    def split(self, said, _context):
        for byte in said:
            yield bytes((byte,))

    def join(self, pieces, _context):
        return b"".join(pieces)

    def chat(self, pieces, _context):
        for piece in pieces:
            yield piece[::-1]

    def fail(self, said, context):
        context.abort(grpc.StatusCode(_code(int(said))), "as asked: 100 %")

    def wait(self, said, context):
        context.add_callback(self.cancelled.set)
        self.entered.set()
        self.release.wait(20)
        return said

    def end(self):
        self.release.set()
        self.server.stop(0).wait(5)


class Http1Backend:
    """TLS whose ALPN knows only http/1.1; keeps what it receives."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-alpn-")
        key, certificate = (os.path.join(self.folder.name, name) for name in ("key", "certificate"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.set_alpn_protocols(["http/1.1"])
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.handshakes = 0
        self.received = b""
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with self.context.wrap_socket(connection, server_side=True) as secured:
                self.handshakes += 1
                while got := secured.recv(65536):
                    self.received += got
        except OSError:
            return

    def end(self):
        self.listening.close()
        self.folder.cleanup()


def _code(number):
    return next(code.value for code in grpc.StatusCode if code.value[0] == number)


class GrpcCalls(ProcessTest):
    def setUp(self):
        self.service = self.started(Service())
        self.gateway = self.started(Weir(config=self.config(self.service.port)))
        self.channel = self.connect(self.gateway.port)

    def config(self, port, limit="", upstream='protocol = "http2"'):
        return self.app_config([port], limit, upstream)

    def connect(self, port, **options):
        channel = grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[*SIZES, *options.items(), ("grpc.enable_retries", 1)])
        self.addCleanup(channel.close)
        return channel

    def unary(self, method, channel=None):
        return (channel or self.channel).unary_unary(f"/test.Kinds/{method}", **PLAIN)

    def error_of(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception

    def test_all_four_kinds(self):
        self.assertEqual(self.unary("say")(b"hello", timeout=10), b"hello")
        split = self.channel.unary_stream("/test.Kinds/split", **PLAIN)
        self.assertEqual(b"".join(split(b"abc", timeout=10)), b"abc")
        join = self.channel.stream_unary("/test.Kinds/join", **PLAIN)
        self.assertEqual(join(iter([b"a", b"b", b"c"]), timeout=10), b"abc")
        chat = self.channel.stream_stream("/test.Kinds/chat", **PLAIN)
        self.assertEqual(list(chat(iter([b"ab", b"cd"]), timeout=10)), [b"ba", b"dc"])

    def test_messages_of_16_mb_both_ways(self):
        said = os.urandom(LARGE)
        self.assertEqual(self.unary("say")(said, timeout=60), said)

    def test_messages_of_16_mb_both_ways_over_a_round_trip_of_50_ms(self):
        """A window of one lease, 64 KiB, would need 13 s: it grows, although the service, whose own
        windows begin small, is waited for now and then."""
        wire = self.started(LongWire(self.gateway.port, 0.025))
        channel = self.connect(wire.port)
        said = os.urandom(LARGE)
        self.assertEqual(self.unary("say", channel)(said, timeout=60), said)
        pools = json.loads(self.gateway.page("/pools").body)["pools"]
        self.assertGreaterEqual(pools["body_leases"]["peak"], 8)

    def test_metadata_and_trailers_pass_unchanged(self):
        sent = (("key", "a"), ("key", "b"), ("blob-bin", b"\x00\x01\xfe"))
        _, call = self.unary("say").with_call(b"x", timeout=10, metadata=sent)
        seen = [(k, v) for k, v in self.service.metadata[0] if k in ("key", "blob-bin")]
        self.assertEqual(seen, list(sent))
        trailers = [(k, v) for k, v in call.trailing_metadata() if k in ("trace-bin", "twice")]
        self.assertEqual(trailers, [("trace-bin", b"\x00\xff"), ("twice", "1"), ("twice", "2")])

    def test_the_status_and_its_message_pass_unchanged(self):
        error = self.error_of(lambda: self.unary("fail")(b"5", timeout=10))
        self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(error.details(), "as asked: 100 %")

    def test_the_deadline_that_arrives_is_never_longer(self):
        self.unary("say")(b"x", timeout=5)
        self.assertLess(self.service.left[0], 5.1)  # the client itself rounds up
        self.assertGreater(self.service.left[0], 3)
        self.unary("say")(b"x")
        self.assertGreater(self.service.left[1], 1e9, "no deadline")

    def test_a_deadline_ends_the_call_on_both_sides(self):
        error = self.error_of(lambda: self.unary("wait")(b"x", timeout=0.3))
        self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertTrue(self.service.cancelled.wait(10))

    def test_a_cancel_reaches_the_service(self):
        call = self.unary("wait").future(b"x", timeout=20)
        self.assertTrue(self.service.entered.wait(10))
        call.cancel()
        self.assertTrue(self.service.cancelled.wait(10))

    def test_a_refusal_is_trailers_only_with_a_hint(self):
        limited = self.started(Weir(config=self.config(self.service.port, """
[admission]
normal_wait_max_ms = 0
[admission.limit]
policy = "fixed"
initial_limit = 1
""")))
        channel = self.connect(limited.port)
        held = self.unary("wait", channel).future(b"x", timeout=20)
        wait_until(lambda: limited.stats()["upstreams"]["app"]["in_flight"] == 1)
        error = self.error_of(lambda: self.unary("say", channel)(b"x", timeout=10))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("overload", error.details())
        fields = dict(error.trailing_metadata())
        self.assertEqual(fields["x-weir-reason"], "overload")
        self.assertGreaterEqual(int(fields["grpc-retry-pushback-ms"]), 50)
        self.assertEqual(fields["grpc-retry-after-ms"], fields["grpc-retry-pushback-ms"])
        self.assertEqual(list(error.initial_metadata()), [])
        self.service.release.set()
        self.assertEqual(held.result(), b"x")

    def test_a_stock_retry_policy_obeys_the_hint(self):
        limited = self.started(Weir(config=self.config(self.service.port, """
[admission]
normal_wait_max_ms = 0
[admission.limit]
policy = "fixed"
initial_limit = 1
""")))
        channel = self.connect(limited.port, **{"grpc.service_config": """{"methodConfig": [{
            "name": [{"service": "test.Kinds"}], "retryPolicy": {"maxAttempts": 5,
            "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
            "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}"""})
        held = self.unary("wait", channel).future(b"held", timeout=20)
        wait_until(lambda: limited.stats()["upstreams"]["app"]["in_flight"] == 1)
        refused = limited.metric('weir_requests_refused_total{upstream="app",reason="overload"}')
        call = self.unary("say", channel).future(b"x", timeout=20)
        wait_until(lambda: limited.metric(
            'weir_requests_refused_total{upstream="app",reason="overload"}') > refused)
        self.service.release.set()
        self.assertEqual(held.result(), b"held")
        self.assertEqual(call.result(), b"x")

    def test_overload_that_the_service_reports_is_told_to_the_limiter(self):
        for code, outcome in ((14, "overload"), (8, "ok"), (13, "error"), (5, "ok")):
            name = f'weir_admission_outcomes_total{{scope="app",outcome="{outcome}"}}'
            before = self.gateway.metric(name)
            self.error_of(lambda: self.unary("fail")(b"%d" % code, timeout=10))
            wait_until(lambda: self.gateway.metric(name) == before + 1)

    def test_a_bad_timeout_is_refused_with_its_form(self):
        # By curl: gRPC's own client does not send one.
        for bad in ("1 S", "5", "1234567890m", ""):
            seen = subprocess.run(
                ["curl", "-sS", "--http2-prior-knowledge", "-D-", "-XPOST", "-H", "te: trailers",
                 "-H", "content-type: application/grpc", "-H", f"grpc-timeout: {bad}" if bad else
                 "grpc-timeout;", f"http://127.0.0.1:{self.gateway.port}/test.Kinds/say"],
                capture_output=True, text=True, check=True).stdout
            self.assertIn("HTTP/2 200", seen)
            self.assertIn("grpc-status: 13", seen)
            self.assertIn("H, M, S, m, u or n", seen)

    def test_an_upstream_of_http1_is_told_to_be_unimplemented(self):
        plain = self.started(Weir(config=self.config(self.service.port, "", "")))
        error = self.error_of(lambda: self.unary("say", self.connect(plain.port))(b"x", timeout=10))
        self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("protocol = http2", error.details())

    def test_a_service_that_chooses_http1_by_alpn_is_told_to_be_unimplemented(self):
        backend = self.started(Http1Backend())
        gateway = self.started(Weir(config=self.config(backend.port, "", """
[upstream.tls]
enabled = true
insecure = true
""")))
        for _ in range(3):
            error = self.error_of(
                lambda: self.unary("say", self.connect(gateway.port))(b"x", timeout=10))
            self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertIn("let it offer h2", error.details())
            self.assertEqual(dict(error.trailing_metadata())["x-weir-reason"], "http_2_required")
        self.assertGreater(backend.handshakes, 0)
        self.assertEqual(backend.received, b"", "no request gets there")

    def test_an_unknown_route_is_unimplemented(self):
        only = self.started(Weir(config=self.config(self.service.port).replace(
            "[[route]]", '[[route]]\npath_prefix = "/test.Kinds"')))
        channel = self.connect(only.port)
        self.assertEqual(self.unary("say", channel)(b"x", timeout=10), b"x")
        other = channel.unary_unary("/other.Service/say", **PLAIN)
        self.assertEqual(self.error_of(lambda: other(b"x", timeout=10)).code(),
                         grpc.StatusCode.UNIMPLEMENTED)

    def test_a_service_that_is_gone_is_unavailable(self):
        self.service.end()
        error = self.error_of(lambda: self.unary("say")(b"x", timeout=10))
        self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("cannot be reached", error.details())

    def test_a_service_that_ends_within_an_answer_is_unavailable(self):
        other = self.started(Process(sys.executable, "-B", __file__, "--serve",
                                     stdout=subprocess.PIPE))
        port = int(other.child.stdout.readline())
        gateway = self.started(Weir(config=self.config(port)))
        chat = self.connect(gateway.port).stream_stream("/test.Kinds/chat", **PLAIN)
        done = threading.Event()

        def pieces():
            yield b"ab"
            done.wait(20)

        answers = chat(pieces(), timeout=20)
        self.assertEqual(next(answers), b"ba")
        other.child.kill()
        error = self.error_of(lambda: next(answers))
        done.set()
        self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(dict(error.trailing_metadata())["x-weir-reason"],
                      ("truncated", "closed_early", "stream_reset"))

    def test_a_stream_may_be_silent_for_longer_than_every_timeout(self):
        hasty = self.started(Weir(config=self.config(self.service.port, """
[server]
body_timeout_ms = 500
""", """
protocol = "http2"
first_byte_timeout_ms = 500
inactivity_timeout_ms = 500
overall_timeout_ms = 500
""")))
        chat = self.connect(hasty.port).stream_stream("/test.Kinds/chat", **PLAIN)

        def pieces():
            yield b"ab"
            time.sleep(1.5)
            yield b"cd"

        self.assertEqual(list(chat(pieces(), timeout=20)), [b"ba", b"dc"])

    def test_a_thousand_streams_at_once(self):
        say = self.unary("say")
        calls = [say.future(b"%d" % i, timeout=60) for i in range(1000)]
        self.assertEqual([call.result() for call in calls], [b"%d" % i for i in range(1000)])


if __name__ == "__main__":
    if "--serve" in sys.argv:
        service = Service()
        print(service.port, flush=True)
        service.server.wait_for_termination()
    unittest.main()
