"""Upstreams come and go by reload under load: no request fails, and nothing of them stays."""

import json
import re
import subprocess
import unittest

from processes import SIGHUP, Origin, ProcessTest, Weir, get, wait_until

RATE = 250  # requests a second, over HTTP/1.1 and as many over HTTP/2
SECONDS = 25
POOLS = ("proxied_requests", "request_heads", "request_bodies", "request_buffers",
         "response_regions",
         "upstream_sessions")


class Load:
    """h2load at a fixed rate for SECONDS."""

    def __init__(self, port, *options):
        self.child = subprocess.Popen(
            ["h2load", "-c5", "-m10", f"--rps={RATE // 5}", f"-n{RATE * SECONDS}", *options,
             f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE, text=True)

    def finish(self):
        output, _ = self.child.communicate(timeout=90)
        requests = re.search(r"requests: .* (\d+) done, (\d+) succeeded, (\d+) failed, "
                             r"(\d+) errored, (\d+) timeout", output)
        statuses = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
        return [int(n) for n in requests.groups()], [int(n) for n in statuses.groups()]


class UpstreamReload(ProcessTest):
    def config(self, upstreams, route):
        """`upstreams`: name -> (port, protocol)."""
        text = "[admission.limit]\npolicy = \"fixed\"\ninitial_limit = 1000\nmax_limit = 1000\n"
        for name, (port, protocol) in upstreams.items():
            text += (f"[[upstream]]\nname = \"{name}\"\nendpoints = [\"127.0.0.1:{port}\"]\n"
                     f"protocol = \"{protocol}\"\nmax_connections = 100\nidle_timeout_ms = 300\n")
        return text + f"[[route]]\nupstream = \"{route}\"\n"

    def reload(self, gateway, upstreams, route):
        before = gateway.stats()["reloads"]["ok"]
        gateway.write_config(self.config(upstreams, route))
        gateway.signal(SIGHUP)
        wait_until(lambda: gateway.stats()["reloads"]["ok"] == before + 1)

    def test_twenty_moves_to_a_new_upstream_fail_no_request(self):
        origins = [self.started(Origin(workers=64, service_ms=2)) for _ in range(2)]

        def upstream(i):
            return {f"u{i}": (origins[i % 2].port, ("http1", "http2")[i // 2 % 2])}

        gateway = self.started(Weir(config=self.config(upstream(0), "u0")))
        loads = [Load(gateway.port, "--h1"), Load(gateway.port, "-ph2c")]
        wait_until(lambda: gateway.stats()["requests"]["answered"] > 100)
        for i in range(20):
            both = upstream(i) | upstream(i + 1)
            self.reload(gateway, both, f"u{i}")
            gateway.line_with(rf"^weir: upstream u{i + 1}: added, 1 endpoint$")
            self.reload(gateway, both, f"u{i + 1}")
            served = gateway.stats()["requests"]["answered"]
            wait_until(lambda n=served: gateway.stats()["requests"]["answered"] > n + 50)
            self.reload(gateway, upstream(i + 1), f"u{i + 1}")
            gateway.line_with(rf"^weir: upstream u{i}: removed; \d+ requests? finish(es)?$")
            gateway.line_with(rf"^weir: upstream u{i}: gone; its requests have finished$")
        for load in loads:
            (done, succeeded, failed, errored, timeout), statuses = load.finish()
            self.assertEqual((failed, errored, timeout), (0, 0, 0))
            self.assertEqual(statuses, [done, 0, 0, 0])
            self.assertEqual(done, succeeded)
            self.assertEqual(done, RATE * SECONDS)
        stats = gateway.stats()
        self.assertEqual(stats["reloads"], {"ok": 60, "refused": 0})
        self.assertEqual(list(stats["upstreams"]), ["u20"])
        self.assertEqual(stats["leaving_upstreams"], [])
        self.assertEqual(gateway.balance(), 0)
        metrics = gateway.page("/metrics").body.decode()
        self.assertEqual(set(re.findall(r'upstream="(u\d+)"', metrics)), {"u20"})

        def pools_are_empty():
            pools = json.loads(gateway.page("/pools").body)["pools"]
            return not any(pools[name]["used"] for name in POOLS)
        wait_until(pools_are_empty)
        self.assertLess(gateway.memory_bytes(), stats["memory"]["ceiling_bytes"])

    def test_a_slow_request_finishes_at_an_upstream_that_was_removed(self):
        slow = self.started(Origin(workers=4, service_ms=1500))
        fast = self.started(Origin(workers=4, service_ms=1))
        gateway = self.started(Weir(config=self.config({"old": (slow.port, "http1")}, "old")))
        load = subprocess.Popen(["h2load", "-n3", "-c3", "--h1",
                                 f"http://127.0.0.1:{gateway.port}/"],
                                stdout=subprocess.PIPE, text=True)
        wait_until(lambda: gateway.upstream("old")["in_flight"] == 3)
        self.reload(gateway, {"new": (fast.port, "http2")}, "new")
        gateway.line_with(r"^weir: upstream new: added, 1 endpoint$")
        gateway.line_with(r"^weir: upstream old: removed; 3 requests finish$")
        self.assertEqual(get(gateway.port).status, 200)
        self.assertEqual([one["upstream"] for one in gateway.stats()["leaving_upstreams"]], ["old"])
        output, _ = load.communicate(timeout=30)
        self.assertIn("3 2xx", output)
        gateway.line_with(r"^weir: upstream old: gone; its requests have finished$")
        self.assertEqual(gateway.stats()["leaving_upstreams"], [])


if __name__ == "__main__":
    unittest.main()
