"""All replicas are restarted under load, one after the other, and the only one is: no GET fails, no
POST is processed twice."""

import sys
import time
import unittest

from bars import bar
from open_loop import NOT_ANSWERED
from replicas_testing import Http2Replica, JournalingNginx, ReplicasTest

PAUSE = 0.5  # from one replica to the next


class RollingRestart(ReplicasTest):
    posts_that_may_fail = ReplicasTest.replica_count

    def roll(self, gracefully):
        load = self.load()
        for i in range(self.replica_count):
            self.restart(i, gracefully)
            self.await_recovery(i)
            time.sleep(PAUSE)
        return self.judge(load)

    def test_with_graceful_shutdown(self):
        """A POST may meet the end of an idle connection on its way: HTTP/1.1 cannot say whether it
        was read, so it is answered 502 and not sent again. Nothing else may fail."""
        failed = [o for o in self.roll(gracefully=True) if o.status != 200]
        met_the_end = [o for o in failed if o.method == "POST" and o.reason == "closed_early"]
        self.assertEqual(failed, met_the_end)
        self.assertLessEqual(len(failed), self.posts_that_may_fail)
        counts = self.processed()
        self.assertEqual([o for o in failed if counts["POST", str(o.item)]], [])

    def test_without_graceful_shutdown(self):
        self.roll(gracefully=False)


class RollingRestartOfNginx(RollingRestart):
    kind = JournalingNginx


class RollingRestartOfHttp2(RollingRestart):
    """GOAWAY and lost connections lose no request that was not processed."""
    posts_that_may_fail = 0
    kind = Http2Replica
    upstream_options = 'protocol = "http2"'


class TheOnlyReplicaRestarts(ReplicasTest):
    """With the limiter as it is by default: what is held does not fill the limit."""
    replica_count = 1
    down = 1.0
    limit = ""

    def restart_under(self, rate):
        load = self.load(GET=rate)
        began = time.monotonic()
        self.replicas[0].kill()
        time.sleep(self.down / 2)
        self.assertEqual(self.state(0), ("ejected", "connect_failed"))
        time.sleep(self.down / 2)
        self.replicas[0] = self.replicas[0].again()
        away = time.monotonic() - began
        self.await_recovery(0)
        time.sleep(0.5)
        outcomes = self.judge(load)
        waited = [o for o in outcomes if o.seconds > 0.2]
        print(f"  away for {away:.2f} s, {len(waited)} requests waited")
        self.assertGreater(len(waited), rate / 3)

    def test_requests_are_held_until_it_is_back(self):
        self.restart_under(200)

    def test_more_requests_than_the_limit_are_held_until_it_is_back(self):
        self.restart_under(500)


class MoreThanMayBeHeld(ReplicasTest):
    replica_count = 1
    down = 1.0
    upstream_options = "hold_requests_max = 256"

    def test_more_than_may_be_held_are_refused_at_once(self):
        load = self.load(GET=600)
        self.replicas[0].kill()
        time.sleep(self.down)
        self.replicas[0] = self.replicas[0].again()
        self.await_recovery(0)
        time.sleep(0.5)
        outcomes = load.stop()
        refused = [o for o in outcomes if o.status != 200]
        held = [o for o in outcomes if o.status == 200 and o.seconds > 0.3]
        print(f"over the bound: {self.by_reason(refused)}, {len(held)} held")
        self.assertEqual(len(outcomes), load.asked)
        self.assertEqual([o for o in outcomes if o.status == NOT_ANSWERED], [])
        self.assertTrue(refused)
        self.assertEqual({o.status for o in refused}, {503})
        self.assertLessEqual(len(held), 256)
        at_once = sorted(o.seconds for o in refused)[len(refused) // 2]
        self.assertLess(at_once, bar(0.5, 0.9), "a refusal does not wait for the hold")
        self.assert_at_rest()


if __name__ == "__main__":
    sys.exit(unittest.main())
