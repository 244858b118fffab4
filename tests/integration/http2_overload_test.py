"""Overload with all classes over HTTP/2 with TLS and over gRPC: ten times more than the service can
do; and one greedy actor beside modest ones."""

import functools
import tempfile
import unittest

from bars import STRICT, bar
from greedy_actor_test import judge_greedy
from overload_test import CAPACITY, SERVICE_MS, WORKERS, Round
from processes import (Origin, ProcessTest, Weir, get, result_of, start_http2_traffic, wait_until)
from tls_test import Certificates

CLASSES = ("critical", "high", "low")
SETTLE = bar(3, 2)  # seconds in which the limiter learns, as it would have in service
JUDGED = bar(5, 2.5)


class Http2Overload(ProcessTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-overload-")
        cls.addClassCleanup(folder.cleanup)
        cls.certificate, cls.key = Certificates(folder.name).make("server", "/CN=localhost")

    def gateway(self, origin, protocol, extra="", routes=True):
        classes = "".join(f'[[route]]\npath_prefix = "/{name}"\npriority = "{name}"\n'
                          f'upstream = "app"\n' for name in CLASSES if routes)
        gateway = self.started(Weir(config=f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{self.certificate}"
private_key = "{self.key}"
[admin]
access_log = "off"
{extra}
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{origin.port}"]
protocol = "{protocol}"
{classes}
[[route]]
upstream = "app"
"""))
        gateway.tls = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])
        return gateway

    def overload(self, protocol, **kind):
        origin = self.started(Origin(WORKERS, SERVICE_MS))
        gateway = self.gateway(origin, protocol)
        port = gateway.tls if kind.get("tls") else gateway.port

        def start(_, seconds, classes):
            return start_http2_traffic(port, seconds, classes, **kind)

        rates = {"critical": CAPACITY // 10, "high": CAPACITY * 3 // 10, "normal": CAPACITY * 6}
        rates["low"] = CAPACITY * 10 - sum(rates.values())
        classes = [f"/{name}/say:{rate}" for name, rate in rates.items()]
        result_of(start(port, SETTLE, classes))
        for _ in range(4):
            load = Round(gateway, origin, classes, start, JUDGED)
            load.show()
            # Again if the machine stood still; in a usual run also if others were busy on it: a
            # gateway that does not protect its service fails every round.
            if not list(load.faults(0)) or (STRICT and not load.stolen.excuse):
                break
        self.assertEqual(list(load.faults(load.stolen.excuse)), [])
        self.assertGreater(load.classes["/low/say"]["refused"], 1000, "low is not shed")
        self.assertEqual(gateway.stats()["admission"]["critical_shed"], 0)
        self.assertLess(gateway.memory_bytes(), gateway.stats()["memory"]["ceiling_bytes"])
        wait_until(lambda: not gateway.upstream()["overloaded"], 3)
        if protocol == "http1":
            self.assertEqual([get(gateway.port, "/low").status for _ in range(5)], [200] * 5)
        self.assertEqual(gateway.balance(), 0)

    def test_ten_times_the_capacity_over_http2_with_tls(self):
        self.overload("http1", tls=True)

    def test_ten_times_the_capacity_over_grpc(self):
        self.overload("http2", grpc=True)

    def greedy(self, protocol, **kind):
        origin = self.started(Origin(16, SERVICE_MS))
        gateway = self.gateway(origin, protocol, """
[actors]
identity = ["api_key"]
inflight_max = 8
""", routes=False)
        port = gateway.tls if kind.get("tls") else gateway.port
        judge_greedy(self, gateway, functools.partial(start_http2_traffic, **kind), port,
                     JUDGED)

    def test_a_greedy_actor_pays_over_http2_with_tls(self):
        self.greedy("http1", tls=True)

    def test_a_greedy_actor_pays_over_grpc(self):
        self.greedy("http2", grpc=True)


if __name__ == "__main__":
    unittest.main()
