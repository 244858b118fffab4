"""The decision recorder of a real gateway before a real service, and `weir replay` of what it
recorded: from its admin endpoint, and from its file after the process was killed."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from bars import bar
from processes import WEIR, Origin, ProcessTest, Weir, get, result_of, start_traffic, wait_until

WORKERS = 16
CONFIG = """
[admission.limit]
policy = "fixed"
initial_limit = 40
max_limit = 40
[recorder]
folder = "{folder}"
file_bytes = "2MiB"
[admin]
access_log = "off"
"""


def replay(*arguments):
    return subprocess.run([WEIR, "replay", *arguments], capture_output=True, text=True, timeout=60)


class Replay(ProcessTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # 100 to 200 ms: far above what a scheduler is late by. At most 107 answers a second.
        self.origin = self.started(Origin(WORKERS, 100, service_ms_max=200))
        self.gateway = self.started(Weir(config=self.app_config(
            [self.origin.port], CONFIG.format(folder=self.folder))))

    def test_an_overload_is_recorded_and_replayed(self):
        # A steady overload: and quiet before it, for the service times.
        steady = bar(25, 5)
        for rate, seconds in ((50, bar(10, 3)), (300, steady), (50, 2)):
            result_of(start_traffic(self.gateway.port, seconds, [f"/:{rate}"], connections=200))
        answer = get(self.gateway.port, headers={"x-request-id": "the-one"})
        self.gateway.settled()
        explained = json.loads(self.gateway.page("/explain?id=the-one").body)
        self.assertEqual(answer.status, 200)
        self.assertEqual(explained["outcome"], "ok")
        self.assertEqual(explained["limit"], 40)
        recorded = self.gateway.metric("weir_recorder_decisions_total")
        self.assertEqual(recorded, self.gateway.metric("weir_requests_received_total"))

        self.judge(f"http://127.0.0.1:{self.gateway.admin}", recorded)
        wait_until(lambda: self.gateway.metric("weir_recorder_written_total") == recorded)
        self.judge(os.path.join(self.folder, "running.weirrec"), recorded)

    def test_a_kill_in_the_middle_of_writing_loses_little(self):
        traffic = start_traffic(self.gateway.port, 30, ["/:1500"], connections=200)
        self.addCleanup(traffic.wait)
        self.addCleanup(traffic.kill)
        wait_until(lambda: self.gateway.metric("weir_recorder_written_total") > 4000)
        recorded = self.gateway.metric("weir_recorder_decisions_total")
        self.gateway.signal(signal.SIGKILL)
        self.gateway.wait()
        traffic.kill()
        # The overload goes on, and is in its file until the end, too.
        overload, = (name for name in os.listdir(self.folder) if name.startswith("overload-"))
        for name in ("running.weirrec", overload):
            done = replay(os.path.join(self.folder, name), "--json")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            page = json.loads(done.stdout)
            # Lost is what came since the last write, which is at most a tenth of a second ago if
            # the writing thread gets its turn.
            self.assertGreater(page["decisions"], recorded - bar(400, 2000), name)
            self.assertLessEqual(page["torn"], 1, name)

    def judge(self, source, recorded):
        """On a quiet machine it fits; on a busy one it may say plainly that it does not."""
        done = replay(source, "--json", "--set", "admission.limit.max_limit=20")
        self.assertIn(done.returncode, bar((0,), (0, 1)), done.stdout + done.stderr)
        page = json.loads(done.stdout)
        print(json.dumps({key: page[key] for key in ("service", "deviations", "fits")}))
        self.assertEqual(page["decisions"], recorded)
        self.assertEqual(page["torn"], 0)
        self.assertGreater(page["recorded"]["refused"], 300)
        self.assertTrue(page["service"]["saturated"])
        self.assertAlmostEqual(page["service"]["workers"], WORKERS, delta=6)
        self.assertEqual(page["fits"], done.returncode == 0)
        if page["fits"]:
            self.assertGreaterEqual(page["forecast"]["refused"], page["replayed"]["refused"])
            self.assertLess(page["forecast"]["p99_ms"], page["replayed"]["p99_ms"])
        else:
            self.assertIsNone(page["forecast"])
            self.assertIn("does not fit", replay(source).stdout)

    def test_what_cannot_be_read_is_said(self):
        for source, words in ((os.path.join(self.folder, "none"), "no such file"),
                              (WEIR, "no recording of Weir"),
                              (f"http://127.0.0.1:{self.gateway.admin}/nothing", "404"),
                              (f"http://127.0.0.1:{self.gateway.admin}", "at least 200"),
                              ("http://127.0.0.1:1", "does not answer")):
            done = replay(source)
            self.assertEqual(done.returncode, 2, source)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
