"""One greedy actor beside twenty modest ones: the greedy one pays."""

import unittest

from bars import bar
from processes import Origin, ProcessTest, Weir, result_of, start_traffic

WORKERS = 16
SERVICE_MS = 20
CAPACITY = WORKERS * 1000 // SERVICE_MS


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
        modest = [f"/modest{i}:10:x-api-key: modest-{i}" for i in range(20)]
        greedy = [f"/greedy:{CAPACITY * 4}:x-api-key: greedy"]
        result_of(start_traffic(gateway.port, 2, modest + greedy, connections=200))
        seconds = 5
        result = result_of(start_traffic(gateway.port, seconds, modest + greedy, connections=200))
        classes = result["classes"]
        served = sum(classes[f"/modest{i}"]["ok"] for i in range(20))
        asked = sum(classes[f"/modest{i}"]["offered"] - classes[f"/modest{i}"]["unsent"]
                    for i in range(20))
        print(served, asked, classes["/greedy"])
        self.assertGreater(asked, bar(900, 500))
        self.assertGreaterEqual(served / asked, bar(0.99, 0.90))
        top = classes["/greedy"]
        self.assertGreater(top["refused"], top["ok"])
        # Everybody, the greedy one too, gets at least 80 % of an equal share, or of what it asks.
        share = CAPACITY * seconds / (len(modest) + 1)
        for name, one in classes.items():
            with self.subTest(name):
                self.assertGreaterEqual(one["ok"],
                                        bar(0.8, 0.5) * min(share, one["offered"] - one["unsent"]))
        self.assertGreater(gateway.metric(
            'weir_admission_rejected_reason{scope="app",reason="actor_inflight"}'), 0)
        self.assertEqual(gateway.balance(), 0)


if __name__ == "__main__":
    unittest.main()
