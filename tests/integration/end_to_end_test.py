"""Through the gateway with curl, wrk, nginx and a Python server."""

import hashlib
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import unittest

from processes import Nginx, ProcessTest, Weir, get, wait_until

BLOB = os.urandom(3 * 1024 * 1024)


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it got, as JSON."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                size = int(self.rfile.readline(), 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
        reply = json.dumps({"method": self.command, "path": self.path,
                            "headers": self.headers.items(), "body_bytes": len(body),
                            "body_sha": hashlib.sha256(body).hexdigest()}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer

    def log_message(self, *_):
        pass


class PythonBackend:
    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def curl(*arguments):
    return subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], capture_output=True,
                          check=False)


class WithPython(ProcessTest):
    def setUp(self):
        self.backend = self.started(PythonBackend())
        self.gateway = self.started(Weir("--to", f"127.0.0.1:{self.backend.port}"))
        self.url = f"http://127.0.0.1:{self.gateway.port}"

    def test_curl_gets_posts_and_uploads(self):
        seen = json.loads(curl(f"{self.url}/a/b?c=d").stdout)
        self.assertEqual((seen["method"], seen["path"]), ("GET", "/a/b?c=d"))
        headers = {name.lower(): value for name, value in seen["headers"]}
        self.assertEqual(headers["host"], f"127.0.0.1:{self.gateway.port}")
        self.assertEqual(headers["x-forwarded-for"], "127.0.0.1")
        self.assertEqual(headers["via"], "1.1 weir")
        self.assertRegex(headers["x-request-id"], "^[0-9a-f]{32}$")
        seen = json.loads(curl("-d", "hello=world", self.url).stdout)
        self.assertEqual(seen["body_bytes"], 11)

    def test_large_bodies_arrive_whole_with_length_and_chunked(self):
        path = os.path.join(self.gateway.folder, "blob")
        with open(path, "wb") as file:
            file.write(BLOB)
        digest = hashlib.sha256(BLOB).hexdigest()
        for extra in ([], ["-H", "transfer-encoding: chunked"], ["-H", "expect: 100-continue"]):
            with self.subTest(extra):
                seen = json.loads(curl("-T", path, *extra, f"{self.url}/up").stdout)
                self.assertEqual((seen["method"], seen["body_sha"]), ("PUT", digest))

    def test_head_and_http_1_0(self):
        shown = curl("-I", self.url).stdout.decode()
        self.assertIn("200 OK", shown)
        self.assertIn("content-type: application/json", shown.lower())
        self.assertIn(b'"method": "GET"', curl("--http1.0", self.url).stdout)

    def test_request_id_and_trace_pass_through(self):
        seen = json.loads(curl("-H", "X-Request-Id: mine", "-H", "traceparent: 00-a-b-01",
                               self.url).stdout)
        headers = {name.lower(): value for name, value in seen["headers"]}
        self.assertEqual(headers["x-request-id"], "mine")
        self.assertEqual(headers["traceparent"], "00-a-b-01")

    def test_pipelined_requests_are_answered_in_order(self):
        with socket.create_connection(("127.0.0.1", self.gateway.port), timeout=10) as client:
            for i in range(20):
                client.sendall(f"GET /{i} HTTP/1.1\r\nhost: t\r\n\r\n".encode())
            data = b""
            while data.count(b'"path"') < 20:
                data += client.recv(65536)
        self.assertEqual([int(p) for p in re.findall(rb'"path": "/(\d+)"', data)],
                         list(range(20)))

    def test_smuggled_framing_reaches_nobody(self):
        before = self.gateway.stats()["requests"]["received"]
        for head in (b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
                     b"content-length: 5\r\ncontent-length: 6\r\n",
                     b"transfer-encoding : chunked\r\n", b"transfer-encoding: xchunked\r\n",
                     b" folded: x\r\n", b"content-length: +5\r\n"):
            with self.subTest(head):
                with socket.create_connection(("127.0.0.1", self.gateway.port), timeout=10) as c:
                    c.sendall(b"POST / HTTP/1.1\r\nhost: t\r\n" + head + b"\r\n0\r\n\r\nGET /x")
                    answer = b""
                    while chunk := c.recv(4096):
                        answer += chunk
                self.assertRegex(answer, rb"^HTTP/1.1 (400|501)")
                self.assertEqual(answer.count(b"HTTP/1.1"), 1)
        self.assertEqual(self.gateway.stats()["requests"]["received"], before)


