"""What the tests of failing replicas share: replicas as processes with journals, load with ids, and
the verdicts that hold whatever fails."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from open_loop import OpenLoop
from processes import Process, ProcessTest, Weir, free_port, get, wait_until

HERE = pathlib.Path(__file__).parent
GETS = 500
POSTS = 50
# The limiter is not under test: a machine that stalls would make it refuse.
LIMIT = """
[admission.limit]
policy = "fixed"
initial_limit = 1000
max_limit = 1000
"""
# What a request takes from, and gives back when it ends.
POOLS = ("proxied_requests", "request_heads", "response_regions", "write_buffers")


class Replica(Process):
    def __init__(self, journal, port=0, host="127.0.0.1", delay_ms=2):
        self.journal, self.host, self.delay_ms = journal, host, delay_ms
        super().__init__(sys.executable, "-B", str(HERE / "replica.py"), "--journal", journal,
                         "--port", str(port), "--host", host, "--delay-ms", str(delay_ms),
                         *self.arguments(), stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])

    def arguments(self):
        return ()

    def again(self):
        """The same replica, started once more."""
        return type(self)(self.journal, self.port, self.host, self.delay_ms)

    def behave(self, manner):
        get(self.port, f"/manner?{manner}", method="POST")

    def leave(self):
        """Ends it as an orchestrator does; returns when it has ended."""
        self.signal(signal.SIGTERM)
        self.wait()
        self.end()

    def kill(self):
        self.end()


class Http2Replica(Replica):
    """Node, HTTP/2 in cleartext."""

    def __init__(self, journal, port=0, host="127.0.0.1", delay_ms=2):
        self.journal, self.host, self.delay_ms = journal, host, delay_ms
        Process.__init__(self, "node", str(HERE / "http2_replica.mjs"), str(port), journal,
                         str(delay_ms), stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])


class JournalingNginx(Process):
    """nginx as a replica: its access log is the journal."""

    def __init__(self, journal, port=0):
        self.journal = journal
        self.port = port or free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="weir-nginx-")
        own = self.folder.name
        conf = pathlib.Path(own, "nginx.conf")
        conf.write_text(f"""
