"""The memory of a gateway under many gRPC streams on one connection, and under many connections
with one stream each: it does not grow from round to round. Argument: seconds (5 by default)."""

import concurrent.futures
import os
import sys
import threading
import time
import unittest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from bars import bar  # noqa: E402
from processes import ProcessTest, Weir, wait_until  # noqa: E402

SECONDS = 5
STREAMS = 1000
WARM_UP_ROUNDS = 2
GROWTH_MAX = 4 << 20
PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}
RAW = {"request_deserializer": bytes, "response_serializer": bytes}
# Otherwise channels to one address share a connection.
OWN = [("grpc.use_local_subchannel_pool", 1)]


class Service:
    """Streams that answer each message, as long as the client likes."""

    def __init__(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(STREAMS + 20))
        kinds = {"chat": grpc.stream_stream_rpc_method_handler(lambda said, _: said, **RAW),
                 "say": grpc.unary_unary_rpc_method_handler(lambda said, _: said, **RAW)}
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Kinds", kinds),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def end(self):
        self.server.stop(0).wait(5)


class GrpcMemory(ProcessTest):
    def setUp(self):
        self.service = self.started(Service())
        self.gateway = self.started(Weir(config=self.app_config([self.service.port], f"""
[server]
max_connections = 1200
streams_max = {5 * STREAMS}
body_lease_pool_size = {3 * STREAMS}
[http2]
concurrent_streams_max = {STREAMS}
session_bytes_max = "1MiB"
[admission]
max_concurrent = {2 * STREAMS}
per_peer_limit = {2 * STREAMS}
[admission.limit]
policy = "fixed"
initial_limit = {2 * STREAMS}
max_limit = {2 * STREAMS}
[actors]
inflight_max = {2 * STREAMS}
[hedge]
enabled = false
""", 'protocol = "http2"\n')))
        self.address = f"127.0.0.1:{self.gateway.port}"

    def in_flight(self):
        return self.gateway.stats()["upstreams"]["app"]["in_flight"]

    def many_streams(self):
        """All of them are open at once, on one connection."""
        ends = threading.Event()

        def pieces():
            yield b"hello"
            ends.wait(60)

        with grpc.insecure_channel(self.address, options=OWN) as channel:
            chat = channel.stream_stream("/test.Kinds/chat", **PLAIN)
            calls = [chat(pieces(), timeout=120) for _ in range(STREAMS)]
            for call in calls:
                self.assertEqual(next(call), b"hello")
            ends.set()
            for call in calls:
                self.assertEqual(list(call), [])

    def many_connections(self):
        for _ in range(STREAMS // 50):
            channels = [grpc.insecure_channel(self.address, options=OWN) for _ in range(50)]
            calls = [channel.unary_unary("/test.Kinds/say", **PLAIN).future(b"x", timeout=60)
                     for channel in channels]
            for call in calls:
                self.assertEqual(call.result(), b"x")
            for channel in channels:
                channel.close()

    def grow(self, one_round):
        """How much memory grows after the first rounds."""
        for _ in range(WARM_UP_ROUNDS):
            one_round()
        wait_until(lambda: self.in_flight() == 0)
        before = self.gateway.memory_bytes("VmRSS")
        rounds = 0
        end = time.monotonic() + SECONDS
        while rounds == 0 or time.monotonic() < end:
            one_round()
            rounds += 1
        wait_until(lambda: self.in_flight() == 0)
        growth = self.gateway.memory_bytes("VmRSS") - before
        print(f"  {one_round.__name__}: {rounds} rounds, {before >> 20} MiB, "
              f"{growth / 1024:+.0f} KiB")
        self.assertLess(growth, bar(GROWTH_MAX, 2 * GROWTH_MAX))
        self.assertEqual(self.gateway.balance(), 0)

    def test_many_streams_on_one_connection(self):
        self.grow(self.many_streams)

    def test_many_connections_with_one_stream(self):
        self.grow(self.many_connections)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SECONDS = int(sys.argv.pop(1))
    unittest.main()
