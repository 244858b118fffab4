"""Ten times more than the service can do, in mixed classes: goodput, the high class, the cost of a
refusal, memory, recovery."""

import signal
import subprocess
import time
import unittest

from bars import bar
from processes import Origin, ProcessTest, Weir, get, result_of, start_traffic
from stolen_time import StolenTime

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


class Round:
    """Some seconds of the same load, and what all sides say of it. After the pause before it the
    limiter looks again for the time of an unloaded service, which costs a third of a second; the
    origin is judged behind that, as it would be in service."""

    def __init__(self, gateway, origin, classes, start=start_traffic, judged=5):
        before = dict(gateway.histogram(REFUSALS))
        with StolenTime() as self.stolen:
            traffic = start(gateway.port, judged + 2, classes)
            time.sleep(1.5)
            origin.stats()  # counts from here
            time.sleep(judged)
            self.origin = origin.stats()
            result = result_of(traffic)
        self.seconds, self.classes = result["seconds"], result["classes"]
        counts = {bound: n - before.get(bound, 0) for bound, n in gateway.histogram(REFUSALS)}
        self.refusals = max(counts.values())
        self.quick_refusals = counts[0.001]

    def show(self):
        for name, one in self.classes.items():
            print(name, {key: one[key] for key in one if key != "ok_percentiles_ms"})
        print(self.origin, f"refused within 1 ms: {self.quick_refusals} of {self.refusals}; "
              f"time taken away: {self.stolen.share:.1%}")

    def served(self, name, excuse):
        one = self.classes[name]
        return one["ok"] >= (bar(0.99, 0.95) - excuse) * (one["offered"] - one["unsent"])

    def faults(self, excuse):
        """What was promised and not kept, if a share of `excuse` of everything may be late."""
        offered = sum(c["offered"] - c["unsent"] for c in self.classes.values())
        if offered < CAPACITY * 10 * self.seconds * (bar(0.8, 0.5) - excuse):
            yield f"{offered} requests are not the load"
        if self.origin["busy_share"] < bar(0.97, 0.80) - excuse:
            yield "goodput is below what the service could do"
        if self.origin["wasted"] > self.origin["served"] * (bar(0.01, 0.05) + excuse):
            yield "work was done for nobody"
        for name in self.classes:
            if name.startswith(("/critical", "/high")) and not self.served(name, excuse):
                yield f"{name} is not served"
        if self.refusals < 1000:
            yield "there were no refusals"
        if self.quick_refusals < (bar(0.99, 0.90) - excuse) * self.refusals:
            yield "refusals took more than a millisecond"
        for name, one in self.classes.items():
            if (one["broken"], one["other"]) != (0, 0):
                yield f"broken answers for {name}"


class Overload(ProcessTest):
    def test_ten_times_the_capacity(self):
        origin = self.started(Origin(WORKERS, SERVICE_MS))
        gateway = self.started(Weir(config=ROUTES.format(port=origin.port)))
        high = CAPACITY * 4 // 10
        normal = CAPACITY * 6
        classes = [f"/high:{high}", f"/normal:{normal}", f"/low:{CAPACITY * 10 - normal - high}"]
        # The limiter learns before it is judged, as it would have in service.
        result_of(start_traffic(gateway.port, 3, classes))
        for _ in range(4):  # again only if the machine stood still
            load = Round(gateway, origin, classes)
            load.show()
            if not list(load.faults(0)) or not load.stolen.excuse:
                break
        self.assertEqual(list(load.faults(load.stolen.excuse)), [])
        self.assertLess(gateway.memory_bytes(), gateway.stats()["memory"]["ceiling_bytes"])
        self.check_recovery(gateway)
        self.assertEqual(gateway.balance(), 0)

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