daemon off; master_process on; worker_processes 1; pid {own}/pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  log_format journal '$request_method $args'; access_log {journal} journal;
  client_body_temp_path {own}/b; proxy_temp_path {own}/p; fastcgi_temp_path {own}/f;
  uwsgi_temp_path {own}/u; scgi_temp_path {own}/s;
  server {{ listen 127.0.0.1:{self.port}; location / {{ return 200 $args; }} }}
}}
""", encoding="utf-8")
        super().__init__("nginx", "-c", str(conf), "-e", "stderr")
        wait_until(lambda: pathlib.Path(own, "pid").exists() and self._listens())

    def _listens(self):
        try:
            return get(self.port, "/?probe", timeout=1).status == 200
        except OSError:
            return False

    def again(self):
        return JournalingNginx(self.journal, self.port)

    def leave(self):
        self.signal(signal.SIGQUIT)
        self.wait()
        self.end()

    def kill(self):
        self.end()

    def end(self):
        """The worker ends with the master, which must not start another one."""
        if self.child.poll() is None:
            task = pathlib.Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
            workers = task.read_text().split()
            self.child.kill()
            for pid in workers:
                os.kill(int(pid), signal.SIGKILL)
        super().end()
        self.folder.cleanup()


class ReplicasTest(ProcessTest):
    """Replicas behind one gateway, under load."""

    replica_count = 3
    kind = Replica
    upstream_options = ""
    limit = LIMIT

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-replicas-")
        self.addCleanup(folder.cleanup)
        self.replicas = []
        self.addCleanup(lambda: [one.end() for one in self.replicas])
        for i in range(self.replica_count):
            self.replicas.append(self.kind(os.path.join(folder.name, f"journal-{i}")))
        self.gateway = self.started(Weir(config=self.app_config(
            [one.port for one in self.replicas], self.limit, self.upstream_options)))

    def restart(self, i, gracefully=False, down=0.0):
        if gracefully:
            self.replicas[i].leave()
        else:
            self.replicas[i].kill()
        time.sleep(down)
        self.replicas[i] = self.replicas[i].again()

    def load(self, seconds_before=1.0, **rates):
        """Starts the load; when it returns, the gateway knows its replicas."""
        load = OpenLoop(self.gateway.port, rates or {"GET": GETS, "POST": POSTS}).start()
        self.addCleanup(load.stop)
        time.sleep(seconds_before)
        return load

    # ---- what the gateway says

    def endpoint(self, i):
        for one in json.loads(self.gateway.page("/endpoints").body)["endpoints"]:
            if one["endpoint"].endswith(f":{self.replicas[i].port}"):
                return one
        raise AssertionError(f"/endpoints does not list replica {i}")

    def state(self, i):
        one = self.endpoint(i)
        return one["state"], one["reason"]

    def await_state(self, i, *expected, seconds=5.0):
        """Waits until /endpoints shows one of the states, as (state, reason)."""
        return wait_until(lambda: self.state(i) in expected and self.state(i), seconds)

    def await_recovery(self, i, seconds=15.0):
        """Until it gets requests again as any other; returns how long that took."""
        began = time.monotonic()
        wait_until(lambda: self.state(i)[0] in ("available", "returning"), seconds)
        return time.monotonic() - began

    # ---- verdicts

    def processed(self):
        """(method, id) -> how often a replica has read it."""
        counts = collections.Counter()
        for path in {one.journal for one in self.replicas}:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    method, _, item = line.rstrip("\n").partition(" ")
                    counts[method, item] += 1
        return counts

    def judge(self, load, get_errors_max=0):
        """Ends the load and checks what always holds. Returns the outcomes."""
        outcomes = load.stop()
        self.assertEqual(load.surprises, [])
        self.assertEqual(len(outcomes), load.asked, "each request has one answer")
        self.assertEqual([o for o in outcomes if o.fault], [], "answers are complete and their own")
        gets = [o for o in outcomes if o.method == "GET"]
        posts = [o for o in outcomes if o.method == "POST"]
        failed = [o for o in gets if o.status != 200]
        failed_posts = [o for o in posts if o.status != 200]
        print(f"{self.id().rpartition('.')[2]}: {len(gets)} GETs, {len(failed)} failed "
              f"{self.by_reason(failed)}; {len(posts)} POSTs, {len(failed_posts)} failed "
              f"{self.by_reason(failed_posts)}; slowest "
              f"{max(o.seconds for o in outcomes) * 1000:.0f} ms", flush=True)
        self.assertLessEqual(len(failed), get_errors_max, failed[:5])
        counts = self.processed()
        self.assertEqual([o.item for o in posts if counts["POST", str(o.item)] > 1], [],
                         "no POST is processed twice")
        self.assertEqual([o.item for o in outcomes
                          if o.status == 200 and not counts[o.method, str(o.item)]], [])
        self.assert_at_rest()
        return outcomes

    @staticmethod
    def by_reason(outcomes):
        return dict(collections.Counter(f"{o.status} {o.reason or o.fault}" for o in outcomes))

    def assert_at_rest(self):
        self.assertEqual(self.gateway.balance(), 0)

        def used():
            page = json.loads(self.gateway.page("/pools").body)
            return {name: page["pools"][name]["used"] for name in POOLS
                    if page["pools"][name]["used"]}
        try:
            wait_until(lambda: not used(), 5)
        except AssertionError:
            self.fail(f"pools do not return to zero: {used()}")
        self.assertEqual([self.endpoint(i)["in_flight"] for i in range(self.replica_count)],
                         [0] * self.replica_count)
        ceiling = json.loads(self.gateway.page("/pools").body)["ceiling_bytes"]
        self.assertLess(self.gateway.memory_bytes(), ceiling)
