"""HTTP/2 over TLS as programs speak it that nobody here wrote: Node's http2 module and Chromium,
through the gateway, to a site of HTTP/1.1."""

import base64
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest

from processes import PATIENCE, SIGTERM, Process, ProcessTest, Weir, wait_until
from small_site import LARGE, PARTS, PICTURES, Site
from tls_test import Certificates, run

CLIENT = os.path.join(os.path.dirname(__file__), "http2_client.mjs")
LARGE_SHA = hashlib.sha256(LARGE).hexdigest()
WINDOW = 65535  # what Node and the protocol begin with


class Apps(ProcessTest):
    def setUp(self):
        self.site = self.started(Site())
        folder = tempfile.TemporaryDirectory(prefix="weir-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.certificates = Certificates(self.folder)
        self.certificate, key = self.certificates.make("server", "/CN=localhost")
        self.log = os.path.join(self.folder, "access.log")
        self.gateway = self.started(Weir(config=self.app_config([self.site.port], f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{self.certificate}"
private_key = "{key}"
[admin]
access_log = "all"
access_log_file = "{self.log}"
""")))
        port = self.gateway.line_with(r"listening with TLS on .*:(\d+)")[1]
        self.url = f"https://127.0.0.1:{port}"

    def logged(self, count):
        """The access log, once it has so many lines."""
        def lines():
            with open(self.log, encoding="utf-8") as file:
                found = file.read().splitlines()
            return found if len(found) >= count else None
        return [json.loads(line) for line in wait_until(lines)]

    def pools_are_at_rest(self):
        def rest():
            pools = json.loads(self.gateway.page("/pools").body)["pools"]
            return all(pools[name]["used"] == 0 for name in
                       ("streams", "body_leases", "http2_sessions", "write_buffers"))
        wait_until(rest)
        self.assertEqual(self.gateway.balance(), 0)


class Node(Apps):
    def node(self, what):
        """What it said, one object, after it ended in order."""
        done = subprocess.run(["node", CLIENT, self.url, self.certificates.authority, what],
                              capture_output=True, text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_as_many_streams_at_once_as_are_allowed(self):
        said = self.node("many")
        self.assertEqual((said["protocol"], said["encrypted"]), ("h2", True))
        self.assertGreaterEqual(said["atOnce"], 100)
        self.assertEqual(set(said["statuses"]), {200})
        self.assertEqual(len(said["statuses"]), said["atOnce"])
        self.assertEqual(len(set(said["bytes"])), 1)
        self.assertEqual(self.gateway.metric("weir_http2_connections_total"), 1)
        self.assertEqual(self.gateway.metric("weir_http2_requests_total"), said["atOnce"])
        self.pools_are_at_rest()

    def test_bodies_go_up_with_and_without_a_length(self):
        said = self.node("post")
        for seen in (said["known"], said["unknown"]):
            self.assertEqual((seen["bytes"], seen["sha"]), (said["size"], said["sha"]))
            self.assertEqual(seen["headers"]["x-forwarded-proto"], "https")
            self.assertEqual(seen["headers"]["via"], "2 weir")
        self.assertEqual(said["known"]["headers"]["content-length"], str(said["size"]))
        self.assertEqual(said["unknown"]["headers"]["transfer-encoding"], "chunked")
        self.pools_are_at_rest()

    def test_trailers_pass_both_ways(self):
        said = self.node("trailers")
        self.assertEqual(said["up"]["bytes"], 4)
        self.assertEqual(said["up"]["trailers"], {"x-up": "last word"})
        self.assertEqual(said["body"], "hello")
        self.assertEqual(said["down"], {"x-checksum": "5d41402a"})
        self.pools_are_at_rest()

    def test_a_download_keeps_to_the_window_and_holds_nobody_up(self):
        said = self.node("download")
        self.assertEqual(said["status"], 200)
        self.assertEqual(said["beside"], [200] * 10)
        self.assertEqual(said["held"], WINDOW)
        self.assertEqual((said["bytes"], said["sha"]), (len(LARGE), LARGE_SHA))
        self.assertEqual(self.gateway.metric("weir_http2_connections_total"), 1)
        self.pools_are_at_rest()

    def test_a_drain_is_told_and_what_is_under_way_is_answered(self):
        node = self.started(Process("node", CLIENT, self.url, self.certificates.authority, "drain",
                                    stdout=subprocess.PIPE))
        said = []
        reading = threading.Thread(
            target=lambda: said.extend(json.loads(line) for line in node.child.stdout))
        reading.start()
        self.assertTrue(self.site.held.acquire(timeout=PATIENCE), node.lines)
        self.gateway.signal(SIGTERM)
        # Two of them: one that names no stream, and once all that was on its way must be here, one
        # that names the last.
        wait_until(lambda: len(said) >= 2)
        self.assertEqual([entry["goaway"] for entry in said], [0, 0])
        self.site.go_on.set()
        self.assertEqual(node.wait(), 0, node.lines)
        reading.join(PATIENCE)
        self.assertEqual(said[2:], [
            {"status": 200, "body": "held", "closedBefore": False},
            {"closed": True, "destroyed": True}])
        self.assertEqual(self.gateway.wait(), 0)
        self.assertEqual(self.site.asked, ["/held"])


class Chromium(Apps):
    def browse(self, url):
        """Chromium on a profile of its own. It trusts this certificate alone, and finds nobody but
        this machine."""
        public = run("openssl", "x509", "-in", self.certificate, "-noout", "-pubkey").stdout
        der = run("openssl", "pkey", "-pubin", "-outform", "der", input=public).stdout
        pin = base64.b64encode(hashlib.sha256(der).digest()).decode()
        return self.started(Browser(
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--disable-default-apps", "--disable-extensions",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={self.folder}/profile",
            f"--ignore-certificate-errors-spki-list={pin}", url,
            stdout=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "HOME": self.folder}))

    def test_a_page_with_all_that_belongs_to_it(self):
        browser = self.browse(f"{self.url}/")
        wait_until(lambda: self.site.reported.is_set() or browser.child.poll() is not None, 45)
        self.assertTrue(self.site.reported.is_set(), browser.lines)

        # What the browser says of it.
        report = self.site.report
        self.assertEqual(report["order"], ["first", "second"])
        self.assertEqual(report["margin"], "42px")
        self.assertEqual(report["pictures"], PICTURES)
        self.assertEqual(report["large"], LARGE_SHA)
        self.assertEqual(sorted(report["entries"]),
                         sorted([path, "h2", 200] for path in ["/", *PARTS, "/large"]))

        # What the site was asked, each once, and what the gateway has counted and written down.
        wanted = sorted(["/", *PARTS, "/large", "/report"])
        self.assertEqual(sorted(self.site.asked), wanted)
        self.assertEqual(self.gateway.metric("weir_http2_requests_total"), len(wanted))
        entries = self.logged(len(wanted))
        self.assertEqual(sorted(entry["path"] for entry in entries), wanted)
        self.assertEqual({(entry["protocol"], entry["status"]) for entry in entries}, {("h2", 200)})
        self.assertEqual(self.gateway.metric('weir_tls_handshakes_total{result="failed"}'), 0)
        browser.end()
        self.pools_are_at_rest()


class Browser(Process):
    """Ends with all the processes it has made."""

    def end(self):
        if self.child.returncode is None:
            os.killpg(self.child.pid, signal.SIGKILL)
        super().end()


if __name__ == "__main__":
    unittest.main()
