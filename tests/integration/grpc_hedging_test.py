"""Unary gRPC reads at two replicas, of which one is slow now and then: what hedging makes of their
p99, and that methods that are not marked are sent once. By gRPC's own Python client and servers."""

import concurrent.futures
import os
import random
import threading
import time
import unittest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from bars import bar  # noqa: E402
from open_loop import percentile  # noqa: E402
from processes import ProcessTest, Weir, wait_until  # noqa: E402

CALLS = 600
SLOW_SHARE = 0.06
SLOW_SECONDS = 0.25  # less than 0.3: an endpoint that is silent for longer is out
BURST = 10
BUDGET = 0.10
SEED = 20261118
RAW = {"request_deserializer": bytes, "response_serializer": bytes}
PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}


class Replica:
    def __init__(self, slow_share):
        self.random = random.Random(SEED)
        self.slow_share = slow_share
        self.lock = threading.Lock()
        self.served = {"get": [], "put": []}
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
        kinds = {name: grpc.unary_unary_rpc_method_handler(self.handler(name), **RAW)
                 for name in self.served}
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Store", kinds),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def handler(self, name):
        def serve(said, context):
            attempt = dict(context.invocation_metadata()).get("x-weir-attempt", "1")
            with self.lock:
                self.served[name].append((said, attempt))
                slow = self.random.random() < self.slow_share
            if slow:
                time.sleep(SLOW_SECONDS)
            return said
        return serve

    def end(self):
        self.server.stop(0).wait(5)


class GrpcHedging(ProcessTest):
    def setUp(self):
        self.replicas = [self.started(Replica(share)) for share in (SLOW_SHARE, 0)]

    def gateway(self, hedging):
        ports = ", ".join(f'"127.0.0.1:{one.port}"' for one in self.replicas)
        return self.started(Weir(config=f"""
[hedge]
enabled = {str(hedging).lower()}
max_budget_tokens = {BURST}
default_delay_ms = 20
min_delay_ms = 10
[[upstream]]
name = "store"
endpoints = [{ports}]
protocol = "http2"
balance = "round_robin"
[[route]]
grpc = "test.Store/get"
upstream = "store"
idempotent = true
[[route]]
upstream = "store"
"""))

    def measure(self, gateway, method):
        """Seconds of each call, at a steady rate."""
        wait_until(lambda: gateway.stats()["upstreams"]["store"] is not None)
        with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            call = channel.unary_unary(f"/test.Store/{method}", **PLAIN)
            # An endpoint whose connect takes long on a busy machine is out for a second.
            for replica in self.replicas:
                replica.served[method].clear()
                wait_until(lambda: call(b"first", timeout=20) and replica.served[method])
            for replica in self.replicas:
                replica.served[method].clear()

            def one(number):
                begun = time.monotonic()
                said = b"%s %d" % (method.encode(), number)
                self.assertEqual(call(said, timeout=20), said)
                return time.monotonic() - begun

            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                return list(pool.map(one, range(CALLS)))

    def attempts(self, method):
        return [served for replica in self.replicas for served in replica.served[method]]

    def test_a_slow_replica_is_hedged_for_reads_alone(self):
        plain = self.measure(self.gateway(False), "get")
        gateway = self.gateway(True)
        hedged = self.measure(gateway, "get")
        served = self.attempts("get")
        again = [said for said, attempt in served if attempt != "1"]
        late = [sum(s > SLOW_SECONDS for s in part) / CALLS for part in (plain, hedged)]
        print(f"  p99 {percentile(plain, 0.99) * 1000:.0f} ms without, "
              f"{percentile(hedged, 0.99) * 1000:.0f} ms with hedging; slow answers seen by "
              f"{late[0]:.1%}, {late[1]:.1%}; {len(again)} more attempts for {CALLS} calls")
        self.assertGreater(percentile(plain, 0.99), SLOW_SECONDS)
        self.assertLess(late[1], late[0] * bar(0.2, 0.5))
        self.assertGreater(len(again), 0)
        self.assertLessEqual(len(again), CALLS * BUDGET + BURST)
        # An attempt that is cancelled early is never served, so calls are looked at one by one.
        self.assertEqual(len({said for said, _ in served}), CALLS)
        self.assertEqual(len(served) - len(again), len({s for s, n in served if n == "1"}),
                         "each further attempt says that it is one")
        self.assertGreater(gateway.metric('weir_hedge_wins_total{upstream="store"}'), 0)
        self.measure(gateway, "put")
        self.assertEqual(len(self.attempts("put")), CALLS, "a write is sent once")


if __name__ == "__main__":
    unittest.main()
