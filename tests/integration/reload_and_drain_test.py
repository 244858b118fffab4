"""Reload and drain under load: no request fails."""

import http.client
import json
import os
import shutil
import tempfile
import threading
import time
import unittest

from processes import SIGHUP, SIGTERM, SIGUSR1, Origin, ProcessTest, Weir, get, wait_until


class Clients:
    """Closed-loop clients with connections that are kept; counts what came back."""

    def __init__(self, port, count):
        self.port = port
        self.statuses = {}
        self.failures = []
        self.stopping = False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        connection = None
        while not self.stopping:
            fresh = connection is None
            try:
                if fresh:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                    connection.connect()
            except ConnectionRefusedError:
                connection.close()
                return  # the gateway is gone: nothing was asked
            try:
                connection.request("GET", "/")
                response = connection.getresponse()
                response.read()
                with self.lock:
                    self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
                if response.will_close:
                    connection.close()
                    connection = None
            except http.client.RemoteDisconnected:
                # Without a byte of an answer, on a connection that was used before: it was closed
                # between two requests, and the client asks again, as RFC 9110 §9.2.2 has it.
                connection.close()
                connection = None
                if fresh:
                    self.failures.append("a fresh connection was closed without an answer")
            except ConnectionResetError:
                connection.close()
                connection = None
                if fresh:
                    self.failures.append("a fresh connection was reset")
            except OSError as error:
                self.failures.append(repr(error))
                break
        if connection is not None:
            connection.close()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(20)


