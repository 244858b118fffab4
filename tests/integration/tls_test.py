"""TLS from end to end: real certificates in files, curl, openssl and h2load as clients."""

import http.client
import json
import os
import pathlib
import signal
import ssl
import subprocess
import tempfile
import threading
import unittest

from end_to_end_test import PythonBackend
from processes import Origin, WEIR, ProcessTest, Weir, wait_until


def run(*command, **options):
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


class Certificates:
    """An authority and what it signs, made by openssl, in one folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.authority = self.path("ca.pem")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-keyout", self.path("ca.key"), "-out", self.authority,
                      "-days", "2", "-subj", "/CN=Test CA")

    def path(self, name):
        return str(self.folder / name)

    @staticmethod
    def _openssl(*arguments):
        done = run("openssl", *arguments)
        assert done.returncode == 0, done.stderr.decode()

    def make(self, name, subject, alternatives="DNS:localhost,IP:127.0.0.1", days=2):
        """(certificate, key)"""
        key, request, extra = (self.path(name + e) for e in (".key", ".csr", ".ext"))
        certificate = self.path(name + ".pem")
        pathlib.Path(extra).write_text(f"subjectAltName={alternatives}\n", encoding="utf-8")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-keyout", key, "-out", request, "-subj", subject)
        self._openssl("x509", "-req", "-in", request, "-CA", self.authority, "-CAkey",
                      self.path("ca.key"), "-CAcreateserial", "-days", str(days), "-extfile", extra,
                      "-out", certificate)
        return certificate, key


class Tls(ProcessTest):
    def setUp(self):
        self.backend = self.started(PythonBackend())
        folder = tempfile.TemporaryDirectory(prefix="weir-tls-")
        self.addCleanup(folder.cleanup)
        self.certificates = Certificates(folder.name)
        self.certificate, self.key = self.certificates.make("server", "/CN=localhost")

    def gateway(self, tls="", more=""):
        gateway = self.started(Weir(config=self.config(tls, more)))
        gateway.tls = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])
        return gateway

    def config(self, tls="", more=""):
        return self.app_config([self.backend.port], f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{self.certificate}"
private_key = "{self.key}"
{tls}
{more}
""")

    def curl(self, gateway, *options, path="/"):
        return run("curl", "-sS", "-m", "20", "--cacert", self.certificates.authority, *options,
                   f"https://127.0.0.1:{gateway.tls}{path}")

    def headers_seen(self, done):
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return {name.lower(): value for name, value in json.loads(done.stdout)["headers"]}

    def test_curl_is_served_and_the_backend_is_told_https(self):
        gateway = self.gateway()
        for version in ("1.2", "1.3"):
            seen = self.headers_seen(self.curl(gateway, f"--tlsv{version}", "--tls-max", version))
            self.assertEqual(seen["x-forwarded-proto"], "https")
        body = os.urandom(1 << 20)
        done = run("curl", "-sS", "-m", "20", "--cacert", self.certificates.authority,
                   "--data-binary", "@-", f"https://localhost:{gateway.tls}/", input=body)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(gateway.metric('weir_tls_handshakes_total{result="full"}'), 3)
        self.assertEqual(gateway.metric('weir_pool_used{pool="handshake_slots"}'), 0)
        self.assertGreater(gateway.metric("weir_tls_memory_bytes"), 0)
        self.assertLess(gateway.metric("weir_tls_memory_peak_bytes"),
                        gateway.metric("weir_tls_memory_budget_bytes"))

    def test_openssl_agrees_on_versions_and_protocols(self):
        gateway = self.gateway()
        def client(*options):
            return run("openssl", "s_client", "-connect", f"127.0.0.1:{gateway.tls}", "-CAfile",
                       self.certificates.authority, *options, input=b"").stdout.decode()
        self.assertIn("ALPN protocol: http/1.1", client("-alpn", "http/1.1"))
        self.assertIn("Verify return code: 0 (ok)", client())
        self.assertNotIn("Cipher is TLS_", client("-alpn", "gopher"))
        self.assertIn("Cipher is (NONE)", client("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"))

    def test_h2load_over_tls(self):
        self.backend = self.started(Origin(32, 1))  # Python's would drop connections of its own
        gateway = self.gateway()
        for options in (["--h1", "-c", "20"], ["-c", "5", "-m", "4"]):
            done = run("h2load", *options, "-n", "1000", "-t", "1",
                       f"https://127.0.0.1:{gateway.tls}/")
            text = done.stdout.decode()
            self.assertIn("1000 succeeded, 0 failed", text, text)

    def test_curl_agrees_on_http2_unless_it_is_off(self):
        show = ("-o", "/dev/null", "-w", "%{http_version}")
        self.assertEqual(self.curl(self.gateway(), "--http2", *show).stdout, b"2")
        self.assertEqual(self.curl(self.gateway("http2 = false"), "--http2", *show).stdout, b"1.1")

    def test_cleartext_on_the_tls_port_is_told(self):
        gateway = self.gateway()
        done = run("curl", "-s", "-m", "10", f"http://127.0.0.1:{gateway.tls}/")
        self.assertIn(b"This port speaks TLS", done.stdout)

    def test_a_client_certificate_is_an_actor_and_can_prove_a_peer(self):
        gateway = self.gateway(f'client_ca = "{self.certificates.authority}"\n'
                               'client_certificate = "optional"',
                               '[trust]\npeer_certificates = ["CN=gate"]')
        gate = self.certificates.make("gate", "/CN=gate")
        worker = self.certificates.make("worker", "/CN=worker")
        claim = ("-H", "x-weir-priority: high")
        seen = self.headers_seen(self.curl(gateway, "--cert", gate[0], "--key", gate[1], *claim))
        self.assertEqual(seen["x-weir-priority"], "high")
        seen = self.headers_seen(self.curl(gateway, "--cert", worker[0], "--key", worker[1],
                                           *claim))
        self.assertNotIn("x-weir-priority", seen)
        seen = self.headers_seen(self.curl(gateway, *claim))
        self.assertNotIn("x-weir-priority", seen)
        admission = gateway.stats()["admission"]
        self.assertEqual((admission["actors"], admission["peers"]), (2, 1))

    def test_without_a_required_certificate_nobody_gets_in(self):
        gateway = self.gateway(f'client_ca = "{self.certificates.authority}"\n'
                               'client_certificate = "required"')
        self.assertNotEqual(self.curl(gateway).returncode, 0)
        worker = self.certificates.make("worker", "/CN=worker")
        self.assertEqual(self.curl(gateway, "--cert", worker[0], "--key", worker[1]).returncode, 0)

    def test_reload_takes_the_new_certificate_and_keeps_the_old_one_if_it_is_bad(self):
        gateway = self.gateway()
        failed, done = [], threading.Event()
        trust = ssl.create_default_context(cafile=self.certificates.authority)

        def ask():
            while not done.is_set():
                client = http.client.HTTPSConnection("127.0.0.1", gateway.tls, timeout=20,
                                                     context=trust)
                try:
                    client.request("GET", "/")
                    if client.getresponse().status != 200:
                        failed.append("status")
                except (OSError, http.client.HTTPException) as error:
                    failed.append(error)
                finally:
                    client.close()

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()

        def subject():
            return run("openssl", "s_client", "-connect", f"127.0.0.1:{gateway.tls}",
                       input=b"").stdout.decode().split("subject=")[1].splitlines()[0]

        try:
            self.assertIn("CN = localhost", subject())
            good = [pathlib.Path(p).read_bytes() for p in (self.certificate, self.key)]
            pathlib.Path(self.key).write_text("not a key\n", encoding="utf-8")
            gateway.signal(signal.SIGHUP)
            gateway.line_with(r"reload refused: tls.private_key = .*server.key")
            self.assertIn("CN = localhost", subject())
            pathlib.Path(self.key).write_bytes(good[1])
            self.certificates.make("server", "/CN=renewed")
            gateway.signal(signal.SIGHUP)
            wait_until(lambda: "CN = renewed" in subject())
            gateway.line_with(r"^weir: certificate .*server.*: CN=renewed, expires 20..-..-..T.*Z; "
                              r"before: CN=localhost, expires 20..-..-..T.*Z$")
        finally:
            done.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])

    def test_check_names_the_file_that_is_wrong(self):
        path = os.path.join(self.certificates.folder, "weir.toml")
        other = self.certificates.make("other", "/CN=other")
        old = self.certificates.make("old", "/CN=old", days=-1)
        good = self.config()
        keyless = good.replace(f'private_key = "{self.key}"\n', "")
        expired = good.replace(self.key, old[1]).replace(self.certificate, old[0])
        for text, wanted in (
                (good, None),
                (keyless, 'tls.private_key = "": must be the PEM file with the key of '
                          f"tls.certificate ({self.certificate})"),
                (good.replace(self.key, other[1]),
                 f'tls.private_key = "{other[1]}": must be the private key of the certificate (it '
                 f"does not hold the key of the certificate in {self.certificate})"),
                (expired, f'tls.certificate = "{old[0]}": must be a certificate that is valid now '
                          "(it expired on "),
                (good.replace(self.certificate, "/nowhere.pem"), "tls.certificate")):
            pathlib.Path(path).write_text(text, encoding="utf-8")
            done = run(WEIR, "check", path)
            if wanted is None:
                self.assertEqual(done.returncode, 0, done.stderr.decode())
            else:
                self.assertEqual(done.returncode, 2)
                self.assertIn(wanted, done.stderr.decode())

    def test_flags_are_enough(self):
        gateway = self.started(Weir("--to", f"127.0.0.1:{self.backend.port}", "--tls-cert",
                                    self.certificate, "--tls-key", self.key, "--tls-listen", "0"))
        gateway.tls = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])
        self.assertEqual(self.curl(gateway).returncode, 0)


if __name__ == "__main__":
    unittest.main()
