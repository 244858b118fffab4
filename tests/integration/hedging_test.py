"""Hedged reads over three replica processes: what slow answers cost with and without hedging in the
same run, and what hedging adds to the load. Argument: seconds of each part (2 by default)."""

import sys
import time
import unittest

from bars import bar
from open_loop import percentile
from processes import SIGHUP, wait_until
from replicas_testing import GETS, LIMIT, POSTS, ReplicasTest

SECONDS = 2
BURST = 20
SLOW_MS = 100
LATE_MS = 90


def hedging(on):
    return LIMIT + f"""
[hedge]
enabled = {"true" if on else "false"}
max_budget_tokens = {BURST}
"""


class Hedging(ReplicasTest):
    limit = hedging(False)

    def switch_on(self):
        self.gateway.write_config(self.app_config([one.port for one in self.replicas],
                                                  hedging(True), self.upstream_options))
        self.gateway.signal(SIGHUP)
        wait_until(lambda: self.gateway.stats()["reloads"]["ok"] == 1)

    def counted(self, name):
        return self.gateway.metric(f'weir_hedge_{name}{{upstream="app"}}')

    def measure(self, **rates):
        """Latencies of reads in ms, requests, and attempts at all replicas."""
        before = self.attempts()
        load = self.load(**rates)
        time.sleep(SECONDS)
        outcomes = self.judge(load)
        settled = min(o.sent_at for o in outcomes) + 1
        reads = [o.seconds * 1000 for o in outcomes if o.method == "GET" and o.sent_at >= settled]
        return reads, len(outcomes), self.attempts() - before

    def attempts(self):
        return sum(self.endpoint(i)["attempts"] for i in range(self.replica_count))

    def compare(self, manners):
        for replica, manner in zip(self.replicas, manners):
            replica.behave(manner)
        without, _, _ = self.measure(GET=GETS)
        self.switch_on()
        reads, requests, attempts = self.measure(GET=GETS, POST=POSTS)
        late = [sum(ms > LATE_MS for ms in part) / len(part) for part in (without, reads)]
        sent, won = self.counted("requests_total"), self.counted("wins_total")
        print(f"  p99 {percentile(without, 0.99):.1f} ms without, {percentile(reads, 0.99):.1f} ms "
              f"with; above {LATE_MS} ms {late[0]:.2%}, {late[1]:.2%}; {attempts - requests} more "
              f"attempts for {requests} requests; {sent} hedges, {won} won", flush=True)
        self.assertLessEqual(attempts - requests, 0.10 * requests + BURST)
        return *late, won

    def test_answers_that_are_late_now_and_then(self):
        without, with_hedges, won = self.compare([f"lag:{SLOW_MS}"] * 3)
        self.assertGreater(won, 0)
        self.assertGreater(without, 0.03, "one in 25")
        self.assertLess(with_hedges, without * bar(0.5, 0.75))

    def test_one_of_three_is_slower(self):
        # The choice avoids it, so hedges are few.
        without, with_hedges, _ = self.compare(["good", f"slow:{SLOW_MS + 2}", "good"])
        self.assertLessEqual(with_hedges, max(without, bar(0.01, 0.05)))

    def test_all_replicas_are_slow(self):
        """Nobody can help: what hedging adds stays within the budget, and then it is off."""
        for replica in self.replicas:
            replica.behave(f"slow:{SLOW_MS}")
        self.switch_on()
        _, requests, attempts = self.measure(GET=GETS, POST=POSTS)
        self.assertLessEqual(attempts - requests, 0.10 * requests + BURST)
        self.assertEqual(self.gateway.metric('weir_hedge_cohort_slow{upstream="app"}'), 1)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SECONDS = int(sys.argv.pop(1))
    unittest.main()
