"""PROXY protocol, v1 and v2, as HAProxy and curl send it: the client's address is the announced one
for the backend, the access log and the bounds per source; everybody else is closed."""

import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from backends_testing import Configured
from end_to_end_test import PythonBackend
from processes import ProcessTest, WEIR, Weir, free_port, get, wait_until
from tls_test import Certificates

PROXIED = """
[listen]
addresses = ["127.0.0.1:0"]
proxy_protocol = ["127.0.0.1:0"]
[trust]
proxies = ["127.0.0.1"]
"""
HEADER = b"PROXY TCP4 192.0.2.7 10.0.0.1 4242 80\r\n"
ASK = b"GET / HTTP/1.1\r\nhost: t\r\n\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version2(command, family, body):
    return SIGNATURE + bytes([command, family]) + len(body).to_bytes(2, "big") + body


class Forwarder(Configured):
    """HAProxy, which forwards bytes: a port for each (port of weir, options of the server line)."""

    def __init__(self, *servers):
        self.ports = [free_port() for _ in servers]
        self.port = self.ports[0]
        parts = [f"""
listen p{number}
  bind 127.0.0.1:{port}
  server s 127.0.0.1:{to} source 127.0.0.1 {options}
""" for number, (port, (to, options)) in enumerate(zip(self.ports, servers))]
        super().__init__("haproxy", """
global
  maxconn 500
defaults
  mode tcp
  timeout client 20s
  timeout server 20s
  timeout connect 2s
""" + "".join(parts), "haproxy", "-db", "-q", "-f", "OWN/conf")


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 20, (source, 0))


def rest_of(client):
    """All that comes until the end, however it ends."""
    found = b""
    try:
        while block := client.recv(4096):
            found += block
    except ConnectionResetError:
        pass
    return found


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], capture_output=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


