"""Everything at once for SECONDS (the argument, 8 by default): clients of HTTP/1.1, HTTP/2 with
TLS, gRPC and WebSocket in all classes, and hostile ones, before replicas that are killed, stopped,
slow and reset their answers, while the configuration is reloaded and endpoints are drained. The
gateway stays whole: its memory is flat, its books balance, nothing critical is shed, every answer
belongs to its request, and at the end every pool is as it was.

WEIR_BINARY may name another program, such as one with the address sanitizer; the memory is then not
judged. WEIR_TEST_SEED repeats a run.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from bars import bar
from chaos_testing import CLASSES, Calls, Monkey, NodeClients, Sockets
from processes import SIGHUP, SIGTERM, WEIR, ProcessTest, Weir, wait_until
from tls_test import Certificates

SECONDS = 8
RATE = 60  # requests a second of each of HTTP/1.1 and HTTP/2
HOSTILE = 12
GROWTH_MAX = 4 << 20  # after a quarter of the time, when every pool has been used
SEED = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
ATTACKERS = os.path.join(os.path.dirname(__file__), "../attack/gateway_attackers.py")
# Nobody asks for it: the series of an upstream that is removed go, and the sums would be short.
SPARE_ROUTE = '[[route]]\npath_prefix = "/spare"\nupstream = "spare"'
SANITIZER = re.compile(r"Sanitizer|runtime error|WEIR_ASSERT|assertion", re.IGNORECASE)


class Reloads(threading.Thread):
    """Writes another configuration and reloads, until it is stopped."""

    def __init__(self, test):
        super().__init__(daemon=True)
        self.test = test
        self.rng = random.Random(f"{SEED} reloads")
        self.stopping = threading.Event()
        self.count = 0

    def run(self):
        while not self.stopping.wait(self.rng.uniform(0.1, 1.0)):
            self.once(drained=self.rng.choice((None, 0, 1)), spare=self.rng.random() < 0.5,
                      limit=self.rng.choice((200, 400)), certificate=self.rng.randrange(2))

    def once(self, **what):
        self.test.gateway.write_config(self.test.config(**what))
        self.test.gateway.signal(SIGHUP)
        self.count += 1

    def stop(self):
        self.stopping.set()
        self.join(10)


class Chaos(ProcessTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-chaos-")
        self.addCleanup(folder.cleanup)
        certificates = Certificates(folder.name)
        self.certificates = [certificates.make(f"server{i}", "/CN=localhost") for i in range(2)]
        self.monkeys = {kind: self.started(Monkey(kind, 2, SEED)) for kind in ("http1", "http2")}
        self.gateway = self.started(Weir(config=self.config()))
        self.tls = int(self.gateway.line_with(r"listening with TLS on .*:(\d+)")[1])

    def config(self, drained=None, spare=False, limit=400, certificate=0):
        cert, key = self.certificates[certificate]
        names = [("http1", "http1"), ("http2", "http2")] + [("spare", "http1")] * spare
        upstreams = ""
        for name, kind in names:
            endpoints = ", ".join(f'"127.0.0.1:{port}{" drain=true" if i == drained else ""}"'
                                  for i, port in enumerate(self.monkeys[kind].ports))
            upstreams += f"""
[[upstream]]
name = "{name}"
endpoints = [{endpoints}]
protocol = "{kind}"
max_connections = 300
max_limit = {limit}
first_byte_timeout_ms = 3000
idle_timeout_ms = 500
warm_connections = 0
"""
        routes = ""
        for name in CLASSES:
            for path, to in ((f"/{name}/say", "http2"), (f"/{name}/chat", "http2"),
                             (f"/{name}/http2", "http2"), (f"/{name}", "http1")):
                routes += f"""