class WithNginx(ProcessTest):
    def setUp(self):
        self.backend = self.started(Nginx({"blob": BLOB, "small": b"s" * 128}))
        self.gateway = self.started(Weir("--to", f"127.0.0.1:{self.backend.port}"))
        self.url = f"http://127.0.0.1:{self.gateway.port}"

    def test_files_ranges_and_conditions(self):
        self.assertEqual(curl(f"{self.url}/blob").stdout, BLOB)
        self.assertEqual(curl("-r", "100-199", f"{self.url}/blob").stdout, BLOB[100:200])
        tag = get(self.gateway.port, "/blob", method="HEAD").headers["etag"]
        self.assertEqual(get(self.gateway.port, "/blob", {"if-none-match": tag}).status, 304)
        self.assertEqual(get(self.gateway.port, "/none").status, 404)
        self.assertEqual(get(self.gateway.port, "/teapot").status, 418)
        self.assertEqual(get(self.gateway.port, "/echo").body.split()[0], b"GET")

    def test_two_gateways_in_a_row_over_unix_sockets(self):
        path = os.path.join(self.gateway.folder, "front.sock")
        front = self.started(Weir("--to", f"127.0.0.1:{self.backend.port}",
                                  "--listen", f"unix:{path}"))
        outer = self.started(Weir("--to", f"unix:{path}"))
        self.assertEqual(get(outer.port, "/small").body, b"s" * 128)
        self.assertEqual(curl("--unix-socket", path, "http://any/small").stdout, b"s" * 128)
        self.assertEqual(get(outer.port, "/small").headers.get_all("via"), ["1.1 weir"] * 2)
        self.assertEqual(front.settled()["answered"], 3)

    def test_wrk_gets_only_good_answers(self):
        shown = subprocess.run(["wrk", "-t1", "-c32", "-d2s", f"{self.url}/small"],
                               capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertNotIn("Non-2xx", shown)
        self.assertNotIn("Socket errors", shown)
        self.assertEqual(self.gateway.balance(), 0)
        self.assertGreater(self.gateway.settled()["answered"], 1000)

    def test_metrics_please_promtool(self):
        get(self.gateway.port, "/small")
        page = os.path.join(self.gateway.folder, "metrics")
        with open(page, "wb") as file:
            file.write(self.gateway.page("/metrics").body)
        script = os.path.join(os.path.dirname(__file__), "../promtool/check_metrics.py")
        judged = subprocess.run(["/usr/bin/python3", script, "--file", page], capture_output=True,
                                text=True, timeout=30)
        self.assertEqual(judged.returncode, 0, judged.stdout)

    def test_the_access_log_has_a_line_per_request_and_no_secret(self):
        log = os.path.join(self.gateway.folder, "access.log")
        config = self.app_config([self.backend.port], f"""
[admin]
access_log = "all"
access_log_file = "{log}"
""")
        gateway = self.started(Weir(config=config))
        for i in range(5):
            get(gateway.port, f"/small?token=hush{i}", {"authorization": "Bearer hush"})
        get(gateway.port, "/none")
        def all_lines():
            with open(log, encoding="utf-8") as file:
                found = file.read().splitlines()
            return found if len(found) == 6 else None
        lines = wait_until(all_lines)
        # Connections may belong to different loops, and a line follows its answer: in any order.
        entries = [json.loads(line) for line in lines]
        found = sorted((e["path"], e["status"], e.get("actor_by", "")) for e in entries)
        self.assertEqual(found, [("/none", 404, "")] + [("/small", 200, "bearer")] * 5)
        self.assertNotIn("hush", "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
