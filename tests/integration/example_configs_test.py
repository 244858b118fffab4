"""The files of examples/config, with ports and paths of this test, in front of real services and
used by real clients."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from end_to_end_test import PythonBackend  # noqa: E402
from processes import ProcessTest, Weir, get, wait_until  # noqa: E402
from tls_test import Certificates  # noqa: E402
from websocket_testing import BINARY, CLOSE, Http1Socket, Http2Socket, Service, frame  # noqa: E402

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "config"
RAW = {"request_deserializer": bytes, "response_serializer": bytes}
PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}


class ExampleConfigs(ProcessTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-example-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def example(self, name, replaced):
        """The text of an example; every place that is replaced must be there."""
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        for before, after in replaced.items():
            self.assertIn(before, text)
            text = text.replace(before, str(after))
        return text

    def gateway(self, name, replaced):
        return self.started(Weir(config=self.example(name, replaced)))

    STORE = {"high": ("GetValue", "FetchValue"),
             "normal": ("PutLeaf", "PutRecipe", "BatchGet", "BatchPutLeaf"),
             "low": ("GcCollectRoots", "GcSweep", "MigrateTransfer", "SyncRecipes",
                     "ReplicateLeaf")}

    def test_a_grpc_service(self):
        def serve():
            server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
            echo = grpc.unary_unary_rpc_method_handler(
                lambda said, context: repr(context.time_remaining()).encode(), **RAW)
            well = grpc.unary_unary_rpc_method_handler(lambda *_: b"\x08\x01", **RAW)
            server.add_generic_rpc_handlers((
                grpc.method_handlers_generic_handler("store.v1.Store", {
                    method: echo for methods in self.STORE.values() for method in methods}),
                grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": well})))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            self.addCleanup(lambda: server.stop(0).wait(5))
            return port
        gateway = self.gateway("grpc_store.toml", {f"127.0.0.1:5005{i}": f"127.0.0.1:{serve()}"
                                                   for i in (1, 2, 3)})
        with grpc.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            left = channel.unary_unary("/store.v1.Store/GetValue", **PLAIN)(b"key", timeout=30)
            self.assertLessEqual(float(left), 0.5, "the route's deadline is shorter")
            for name, methods in self.STORE.items():
                def admitted(of=name):
                    return gateway.upstream("store")["classes"][of]["admitted"]
                for method in methods:
                    before = admitted()
                    channel.unary_unary(f"/store.v1.Store/{method}", **PLAIN)(b"x", timeout=30)
                    self.assertEqual(admitted(), before + 1, f"{method} is {name}")
            check = channel.unary_unary("/grpc.health.v1.Health/Check", **PLAIN)
            self.assertEqual(check(b"", timeout=30), b"\x08\x01")
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/other.Service/Get", **PLAIN)(b"", timeout=30)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertEqual(gateway.upstream("store")["classes"]["high"]["admitted"], 4)

    def test_replicated_reads(self):
        replicas = [self.started(PythonBackend()) for _ in range(3)]
        gateway = self.gateway("replicated_reads.toml", {
            f"127.0.0.1:300{i + 1}": f"127.0.0.1:{one.port}" for i, one in enumerate(replicas)})
        for i in range(20):
            self.assertEqual(get(gateway.port, f"/item/{i}").status, 200)
        replicas[1].end()
        for i in range(20):
            self.assertEqual(get(gateway.port, f"/item/{i}").status, 200)
            self.assertEqual(get(gateway.port, "/search", method="POST", body=b"q").status, 200)

    def test_tenants_with_keys(self):
        backend = self.started(PythonBackend())
        keys = self.folder / "keys"

        def allow(**tenants):
            keys.write_text("".join(f"{hashlib.sha256(key.encode()).hexdigest()}  {name}\n"
                                    for name, key in tenants.items()), encoding="utf-8")
        allow(gold="k-1", iron="k-2")
        gateway = self.gateway("tenants.toml", {"127.0.0.1:3000": f"127.0.0.1:{backend.port}",
                                                "/etc/weir/keys": keys})
        answer = get(gateway.port, "/orders", {"x-api-key": "k-1"})
        self.assertEqual(answer.status, 200)
        self.assertNotIn("k-1", answer.body.decode(), "the service does not see the key")
        self.assertEqual(get(gateway.port, "/batch/1", {"x-api-key": "k-2"}).status, 200)
        for headers in ({}, {"x-api-key": "k-3"}, {"x-api-key": "gold"}):
            refused = get(gateway.port, "/orders", headers)
            self.assertEqual((refused.status, refused.reason), (401, "no_actor"))
        self.assertEqual(get(gateway.port, "/healthz").body, b"ok\n")
        self.assertEqual(gateway.upstream("api")["classes"]["low"]["admitted"], 1)
        allow(gold="k-1", iron="k-9")
        gateway.signal(1)
        wait_until(lambda: gateway.stats()["reloads"]["ok"] == 1)
        self.assertEqual(get(gateway.port, "/orders", {"x-api-key": "k-2"}).status, 401)
        self.assertEqual(get(gateway.port, "/orders", {"x-api-key": "k-9"}).status, 200)

    def test_an_edge_with_client_certificates(self):
        backend = self.started(PythonBackend())
        certificates = Certificates(self.folder)
        server = certificates.make("edge", "/CN=localhost")
        gateway = self.gateway("edge_mtls.toml", {
            "127.0.0.1:3000": f"127.0.0.1:{backend.port}", "\":8443\"": "\"127.0.0.1:0\"",
            "/etc/weir/edge.pem": server[0], "/etc/weir/edge.key": server[1],
            "/etc/weir/clients-ca.pem": certificates.authority})
        port = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])

        def seen(*options):
            done = subprocess.run(
                ["curl", "-sS", "-m", "20", "--cacert", certificates.authority, *options,
                 "-H", "x-weir-priority: high", f"https://127.0.0.1:{port}/"],
                capture_output=True, check=False)
            return done.returncode, done.stdout
        self.assertNotEqual(seen()[0], 0)
        for subject, trusted in (("gateway.internal", True), ("worker", False)):
            certificate, key = certificates.make(subject, f"/CN={subject}")
            code, body = seen("--cert", certificate, "--key", key)
            self.assertEqual(code, 0)
            fields = dict(json.loads(body)["headers"])
            self.assertEqual("x-weir-priority" in fields, trusted, subject)

    def test_a_site_that_sends_its_clients_to_https(self):
        backend = self.started(PythonBackend())
        certificates = Certificates(self.folder)
        certificate, key = certificates.make("site", "/CN=localhost")
        gateway = self.gateway("https.toml", {
            "127.0.0.1:3000": f"127.0.0.1:{backend.port}", "\":443\"": "\"127.0.0.1:0\"",
            "/etc/weir/site.pem": certificate, "/etc/weir/site.key": key})
        secure = int(gateway.line_with(r"listening with TLS on .*:(\d+)")[1])

        def curl(*options):
            done = subprocess.run(
                ["curl", "-sS", "-m", "20", "--cacert", certificates.authority,
                 "--connect-to", f"localhost:80:127.0.0.1:{gateway.port}",
                 "--connect-to", f"localhost:443:127.0.0.1:{secure}",
                 "-w", "\n%{http_code} %{url_effective} %{num_redirects} %{redirect_url}",
                 *options],
                capture_output=True, check=True, text=True)
            body, _, said = done.stdout.rpartition("\n")
            return body, said
        for version in ("--http1.1", "--http2-prior-knowledge"):
            self.assertEqual(curl(version, "http://localhost/a?b=c"),
                             ("", "308 http://localhost/a?b=c 0 https://localhost/a?b=c"))
        lie = ("-H", "x-forwarded-proto: https", "-H", "forwarded: proto=https")
        self.assertEqual(curl(*lie, "http://localhost/")[1],
                         "308 http://localhost/ 0 https://localhost/")
        for version in ("--http1.1", "--http2"):
            body, said = curl(version, "-L", "-d", "text", "http://localhost/a?b=c")
            self.assertEqual(said.split(), ["200", "https://localhost/a?b=c", "1"])
            seen = json.loads(body)
            self.assertEqual((seen["method"], seen["path"]), ("POST", "/a?b=c"))
            self.assertEqual(dict(seen["headers"])["x-forwarded-proto"], "https")

    def test_a_websocket_application(self):
        service = Service()
        self.addCleanup(service.end)
        gateway = self.gateway("websocket.toml", {"127.0.0.1:3000": f"127.0.0.1:{service.port}"})
        for kind in (Http1Socket, Http2Socket):
            client = kind(gateway.port, path="/live/1")
            self.addCleanup(client.wire.close)
            client.send(frame(BINARY, b"hello", b"\1\2\3\4"))
            opcode, payload = client.receive()[0]
            self.assertEqual((opcode, payload[:32]), (BINARY, hashlib.sha256(b"hello").digest()))
            client.send(frame(CLOSE, struct.pack(">H", 1000), b"\1\2\3\4"))
            self.assertEqual(client.receive(), [(CLOSE, struct.pack(">H", 1000))])
        ordinary = Http1Socket(gateway.port, path="/other")
        self.addCleanup(ordinary.wire.close)
        self.assertEqual(ordinary.status, 200, "without a switch of protocols")


if __name__ == "__main__":
    unittest.main()