class BehindProxies(ProcessTest):
    def setUp(self):
        self.backend = self.started(PythonBackend())

    def gateway(self, extra="", *arguments):
        return self.started(Weir(*arguments, config=self.app_config([self.backend.port],
                                                                    PROXIED + extra)))

    def forwarder(self, *servers):
        return self.started(Forwarder(*servers))

    @staticmethod
    def forwarded_for(body):
        return {n.lower(): v for n, v in json.loads(body)["headers"]}["x-forwarded-for"]

    def seen_from(self, port, source, headers=None):
        client = http.client.HTTPConnection("127.0.0.1", port, 20, (source, 0))
        self.addCleanup(client.close)
        client.request("GET", "/", headers=headers or {})
        answer = client.getresponse()
        self.assertEqual(answer.status, 200)
        return self.forwarded_for(answer.read())

    @staticmethod
    def headers_by(gateway, result):
        return gateway.metric(f'weir_proxy_headers_total{{result="{result}"}}')

    def test_haproxy_announces_clients_in_both_versions(self):
        log = os.path.join(self.folder(), "access.log")
        gateway = self.gateway(f'[admin]\naccess_log = "all"\naccess_log_file = "{log}"\n')
        proxy = self.forwarder(
            (gateway.port, "send-proxy"), (gateway.port, "send-proxy-v2"),
            (gateway.port, "send-proxy-v2 proxy-v2-options crc32c,unique-id,ssl"),
            (gateway.port, "send-proxy-v2 check inter 100ms"))
        for number, port in enumerate(proxy.ports):
            source = f"127.0.1.{number + 1}"
            self.assertEqual(self.seen_from(port, source), source)
            forged = {"x-forwarded-for": "10.9.9.9", "forwarded": "for=10.9.9.9"}
            self.assertEqual(self.seen_from(port, source, forged), source, "the client is no proxy")
        def lines():
            found = pathlib.Path(log).read_text(encoding="utf-8").splitlines()
            return found if len(found) == 8 else None
        clients = sorted(json.loads(line)["client"] for line in wait_until(lines))
        self.assertEqual(clients, sorted(2 * [f"127.0.1.{n}" for n in range(1, 5)]))
        self.assertGreaterEqual(self.headers_by(gateway, "version_1"), 2)
        self.assertGreaterEqual(self.headers_by(gateway, "version_2"), 6)
        wait_until(lambda: self.headers_by(gateway, "local") > 0)  # health checks

    def folder(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-proxy-")
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_http2_and_tls_come_through(self):
        certificates = Certificates(self.folder())
        chain, key = certificates.make("site", "/CN=localhost")
        gateway = self.gateway(f'[tls]\nlisten = ["127.0.0.1:0"]\ncertificate = "{chain}"\n'
                               f'private_key = "{key}"\n')
        tls = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])
        proxy = self.forwarder((gateway.port, "send-proxy-v2"), (tls, "send-proxy-v2"),
                               (tls, "send-proxy"))
        clear = curl("--interface", "127.0.1.1", "--http2-prior-knowledge",
                     "-w", "\n%{http_version}", f"http://127.0.0.1:{proxy.ports[0]}/")
        body, version = clear.decode().rsplit("\n", 1)
        self.assertEqual((self.forwarded_for(body), version), ("127.0.1.1", "2"))
        for port in proxy.ports[1:]:
            for protocol, expected in (("--http2", "2"), ("--http1.1", "1.1")):
                seen = curl("--interface", "127.0.1.2", "--cacert", certificates.authority,
                            protocol, "-w", "\n%{http_version}", f"https://localhost:{port}/")
                body, version = seen.decode().rsplit("\n", 1)
                self.assertEqual((self.forwarded_for(body), version), ("127.0.1.2", expected))
        # Without the header, and with it inside of TLS: closed.
        context = ssl.create_default_context(cafile=certificates.authority)
        with connect(tls) as raw, self.assertRaises((ssl.SSLError, ConnectionError, OSError)):
            context.wrap_socket(raw, server_hostname="localhost")
        self.assertEqual(self.headers_by(gateway, "missing"), 1)

    def test_curl_announces_itself(self):
        gateway = self.gateway()
        url = f"http://127.0.0.1:{gateway.port}/"
        self.assertEqual(self.forwarded_for(curl("--haproxy-protocol", url)), "127.0.0.1")
        without = subprocess.run(["curl", "-sS", url], capture_output=True, check=False)
        self.assertEqual(without.returncode, 52, without)  # an empty reply

    def test_strangers_and_bad_headers_are_closed_and_counted(self):
        gateway = self.gateway()
        with connect(gateway.port, "127.0.0.9") as stranger:
            stranger.sendall(HEADER + ASK)
            self.assertEqual(rest_of(stranger), b"")
        self.assertEqual(self.headers_by(gateway, "untrusted"), 1)
        gateway.line_with(r"the last from 127\.0\.0\.9, which is not in trust\.proxies")
        tcp4 = bytes([192, 0, 2, 7, 10, 0, 0, 1]) + (4242).to_bytes(2, "big") + b"\0\x50"
        hostile = [
            ("missing", ASK), ("missing", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            ("malformed", HEADER.replace(b"\r\n", b"\n") + ASK),
            ("malformed", version2(0x21, 0x12, tcp4) + ASK),
            ("malformed", version2(0x31, 0x11, tcp4) + ASK),
            ("malformed", version2(0x21, 0x11, tcp4 + b"\x03\0\x04abcd") + ASK),
            ("too_long", b"PROXY UNKNOWN " + b"x" * 107),
            ("too_long", version2(0x21, 0x11, tcp4 + bytes(1025 - len(tcp4)))),
            ("aborted", HEADER[:-2]),
        ]
        for result, sent in hostile:
            before = self.headers_by(gateway, result)
            with connect(gateway.port) as client:
                client.sendall(sent)
                if result == "aborted":
                    client.shutdown(socket.SHUT_WR)
                self.assertEqual(rest_of(client), b"", sent)
            wait_until(lambda: self.headers_by(gateway, result) == before + 1)
        gateway.line_with(r"PROXY header malformed; the last from 127\.0\.0\.1 \(bad line\)")
        with connect(gateway.port) as twice:
            twice.sendall(HEADER + HEADER + ASK)
            self.assertNotIn(b" 200 ", rest_of(twice))
        self.assertEqual(gateway.metric('weir_server_refusals_total{reason="bad_request"}'), 1)
        self.assertEqual(gateway.settled()["received"], 0)

    def test_a_header_byte_by_byte_is_read_and_a_slow_one_is_closed(self):
        gateway = self.gateway("[server]\nheader_timeout_ms = 1500\n")
        with connect(gateway.port) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in version2(0x21, 0x21, bytes(15) + b"\1" + bytes(15) + b"\2" + b"\0\1\0\2"):
                client.sendall(bytes([byte]))
            client.sendall(ASK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            answer = rest_of(client)
            self.assertEqual(self.forwarded_for(answer.split(b"\r\n\r\n", 1)[1]), "::1")
        begun = time.monotonic()
        with connect(gateway.port) as slow:
            slow.settimeout(0.1)
            closed = False
            for byte in b"PROXY UNKNOWN " + b"x" * 80:
                try:
                    slow.sendall(bytes([byte]))
                    closed = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    closed = True
                if closed:
                    break
            self.assertTrue(closed)
        self.assertGreater(time.monotonic() - begun, 1.4)
        self.assertEqual(self.headers_by(gateway, "timeout"), 1)

    def test_sources_are_bounded_by_the_announced_address(self):
        gateway = self.gateway("[server]\nconnections_per_source_max = 2\n")
        proxy = self.forwarder((gateway.port, "send-proxy"))
        for source in ("127.0.1.1", "127.0.1.2", "127.0.1.3"):
            for _ in range(2):
                self.assertEqual(self.seen_from(proxy.port, source), source)  # and stays open
        third = http.client.HTTPConnection("127.0.0.1", proxy.port, 20, ("127.0.1.2", 0))
        third.request("GET", "/")
        self.assertEqual(third.getresponse().status, 503)
        third.close()
        self.assertEqual(self.seen_from(proxy.port, "127.0.1.4"), "127.0.1.4")
        self.assertEqual(gateway.metric('weir_connections_refused_total{reason="source"}'), 1)

    def test_peers_are_known_by_the_announced_address_only(self):
        gateway = self.gateway('peers = ["127.0.0.1", "127.0.1.1"]\n'
                               '[actors]\nidentity = ["header"]\n')
        proxy = self.forwarder((gateway.port, "send-proxy-v2"))
        claim = {"x-weir-priority": "critical"}
        def critical():
            return gateway.upstream()["classes"]["critical"]["admitted"]
        self.seen_from(proxy.port, "127.0.1.2", claim)
        self.assertEqual(critical(), 0, "the proxy is a peer, its client is none")
        self.seen_from(proxy.port, "127.0.1.1", claim)
        self.assertEqual(critical(), 1)
        def ask(header, address):
            with connect(gateway.port) as client:
                client.sendall(header + b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n"
                               b"x-weir-priority: critical\r\nx-forwarded-for: 127.0.1.1\r\n\r\n")
                body = rest_of(client).split(b"\r\n\r\n", 1)[1]
                self.assertEqual(self.forwarded_for(body), address)
        ask(b"PROXY UNKNOWN\r\n", "127.0.0.1")
        self.assertEqual(critical(), 1, "the proxy does not say who this is")
        ask(version2(0x20, 0, b""), "127.0.1.1, 127.0.0.1")
        self.assertEqual(critical(), 2, "the proxy itself")

    def test_a_reload_changes_who_is_trusted(self):
        gateway = self.gateway()
        with open(gateway.config_path, encoding="utf-8") as file:
            text = file.read()
        gateway.write_config(text.replace('proxies = ["127.0.0.1"]', 'proxies = ["127.0.0.2"]'))
        gateway.signal(signal.SIGHUP)
        gateway.line_with(r"^weir: reload")
        def closed():
            with connect(gateway.port) as client:
                client.sendall(HEADER + ASK)
                return rest_of(client) == b""
        wait_until(closed)
        with connect(gateway.port, "127.0.0.2") as proxy:
            proxy.sendall(HEADER + ASK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            self.assertIn(b" 200 ", rest_of(proxy))

    def test_check_names_the_key_and_what_is_allowed(self):
        def check(listen, trust):
            path = os.path.join(self.folder(), "weir.toml")
            text = self.app_config([self.backend.port], f"[listen]\n{listen}\n[trust]\n{trust}\n")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            done = subprocess.run([WEIR, "check", path], capture_output=True, text=True,
                                  check=False)
            return done.returncode, done.stdout + done.stderr
        code, said = check('addresses = ["127.0.0.1:8080"]\nproxy_protocol = ["127.0.0.1:8081"]',
                           'proxies = ["127.0.0.1"]')
        self.assertEqual(code, 2)
        self.assertIn("listen.proxy_protocol", said)
        self.assertIn("an address of listen.addresses or tls.listen", said)
        code, said = check('addresses = ["127.0.0.1:8080"]\nproxy_protocol = ["127.0.0.1:8080"]',
                           "")
        self.assertEqual(code, 2)
        self.assertIn("trust.proxies", said)
        code, said = check('addresses = ["unix:/run/w"]\nproxy_protocol = ["unix:/run/w"]', "")
        self.assertEqual((code, "trust.proxies" in said), (0, False), said)


if __name__ == "__main__":
    unittest.main()