class ReloadAndDrain(ProcessTest):
    def setUp(self):
        self.origin = self.started(Origin(workers=64, service_ms=5))

    def config(self, **limits):
        lines = "\n".join(f"{name} = {value}" for name, value in limits.items())
        return self.app_config([self.origin.port], f"[admission]\n{lines}\n")

    def test_reloads_under_load_fail_no_request(self):
        gateway = self.started(Weir(config=self.config(max_concurrent=512)))
        clients = Clients(gateway.port, 16)
        for i in range(20):
            gateway.write_config(self.config(max_concurrent=256 + i))
            gateway.signal(SIGHUP)
            wait_until(lambda n=i: gateway.stats()["admission"]["max_concurrent"] == 256 + n)
        wait_until(lambda: gateway.stats()["requests"]["answered"] > 100)
        clients.stop()
        self.assertEqual(clients.failures, [])
        self.assertEqual(set(clients.statuses), {200})
        self.assertEqual(gateway.stats()["reloads"], {"ok": 20, "refused": 0})
        self.assertEqual(gateway.balance(), 0)

    def test_an_invalid_file_is_refused_and_the_old_one_stays(self):
        gateway = self.started(Weir(config=self.config(max_concurrent=100)))
        gateway.write_config("[admission]\nmax_concurrent = 0\nnonsense = 1\n")
        gateway.signal(SIGHUP)
        gateway.line_with(r"reload refused; the old configuration stays")
        gateway.line_with(r":2: admission.max_concurrent")
        self.assertEqual(gateway.stats()["admission"]["max_concurrent"], 100)
        self.assertEqual(gateway.stats()["reloads"]["refused"], 1)
        self.assertEqual(get(gateway.port).status, 200)

    def test_what_needs_a_restart_is_named(self):
        gateway = self.started(Weir(config=self.config(max_concurrent=100)))
        gateway.write_config(self.config(max_concurrent=101) + "\n[server]\nmax_connections = 77\n")
        gateway.signal(SIGHUP)
        gateway.line_with(r"admission.max_concurrent: 100 -> 101")
        gateway.line_with(r"server.max_connections: stays .* until a restart")
        gateway.line_with(r"1 option changed, 1 waiting for a restart")

    def test_a_refused_reload_changes_nothing_of_the_drain(self):
        gateway = self.started(Weir(config=self.config()))
        gateway.write_config(self.config() + """
[admin]
drain_timeout_ms = 1
[[upstream]]
name = "new"
endpoints = ["127.0.0.1:1"]
max_connections = 5000
[[route]]
path_prefix = "/new"
upstream = "new"
""")
        gateway.signal(SIGHUP)
        gateway.line_with(r"reload refused: reload.connections_spare = 0: there is room for 2048 "
                          r"connections .*, and 6024 are needed")
        self.assertEqual(list(gateway.stats()["upstreams"]), ["app"])
        gateway.signal(SIGTERM)
        gateway.line_with(r"draining for at most 30s")
        self.assertEqual(gateway.wait(), 0)

    def test_a_log_that_cannot_be_opened_anew_goes_on_where_it_was(self):
        folder = tempfile.mkdtemp(prefix="weir-test-log-")
        moved = folder + "-moved"
        self.addCleanup(shutil.rmtree, moved, ignore_errors=True)
        gateway = self.started(Weir(config=self.config() + f"""
[admin]
access_log = "all"
access_log_file = "{folder}/access.log"
"""))
        os.rename(folder, moved)
        gateway.signal(SIGHUP)
        gateway.line_with(r"access log is still written to the old file: .*: no such file or "
                          r"directory; make")
        gateway.line_with(r"weir: reloaded: 0 options changed")
        self.assertEqual(get(gateway.port).status, 200)
        wait_until(lambda: os.path.getsize(moved + "/access.log") > 0)

    def test_sigusr1_opens_a_moved_log_anew(self):
        folder = tempfile.mkdtemp(prefix="weir-test-log-")
        self.addCleanup(shutil.rmtree, folder)
        log = folder + "/access.log"
        gateway = self.started(Weir(config=self.config() + f"""
[admin]
access_log = "all"
access_log_file = "{log}"
"""))
        self.assertEqual(get(gateway.port, "/before").status, 200)
        wait_until(lambda: os.path.getsize(log) > 0)
        os.rename(log, log + ".1")
        gateway.signal(SIGUSR1)
        gateway.line_with(r"weir: SIGUSR1: the access log is reopened")
        self.assertEqual(get(gateway.port, "/after").status, 200)
        wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 0)
        with open(log, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["path"] for line in file], ["/after"])
        with open(log + ".1", encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["path"] for line in file], ["/before"])

    def test_a_route_that_goes_is_told_with_its_old_value(self):
        gateway = self.started(Weir(config=self.config() + """
[[route]]
path_prefix = "/x"
upstream = "app"
"""))
        gateway.write_config(self.config())
        gateway.signal(SIGHUP)
        gateway.line_with(r'^weir: route\[1\]: "app" -> none$')

    def test_a_drain_delay_lets_balancers_see_it_first(self):
        gateway = self.started(Weir(config=self.config()))
        gateway.write_config(self.config() + "\n[admin]\ndrain_delay_ms = 60000\n")
        gateway.signal(SIGHUP)
        gateway.line_with(r"admin.drain_delay_ms: 0 -> 60000")
        gateway.signal(SIGTERM)
        gateway.line_with(r"/readyz is 503; still accepting for 1m \(admin.drain_delay_ms\)")
        self.assertEqual(gateway.page("/readyz").status, 503)
        self.assertEqual(get(gateway.port).status, 200)  # a new connection
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        short = self.started(Weir(config=self.config() + "\n[admin]\ndrain_delay_ms = 50\n"))
        short.signal(SIGTERM)
        self.assertEqual(short.wait(), 0)
        self.assertIn("weir: drained", short.lines)

    def test_an_upstream_that_goes_and_comes_back_is_two_lines(self):
        port = self.origin.port
        gateway = self.started(Weir(config=self.app_config([port], upstream="hold_max_ms = 100")))
        self.origin.end()
        for _ in range(20):
            self.assertEqual(get(gateway.port).status, 503)
        gateway.line_with(r"^weir: upstream app: no endpoint is available \(0 of 1\)")
        self.started(Origin(workers=4, service_ms=1, port=port))
        wait_until(lambda: get(gateway.port).status == 200)
        gateway.line_with(r"^weir: upstream app: an endpoint answers again")
        lines = [line for line in gateway.lines
                 if "no endpoint is" in line or "answers again" in line]
        self.assertEqual(len(lines), 2, lines)

    def test_a_drain_under_load_fails_no_request_and_ends_with_0(self):
        gateway = self.started(Weir(config=self.config()))
        clients = Clients(gateway.port, 16)
        wait_until(lambda: gateway.stats()["requests"]["answered"] > 200)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        clients.stop()
        self.assertEqual(clients.failures, [])
        self.assertEqual(set(clients.statuses), {200})
        self.assertTrue(any("drained" in line for line in gateway.lines), gateway.lines)

    def test_readiness_turns_while_a_slow_request_finishes(self):
        slow = self.started(Origin(workers=4, service_ms=700))
        gateway = self.started(Weir("--to", f"127.0.0.1:{slow.port}"))
        self.assertEqual(gateway.page("/readyz").status, 200)
        answers = []
        asking = threading.Thread(target=lambda: answers.append(get(gateway.port)))
        asking.start()
        wait_until(lambda: gateway.upstream()["in_flight"] == 1)
        gateway.signal(SIGTERM)
        wait_until(lambda: gateway.page("/readyz").status == 503, seconds=0.6)
        self.assertEqual(gateway.page("/healthz").status, 200)
        asking.join(10)
        self.assertEqual(answers[0].status, 200)
        self.assertEqual(gateway.wait(), 0)

    def test_a_second_signal_ends_at_once(self):
        slow = self.started(Origin(workers=4, service_ms=60000))
        gateway = self.started(Weir("--to", f"127.0.0.1:{slow.port}"))
        threading.Thread(target=lambda: self._ignore(gateway.port), daemon=True).start()
        wait_until(lambda: gateway.upstream()["in_flight"] == 1)
        gateway.signal(SIGTERM)
        gateway.line_with("draining")
        time.sleep(0.05)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(5), 0)

    @staticmethod
    def _ignore(port):
        try:
            get(port)
        except OSError:
            pass


if __name__ == "__main__":
    unittest.main()
