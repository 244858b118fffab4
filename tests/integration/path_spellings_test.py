#!/usr/bin/python3
"""What the backend serves is what was judged: however a path is spelt, no client can have the
class of one route and the answer of another. nginx, Node and Python read paths differently."""

import http.server
import itertools
import pathlib
import posixpath
import shutil
import socket
import tempfile
import threading
import unittest
import urllib.parse

from processes import Process, ProcessTest, Weir, can_connect, free_port, wait_until

PLACES = ("health", "report", "other")  # each has a route and an upstream of its own

NODE = """
import http from 'node:http';
for (const port of process.argv.slice(1).map(Number)) {
  http.createServer((request, response) => {
    const path = new URL(request.url.replace(/^\\/+/, '/'), 'http://x').pathname;
    const place = ['health', 'report'].find((p) => path === '/' + p || path.startsWith(`/${p}/`));
    response.end(`${place ?? 'other'} ${port}`);
  }).listen(port, '127.0.0.1');
}
"""


def place_of(path):
    first = path.split("/")[1] if path.startswith("/") else ""
    return first if first in PLACES else "other"


class Python:
    """Reads paths as Python's own file server does."""

    def __init__(self, ports):
        def handler(port):
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"

                def do_GET(self):  # noqa: N802
                    path = urllib.parse.unquote(self.path.split("?")[0])
                    path = "/" + posixpath.normpath(path).lstrip("/")
                    body = f"{place_of(path)} {port}".encode()
                    self.send_response(200)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, *_):
                    pass
            return Handler
        self.servers = [http.server.ThreadingHTTPServer(("127.0.0.1", port), handler(port))
                        for port in ports]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def end(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


def nginx(folder, ports):
    conf = pathlib.Path(folder, "nginx.conf")
    listen = " ".join(f"listen 127.0.0.1:{port};" for port in ports)
    conf.write_text(f"""
daemon off; master_process off; pid {folder}/pid; error_log stderr crit;
events {{}}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ {listen}
    location ~ ^/health(/|$) {{ return 200 "health $server_port"; }}
    location ~ ^/report(/|$) {{ return 200 "report $server_port"; }}
    location / {{ return 200 "other $server_port"; }} }} }}
""", encoding="utf-8")
    return Process("nginx", "-c", str(conf), "-e", "stderr")


def spellings():
    """Ways from one place to another, and detours that end where they began."""
    ups = ("..", "%2e%2e", ".%2E", "..;", "..;a=b", "%2e%2e;x")
    slashes = ("/", "%2f", "%2F", "\\", "%5c", "//", "/./", "/;/")
    for start, end in itertools.permutations(("/health", "/report", "/x"), 2):
        for up, before, after in itertools.product(ups, slashes, slashes):
            yield f"{start}{before}{up}{after}{end[1:]}"
    for end in ("health", "report"):
        for slash in slashes:
            yield from (f"{slash}{end}", f"/{slash}{end}", f"/{end}{slash}x", f"/{end};v=1",
                        f"/.{slash}{end}", f"/%2e{slash}{end}", f"/{end}%00", f"/{end}%20")


class Client:
    """Sends paths as they are, which http.client would not; connects again after a close."""

    def __init__(self, port):
        self.port = port
        self.reader = None

    def close(self):
        if self.reader:
            self.reader.close()
            self.connection.close()
        self.reader = None

    def get(self, path):
        if not self.reader:
            self.connection = socket.create_connection(("127.0.0.1", self.port), 20)
            self.reader = self.connection.makefile("rb")
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        status = int(self.reader.readline().split()[1])
        headers = dict(line.decode().rstrip().split(": ", 1)
                       for line in iter(self.reader.readline, b"\r\n"))
        body = self.reader.read(int(headers["content-length"])).decode()
        if headers.get("connection") == "close":
            self.close()
        return status, headers.get("x-weir-reason"), body


class PathSpellings(ProcessTest):
    def judge(self, ports):
        """Every spelling: no answer comes from another route's place."""
        for port in ports:
            wait_until(lambda p=port: can_connect(p))
        upstreams = "".join(f'[[upstream]]\nname = "{place}"\nendpoints = ["127.0.0.1:{port}"]\n'
                            for place, port in zip(PLACES, ports))
        gateway = self.started(Weir(config=upstreams + """
[[route]]
path_prefix = "/health"
upstream = "health"
priority = "critical"
[[route]]
path_prefix = "/report"
upstream = "report"
priority = "low"
[[route]]
upstream = "other"
"""))
        judged = dict(zip(map(str, ports), PLACES))
        wrong, served, refused = [], 0, 0
        connection = Client(gateway.port)
        self.addCleanup(connection.close)
        for path in spellings():
            status, reason, body = connection.get(path)
            if status == 200:
                place, port = body.split()
                served += 1
                if place != judged[port]:
                    wrong.append(f"{path}: judged as {judged[port]}, served as {place}")
            elif reason == "ambiguous_path":
                refused += 1
            else:
                self.assertGreaterEqual(status, 400, path)  # the parser's or the backend's refusal
        self.assertEqual(wrong, [])
        self.assertGreater(served, 50)
        self.assertGreater(refused, 500)

    def test_nginx_serves_what_was_judged(self):
        folder = tempfile.mkdtemp(prefix="weir-nginx-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        ports = [free_port() for _ in PLACES]
        self.started(nginx(folder, ports))
        self.judge(ports)

    def test_node_serves_what_was_judged(self):
        ports = [free_port() for _ in PLACES]
        self.started(Process("node", "--input-type=module", "-e", NODE, *map(str, ports)))
        self.judge(ports)

    def test_python_serves_what_was_judged(self):
        ports = [free_port() for _ in PLACES]
        self.started(Python(ports))
        self.judge(ports)


if __name__ == "__main__":
    unittest.main()
