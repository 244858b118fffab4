"""One greedy actor beside twenty modest ones: the greedy one pays."""

import functools
import unittest

from bars import bar
from processes import Origin, ProcessTest, Weir, result_of, start_traffic

WORKERS = 16
SERVICE_MS = 20
CAPACITY = WORKERS * 1000 // SERVICE_MS


def judge_greedy(test, gateway, start, port, seconds=5):
    """`start(port, seconds, classes)` starts a client; the service has CAPACITY, and an actor may
    have eight requests in flight."""
    modest = [f"/modest{i}:10:x-api-key: modest-{i}" for i in range(20)]
    greedy = [f"/greedy:{CAPACITY * 4}:x-api-key: greedy"]
    result_of(start(port, seconds / 2.5, modest + greedy))
    result = result_of(start(port, seconds, modest + greedy))
    classes = result["classes"]
    served = sum(classes[f"/modest{i}"]["ok"] for i in range(20))
    asked = sum(classes[f"/modest{i}"]["offered"] - classes[f"/modest{i}"]["unsent"]
                for i in range(20))
    top = classes["/greedy"]
    print(served, asked, {key: top[key] for key in top if key != "ok_percentiles_ms"})
    test.assertGreater(asked, bar(180, 100) * seconds)
    test.assertGreaterEqual(served / asked, bar(0.99, 0.90))
    test.assertGreater(top["refused"], top["ok"])
    # Everybody, the greedy one too, gets at least 80 % of an equal share, or of what it asks.
    share = CAPACITY * seconds / (len(modest) + 1)
    for name, one in classes.items():
        with test.subTest(name):
            test.assertGreaterEqual(one["ok"],
                                    bar(0.8, 0.5) * min(share, one["offered"] - one["unsent"]))
    test.assertGreater(gateway.metric(
        'weir_admission_rejected_reason{scope="app",reason="actor_inflight"}'), 0)
    test.assertEqual(gateway.balance(), 0)


class GreedyActor(ProcessTest):
    def test_the_greedy_one_is_refused_and_the_modest_ones_are_served(self):
        origin = self.started(Origin(WORKERS, SERVICE_MS))
        gateway = self.started(Weir(config=self.app_config([origin.port], """
[actors]
identity = ["api_key"]
inflight_max = 8
[admin]
access_log = "off"
""")))
        judge_greedy(self, gateway, functools.partial(start_traffic, connections=200),
                     gateway.port)


if __name__ == "__main__":
    unittest.main()
