"""Starts and ends the processes of a test: weir, origins, nginx, traffic. Everything listens on
port 0 of the loopback address; every wait has an end."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release"))
WEIR = os.environ.get("WEIR_BINARY", str(BUILD / "weir"))
ORIGIN = str(BUILD / "tests/integration/weir_test_origin")
TRAFFIC = str(BUILD / "tests/integration/weir_test_traffic")
HTTP2_TRAFFIC = str(BUILD / "tests/integration/weir_test_http2_traffic")
PATIENCE = 20.0


def wait_until(what, seconds=PATIENCE, every=0.01):
    """What `what` returned, once it is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(every)


class Process:
    """A child whose standard error is kept, line by line."""

    def __init__(self, *command, **options):
        self.lines = []
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.child.stderr:
            self.lines.append(line.rstrip("\n"))

    def line_with(self, pattern, seconds=PATIENCE):
        def look():
            for line in list(self.lines):
                match = re.search(pattern, line)
                if match:
                    return match
            if self.child.poll() is not None:
                self._reader.join(1)
                raise AssertionError("ended early: " + "\n".join(self.lines))
            return None
        return wait_until(look, seconds)

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=PATIENCE):
        code = self.child.wait(seconds)
        self._reader.join(5)
        return code

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(PATIENCE)
        self._reader.join(5)
        self.child.stderr.close()
        if self.child.stdout:
            self.child.stdout.close()


class Weir(Process):
    """`weir run` on port 0, with its admin endpoint."""

    def __init__(self, *arguments, config=None, env=None, **options):
        self.folder = tempfile.mkdtemp(prefix="weir-test-")
        command = [WEIR, "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        if config is not None:
            self.config_path = os.path.join(self.folder, "weir.toml")
            self.write_config(config)
            command += ["--config", self.config_path]
        super().__init__(*command, *arguments, stdout=subprocess.PIPE,
                         env={**os.environ, **(env or {})}, **options)
        self.output = []
        self._output_reader = threading.Thread(target=self._read_output, daemon=True)
        self._output_reader.start()
        self.line_with(r"^weir: ready")
        self.port = int(self.line_with(r"listening on .*:(\d+)")[1])
        self.admin = int(self.line_with(r"admin on .*:(\d+)")[1])

    def _read_output(self):
        for line in self.child.stdout:
            self.output.append(line.rstrip("\n"))

    def write_config(self, text):
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(text)

    def page(self, path):
        return get(self.admin, path)

    def stats(self):
        return json.loads(self.page("/stats").body)

    def upstream(self, name="app"):
        return self.stats()["upstreams"][name]

    def metric(self, line):
        """The value of one series, named as on the page."""
        for text in self.page("/metrics").body.decode().splitlines():
            if text.startswith(line + " "):
                return float(text[len(line) + 1:])
        raise AssertionError(f"no series {line}")

    def histogram(self, name):
        """[(upper bound, cumulative count)]"""
        page = self.page("/metrics").body.decode()
        return [(float(bound), int(count)) for bound, count in
                re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\d+)$', page, re.MULTILINE)]

    def memory_bytes(self, field="VmHWM"):
        with open(f"/proc/{self.child.pid}/status", encoding="utf-8") as file:
            return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.MULTILINE)[1]) * 1024

    def settled(self):
        """What it says of its requests, once nothing is under way: a client has an answer before
        the gateway has counted it."""
        def look():
            requests = self.stats()["requests"]
            return requests if requests["active"] == 0 else None
        return wait_until(look)

    def balance(self):
        """requests received − (answered + refused + aborted), once nothing is under way."""
        r = self.settled()
        return r["received"] - r["answered"] - r["refused"] - r["aborted"]

    def end(self):
        super().end()
        self._output_reader.join(5)
        shutil.rmtree(self.folder, ignore_errors=True)


class Origin(Process):
    """k workers, fixed service time (or even between two): a service of known capacity."""

    def __init__(self, workers=8, service_ms=20, port=0, service_ms_max=0):
        super().__init__(ORIGIN, "--workers", str(workers), "--service-ms", str(service_ms),
                         "--service-ms-max", str(service_ms_max), "--port", str(port),
                         stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])

    def stats(self):
        """What it did since the last call; `capacity` is what it could have served meanwhile."""
        stats = json.loads(get(self.port, "/origin/stats").body)
        done = stats["served"] + stats["wasted"]
        stats["service_seconds"] = stats["busy_seconds"] / done if done else 0
        stats["busy_share"] = stats["busy_seconds"] / (stats["seconds"] * stats["workers"])
        return stats


class Nginx(Process):
    """nginx as a backend: files, and an echo of what it was sent."""

    def __init__(self, files):
        self.folder = tempfile.mkdtemp(prefix="weir-nginx-")
        os.chmod(self.folder, 0o755)
        for name, content in files.items():
            pathlib.Path(self.folder, name).write_bytes(content)
        self.port = free_port()
        conf = pathlib.Path(self.folder, "nginx.conf")
        conf.write_text(f"""
daemon off; master_process off; pid {self.folder}/pid; error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 64m; client_body_temp_path {self.folder}/body;
  proxy_temp_path {self.folder}/p; fastcgi_temp_path {self.folder}/f;
  uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
  server {{
    listen 127.0.0.1:{self.port} backlog=4096;
    root {self.folder};
    location = /echo {{ return 200 "$request_method $http_host $http_via\\n"; }}
    location = /teapot {{ return 418 "short and stout\\n"; }}
  }}
}}
""", encoding="utf-8")
        super().__init__("nginx", "-c", str(conf), "-e", "stderr")
        wait_until(lambda: can_connect(self.port))

    def end(self):
        super().end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def reason(self):
        return self.headers.get("x-weir-reason")


def get(port, path="/", headers=None, method="GET", body=None, timeout=PATIENCE):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def can_connect(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


def start_traffic(port, seconds, classes, connections=300, settle=0):
    command = [TRAFFIC, "--port", str(port), "--seconds", str(seconds), "--settle", str(settle),
               "--connections", str(connections)]
    for one in classes:
        command += ["--class", one]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def start_http2_traffic(port, seconds, classes, tls=False, grpc=False, connections=16, streams=64):
    command = [HTTP2_TRAFFIC, "--port", str(port), "--seconds", str(seconds), "--tls",
               str(int(tls)), "--grpc", str(int(grpc)), "--connections", str(connections),
               "--streams", str(streams)]
    for one in classes:
        command += ["--class", one]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(traffic, seconds=120):
    output, _ = traffic.communicate(timeout=seconds)
    if traffic.returncode != 0:
        raise AssertionError(f"traffic ended with {traffic.returncode}")
    return json.loads(output)


class ProcessTest(unittest.TestCase):
    """A test whose processes end with it."""

    maxDiff = None

    def started(self, process):
        self.addCleanup(process.end)
        return process

    def app_config(self, endpoints, extra="", upstream=""):
        """One upstream `app`, everything led there."""
        addresses = ", ".join(f'"127.0.0.1:{port}"' for port in endpoints)
        return f"""
{extra}
[[upstream]]
name = "app"
endpoints = [{addresses}]
{upstream}
[[route]]
upstream = "app"
"""


SIGTERM = signal.SIGTERM
SIGHUP = signal.SIGHUP
SIGUSR1 = signal.SIGUSR1
