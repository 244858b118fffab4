"""Clients that ask and do not take, or take back: a client beside them is served, the service is
not disturbed, and the limit is there again soon after they have gone."""

import sys
import time
import unittest

import closed_window_clients as clients
from bars import bar
from processes import Nginx, Origin, ProcessTest, Weir, wait_until
from stolen_time import StolenTime

SECONDS = float(sys.argv.pop(1)) if len(sys.argv) > 1 else 9.0  # the second visit is after 8 s
QUIET = '[admin]\naccess_log = "off"'
BACK_WITHIN = bar(5.0, 15.0)


class ClosedWindows(ProcessTest):
    def gateway(self, *, service=None):
        service = service or Nginx({"small": b"hello world\n", "big": b"b" * 1_000_000})
        self.service = self.started(service)
        return self.started(Weir(config=self.app_config([self.service.port], QUIET)))

    def limit(self, gateway):
        return gateway.upstream()["limit"]

    def attacked(self, gateway, attack, share=0.99):
        """The well-behaved client is served, before, during and after the attack; then nothing is
        left of it, and the limit is what it was."""
        with StolenTime() as stolen, clients.WellBehaved(gateway.port, path="/small") as good:
            time.sleep(1)
            before = self.limit(gateway)
            with attack:
                time.sleep(SECONDS)
                during = self.limit(gateway)
            wait_until(lambda: self.limit(gateway) >= min(before, 128), BACK_WITHIN, 0.1)
        print(type(attack).__name__, attack.connections, f"share {good.share:.4f}",
              f"p99 {good.p99 * 1e3:.0f} ms", good.statuses(), f"sent {attack.sent_bytes}",
              f"limit {before} {during} {self.limit(gateway)}",
              f"ended {gateway.metric('weir_server_blocked_ended_total'):.0f}")
        self.assertGreaterEqual(good.share, bar(share, 0.85) - stolen.excuse)
        self.assertEqual(gateway.balance(), 0)
        stats = gateway.stats()
        self.assertEqual((stats["admission"]["in_flight"], stats["admission"]["streaming"]), (0, 0))
        self.assertEqual(stats["admission"]["critical_shed"], 0)
        self.assertLess(gateway.memory_bytes(), stats["memory"]["ceiling_bytes"])

    def test_windows_of_no_bytes_on_few_connections(self):
        gateway = self.gateway()
        self.attacked(gateway, clients.ClosedWindows(gateway.port, 12, path="/small"))

    def test_large_answers_that_hold_every_connection(self):
        gateway = self.gateway()
        # A megabyte each is also work: while the service is busy with it, the limit refuses some.
        self.attacked(gateway, clients.ClosedWindows(gateway.port, 25, path="/big", portion=1),
                      share=0.95)


class RestartedService(ProcessTest):
    def test_the_limit_is_back_soon_after_the_service(self):
        origin = Origin(16, 2)
        gateway = self.started(Weir(config=self.app_config([origin.port], QUIET)))
        limits = []
        with clients.WellBehaved(gateway.port):
            time.sleep(2)
            limits.append(gateway.upstream()["limit"])
            origin.end()
            for _ in range(20):
                time.sleep(0.1)
                limits.append(gateway.upstream()["limit"])
            self.started(Origin(16, 2, port=origin.port))
            wait_until(lambda: gateway.upstream()["limit"] >= min(limits[0], 128), BACK_WITHIN,
                       0.1)
        print("limit", limits, gateway.upstream()["limit"])
        self.assertEqual(gateway.balance(), 0)


class TakenBack(ProcessTest):
    def test_resets_do_not_cost_the_service_a_connection_each(self):
        origin = self.started(Origin(400, 80))
        gateway = self.started(Weir(config=self.app_config([origin.port], QUIET)))
        attack = clients.RapidResets(gateway.port, 12, burst=10, path="/")
        with attack:
            time.sleep(4)
        resets = gateway.metric('weir_http2_glitches_total{reason="early_reset"}')
        opened = gateway.metric('weir_upstream_connects_total{upstream="app"}')
        print(f"{resets:.0f} resets, {opened:.0f} connections to the service")
        self.assertGreater(resets, 1000)
        self.assertLess(opened, resets / 4)
        self.assertEqual(gateway.balance(), 0)


if __name__ == "__main__":
    unittest.main()