[[route]]
path_prefix = "{path}"
priority = "{name}"
upstream = "{to}"
"""
        return f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{cert}"
private_key = "{key}"
[server]
max_connections = 400
[admin]
access_log = "sampled"
drain_timeout_ms = 10000
{upstreams}
{routes}
{SPARE_ROUTE * spare}
[[route]]
upstream = "http1"
"""

    # ---- what the gateway says

    def pools(self):
        pools = json.loads(self.gateway.page("/pools").body)["pools"]
        return {name: one["used"] for name, one in pools.items()}

    def totals(self):
        """The books, from /metrics alone."""
        page = self.gateway.page("/metrics").body.decode()

        def total(name):
            return sum(int(float(value)) for value in
                       re.findall(rf"^weir_requests_{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE))
        return {name: total(name) for name in ("received_total", "answered_total", "refused_total",
                                               "aborted_total", "active")}

    def series(self, name):
        page = self.gateway.page("/metrics").body.decode()
        return {labels: float(value) for labels, value in
                re.findall(rf"^{name}((?:{{.*}})?) (\S+)$", page, re.MULTILINE)}

    # ---- the test

    def test_everything_at_once(self):
        print(f"WEIR_TEST_SEED={SEED}", flush=True)
        quiet = self.pools()
        clients = [Calls(self.gateway.port, 6, SEED), Sockets(self.gateway.port, 6, SEED)]
        node = self.started(NodeClients({"port": self.gateway.port, "tls_port": self.tls,
                                         "seed": SEED, "rate": RATE}))
        hostile = self.hostile_clients()
        reloads = Reloads(self)
        for one in [*clients, *self.monkeys.values()]:
            getattr(one, "thread", one).start()
        reloads.start()
        warm_up = max(4, SECONDS / 4)
        self.watch_for(warm_up)
        warm = self.gateway.memory_bytes("VmRSS")
        self.watch_for(SECONDS - warm_up)
        reloads.stop()
        for monkey in self.monkeys.values():
            monkey.stop()
        summary = node.stop()
        for one in clients:
            one.stop()
        hostile.wait(SECONDS + 20)
        grown = self.gateway.memory_bytes("VmRSS") - warm
        self.show(summary, clients, reloads, grown, warm)
        self.judge_answers(summary, clients)
        self.assertEqual([line for one in self.monkeys.values() for line in one.surprises()], [])
        reloads.once()
        self.judge_gateway(quiet, grown)
        self.judge_end()

    def watch_for(self, seconds):
        """The gateway must not end meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(0.2, max(0, end - time.monotonic())))
            code = self.gateway.child.poll()
            self.assertIsNone(code, "the gateway has ended:\n" + "\n".join(
                self.gateway.lines[-40:]))

    def hostile_clients(self):
        wanted = {"attack": "all", "seed": SEED, "sources": "one", "connections": HOSTILE,
                  "seconds": SECONDS, "port": self.gateway.port, "tls_port": self.tls,
                  "http2_port": self.gateway.port, "admin": self.gateway.admin}
        child = subprocess.Popen(["/usr/bin/python3", "-B", ATTACKERS, json.dumps(wanted)],
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait, 30)
        self.addCleanup(child.kill)
        return child

    def show(self, summary, clients, reloads, grown, warm):
        for kind, seen in summary["kinds"].items():
            print(kind, dict(sorted(seen.items())))
        for one in clients:
            print(type(one).__name__, dict(sorted(one.seen.items())))
        print({kind: dict(monkey.done) for kind, monkey in self.monkeys.items()},
              f"{reloads.count} reloads; grown {grown >> 10} KiB of {warm >> 20} MiB", flush=True)

    def judge_answers(self, summary, clients):
        self.assertEqual(summary["faults"], [])
        self.assertEqual([fault for one in clients for fault in one.faults], [])
        kinds = {**summary["kinds"], **{type(one).__name__: one.seen for one in clients}}
        for kind, seen in kinds.items():
            # On a busy machine there are only some twenty conversations.
            for name in CLASSES if kind != "Sockets" else ():
                with self.subTest(kind, of=name):
                    self.assertGreater(seen.get(f"{name} ok", 0), 0, "nothing was served")
            served = sum(count for key, count in seen.items() if key.endswith(" ok"))
            with self.subTest(kind):
                self.assertGreater(served, bar(0.6, 0.3) * sum(seen.values()))

    def judge_gateway(self, quiet, grown):
        """At rest again: books, pools, memory."""
        wait_until(lambda: self.totals()["active"] == 0)
        books = self.totals()
        print(books, flush=True)
        self.assertEqual(books["received_total"], books["answered_total"] +
                         books["refused_total"] + books["aborted_total"])
        self.assertEqual(self.gateway.balance(), 0)
        self.assertEqual(self.series("weir_admission_critical_shed_total"), {"": 0.0})
        try:
            wait_until(lambda: self.pools() == quiet, 10)
        except AssertionError:
            self.assertEqual(self.pools(), quiet)
        for gauge in ("weir_admission_in_flight", "weir_admission_waiting",
                      "weir_admission_streaming", "weir_admission_bytes_in_flight",
                      "weir_tunnels_open", "weir_endpoint_in_flight",
                      "weir_upstream_held_requests"):
            found = self.series(gauge)
            self.assertGreater(len(found), 0, gauge)
            self.assertEqual(set(found.values()), {0.0}, gauge)
        if "WEIR_BINARY" not in os.environ:
            ceiling = self.gateway.stats()["memory"]["ceiling_bytes"]
            self.assertLess(self.gateway.memory_bytes(), ceiling)
            self.assertLessEqual(grown, GROWTH_MAX)

    def judge_end(self):
        self.gateway.signal(SIGTERM)
        self.assertEqual(self.gateway.wait(), 0, "\n".join(self.gateway.lines[-30:]))
        self.assertIn("weir: drained", self.gateway.lines)
        self.assertEqual([line for line in self.gateway.lines if SANITIZER.search(line)], [])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SECONDS = int(sys.argv.pop(1))
    print(WEIR)
    unittest.main()
