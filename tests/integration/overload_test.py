"""Ten times more than the service can do, in mixed classes: goodput, the high class, the cost of a
refusal, memory, recovery."""

import signal
import subprocess
import time
import unittest

from processes import Origin, ProcessTest, StolenTime, Weir, get, result_of, start_traffic

WORKERS = 8
SERVICE_MS = 20
CAPACITY = WORKERS * 1000 // SERVICE_MS  # requests a second, on an unhurried machine

ROUTES = """
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{port}"]
[[route]]
path_prefix = "/high"
priority = "high"
upstream = "app"
[[route]]
path_prefix = "/low"
priority = "low"
upstream = "app"
[[route]]
upstream = "app"
[admin]
access_log = "off"
"""


REFUSALS = "weir_refusal_duration_seconds"


class Overload(ProcessTest):
    def test_ten_times_the_capacity(self):
        origin = self.started(Origin(WORKERS, SERVICE_MS))
        gateway = self.started(Weir(config=ROUTES.format(port=origin.port)))
        high = CAPACITY * 4 // 10
        normal = CAPACITY * 6
        classes = [f"/high:{high}", f"/normal:{normal}", f"/low:{CAPACITY * 10 - normal - high}"]
        # The limiter learns before it is judged, as it would have in service.
        result_of(start_traffic(gateway.port, 3, classes))
        origin.stats()
        before = gateway.histogram(REFUSALS)
        with StolenTime() as stolen:
            traffic = start_traffic(gateway.port, 6, classes)
            time.sleep(5.5)
            stats = origin.stats()
            result = result_of(traffic)
        print(result, stats)

        offered = sum(c["offered"] - c["unsent"] for c in result["classes"].values())
        self.assertGreater(offered, CAPACITY * 10 * result["seconds"] * 0.8, "load was not offered")
        with self.subTest("goodput is at least 95 % of what the service could do"):
            self.assertGreaterEqual(stats["busy_share"], 0.95)
            self.assertLessEqual(stats["wasted"], stats["served"] * 0.01)
        with self.subTest("the high class is served"):
            top = result["classes"]["/high"]
            self.assertGreaterEqual(top["ok"] / (top["offered"] - top["unsent"]), 0.99)
        with self.subTest("a refusal takes less than a millisecond"):
            self.check_refusals(gateway, before, stolen, classes)
        with self.subTest("nothing is broken"):
            for name, one in result["classes"].items():
                self.assertEqual((one["broken"], one["other"]), (0, 0), name)
        with self.subTest("memory is below the ceiling"):
            self.assertLess(gateway.memory_bytes(), gateway.stats()["memory"]["ceiling_bytes"])
        self.check_recovery(gateway)
        self.assertEqual(gateway.balance(), 0)

    def check_refusals(self, gateway, before, stolen, classes):
        """In a thousandth of a second, 99 of 100. Measured again if the machine stood still."""
        for _ in range(6):
            after = gateway.histogram(REFUSALS)
            counts = [(bound, n - dict(before).get(bound, 0)) for bound, n in after]
            self.assertGreater(counts[-1][1], 1000)
            quick = dict(counts)[0.001] / counts[-1][1]
            if quick >= 0.99 or stolen.share < 0.01:
                break
            before = after
            with StolenTime() as stolen:
                result_of(start_traffic(gateway.port, 3, classes))
        self.assertGreaterEqual(quick, 0.99, (stolen.share, counts))

    def check_recovery(self, gateway):
        """Within two seconds of the end of the load everything is as before."""
        time.sleep(2)
        self.assertFalse(gateway.upstream()["overloaded"])
        for path in ("/high", "/normal", "/low") * 5:
            self.assertEqual(get(gateway.port, path).status, 200)

    def test_a_stall_is_not_held_against_those_who_wait(self):
        """Sixteen clients share four places; the gateway is stopped longer than they may wait."""
        origin = self.started(Origin(4, 1))
        gateway = self.started(Weir(config=self.app_config([origin.port], """
[admission]
normal_wait_max_ms = 150
[admission.limit]
policy = "fixed"
initial_limit = 4
""")))
        clients = subprocess.Popen(["wrk", "-t1", "-c16", "-d3s", f"http://127.0.0.1:{gateway.port}"],
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(clients.kill)
        for _ in range(5):
            time.sleep(0.3)
            gateway.signal(signal.SIGSTOP)
            time.sleep(0.25)
            gateway.signal(signal.SIGCONT)
        clients.wait(20)
        requests = gateway.stats()["requests"]
        self.assertEqual(requests["refused"], 0)
        self.assertGreater(requests["answered"], 500)

    def test_shares_hold_with_a_fixed_limit(self):
        origin = self.started(Origin(WORKERS, SERVICE_MS))
        config = ROUTES.format(port=origin.port).replace(
            "[admin]", '[admission.limit]\npolicy = "fixed"\ninitial_limit = 20\n[admin]')
        gateway = self.started(Weir(config=config))
        traffic = start_traffic(gateway.port, 3, ["/low:2000"], connections=100)
        time.sleep(1)
        seen = []
        for _ in range(50):
            seen.append(gateway.upstream()["in_flight"])
            time.sleep(0.01)
        result_of(traffic)
        self.assertLessEqual(max(seen), 15)  # 0.75 of 20
        self.assertEqual(gateway.balance(), 0)


if __name__ == "__main__":
    unittest.main()
