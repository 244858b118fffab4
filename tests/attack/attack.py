"""What every attack test shares: a server process of our own on loopback, a well-behaved client
that goes on during the attack, and the four things that must hold.

  ceiling   the most memory the process ever had resident, as the kernel counts it, is below the
            ceiling that the server printed. Pools are small, so that the ceiling is near; and it
            has not grown by more than those pools, whatever code and libraries may take.
  bystander a well-behaved client on other connections keeps at least 95 % success, and 95 % of
            its answers come within a second
  answer    the right counter rose and the right bytes came back (each test says which)
  baseline  afterwards every pool is back where it was, and service is whole within a second

And for HTTP/2: no session ever had more frames waiting to be sent than it may.
"""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import catalog

HELLO_SERVER = None  # set by main(): path of the program under attack
WEIR = None          # of the gateway, if a test is to go through it: `--through PATH`
TLS = True           # unless `--cleartext` follows it
SEED = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))  # of sizes and pauses


# Pools as small as an attack leaves room for; a test gives more of what it is about.
SMALL = {"--max-connections": 64, "--write-buffers": 128, "--arenas": 4, "--arena-size": 65536,
         "--pending": 8, "--body-leases": 16, "--http2-sessions": 16, "--streams": 256}
FIXED_BYTES = 12 << 20  # of the ceiling: code, libraries, allocator
OUTBOUND_FRAMES_MAX = 64  # the default of http2.outbound_frames_max


class Server:
    """examples/hello_server with the given options; the port is read from its output."""

    def __init__(self, *options, open_files=None):
        few = ["prlimit", f"--nofile={open_files}:{open_files}"] if open_files else []
        self.process = subprocess.Popen([*few, HELLO_SERVER, "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.search(r"(\d+)\s*$", line)
        if not match:
            raise RuntimeError(f"no port in {line!r}")
        self.port = int(match.group(1))
        self.tls_port = None
        if "--tls-port" in options:
            self.tls_port = int(self.process.stdout.readline().split()[1])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def connect(self, timeout=10.0, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(timeout)
        s.connect(("127.0.0.1", self.port))
        return s

    def client(self):
        """For a well-behaved one: over TLS where that is attacked."""
        if self.tls_port is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        trusting = ssl._create_unverified_context()  # its certificate was made just now
        return http.client.HTTPSConnection("127.0.0.1", self.tls_port, timeout=5, context=trusting)

    def stats(self):
        """Whoever asks for the numbers of a server under attack may be turned away like others."""
        end = time.monotonic() + 5
        while True:
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            client.request("GET", "/stats", headers={"connection": "close"})
            answer = client.getresponse()
            body = answer.read()
            client.close()
            if answer.status != 503 or time.monotonic() > end:
                return json.loads(body)
            time.sleep(0.02)

    def peak_bytes(self):
        """Every page that was ever resident at one time, of code too."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+) kB", text, re.M).group(1)) * 1024

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def memory_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Anonymous:\s+(\d+)", text, re.M).group(1)) * 1024

    def stop(self):
        self.process.terminate()
        code = self.process.wait(15)
        self.process.stdout.close()
        return code


class HastyOrigin:
    """A service that answers as soon as it has seen the head of a request, whatever follows."""

    ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhasty\n"

    class Exchange(socketserver.BaseRequestHandler):
        def handle(self):
            head = b""
            with contextlib.suppress(OSError):
                while b"\r\n\r\n" not in head:
                    piece = self.request.recv(65536)
                    if not piece:
                        return
                    head += piece
                self.request.sendall(HastyOrigin.ANSWER)
                self.request.shutdown(socket.SHUT_WR)
                while self.request.recv(65536):
                    pass

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 128

    def __init__(self):
        self.listener = self.Listener(("127.0.0.1", 0), self.Exchange)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def stop(self):
        self.listener.shutdown()
        self.listener.server_close()
        return 0


class Gateway(Server):
    """`weir run --to` an origin, as an operator would start it. Clients come by TLS and ask for
    HTTP/2, or in cleartext by prior knowledge."""

    def __init__(self, origin, tls=True):
        self.origin = origin
        self.files = tempfile.TemporaryDirectory()
        files = pathlib.Path(self.files.name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", files / "key.pem", "-out", files / "cert.pem"],
                       check=True, capture_output=True)
        self.process = subprocess.Popen(
            [WEIR, "run", "--to", f"127.0.0.1:{self.origin.port}", "--listen", "127.0.0.1:0",
             "--tls-listen", "127.0.0.1:0", "--tls-cert", files / "cert.pem", "--tls-key",
             files / "key.pem", "--admin", "none"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        while "ready" not in said:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"weir did not start: {said}")
            said += line
        self.port = int(re.search(r"TLS[^\n]*127\.0\.0\.1:(\d+)" if tls else
                                  r"listening on 127\.0\.0\.1:(\d+)", said).group(1))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.context = None
        if tls:
            self.context = ssl.create_default_context(cafile=files / "cert.pem")
            self.context.check_hostname = False
            self.context.set_alpn_protocols(["h2"])

    def connect(self, timeout=10.0, receive_buffer=None):
        s = super().connect(timeout, receive_buffer)
        if self.context is None:
            return s
        # An end without close_notify is told from a clean one.
        s = self.context.wrap_socket(s, suppress_ragged_eofs=False)
        if s.selected_alpn_protocol() != "h2":
            raise RuntimeError(f"ALPN chose {s.selected_alpn_protocol()}")
        return s

    def stop(self):
        code = super().stop()
        self.files.cleanup()
        return code or self.origin.stop()


class Bystander(threading.Thread):
    """Asks for / over a kept connection, opening a new one when it has to, until stopped."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.good, self.bad, self.latencies = server, 0, 0, []
        self.done = threading.Event()
        self.asked = threading.Condition()

    def run(self):
        client = None
        while not self.done.wait(0.005):
            start = time.monotonic()
            try:
                client = client or self.server.client()
                client.request("GET", "/")
                answer = client.getresponse()
                answer.read()
                ok = answer.status == 200
            except (OSError, http.client.HTTPException):
                ok = False
                client.close()
                client = None
            with self.asked:
                self.latencies.append(time.monotonic() - start)
                self.good += ok
                self.bad += not ok
                self.asked.notify_all()
        if client:
            client.close()

    def wait_for(self, what, seconds=20.0):
        """Until what() holds, looked at after each answer: whether it did."""
        with self.asked:
            return self.asked.wait_for(what, seconds)

    def wait_for_more(self, answers):
        before = self.good
        return self.wait_for(lambda: self.good >= before + answers)

    def finish(self):
        self.done.set()
        self.join()


class AttackTest(unittest.TestCase):
    """`with self.attack(server): …` runs the body beside a bystander and checks what must hold."""

    tight = 32 << 20  # the ceiling is no larger: else nothing is shown by staying below it

    def start(self, *options, **more):
        given = set(options[::2])
        small = [word for key, value in SMALL.items() if key not in given for word in (key, value)]
        server = Server(*small, *options, **more)
        self.addCleanup(self._stop, server)
        return server

    def _stop(self, server):
        self.assertEqual(server.stop(), 0, "the server did not end cleanly")

    @contextlib.contextmanager
    def attack(self, server):
        before = server.stats()
        ceiling = before["ceiling_bytes"]
        self.assertLessEqual(ceiling, self.tight)
        bystander = Bystander(server)
        bystander.start()
        self.assertTrue(bystander.wait_for(lambda: bystander.good >= 3), "no service at all")
        peak_before = server.peak_bytes()
        try:
            yield bystander
            # A short attack is no excuse.
            bystander.wait_for(lambda: bystander.good + bystander.bad >= 20)
        finally:
            bystander.finish()
        total = bystander.good + bystander.bad
        self.assertGreaterEqual(bystander.good, 0.95 * total,
                                f"bystander: {bystander.good} of {total}")
        slow = sum(latency > 1.0 for latency in bystander.latencies)
        self.assertLessEqual(slow, 0.05 * total, f"bystander: {slow} of {total} took a second")
        peak = server.peak_bytes()
        test = self.id().split(".")[-1]
        print(f"  {test}: peak {peak >> 10} kB of {ceiling >> 10} kB, bystander "
              f"{bystander.good}/{total}", file=sys.stderr)
        self.assertLessEqual(peak, ceiling)
        self.assertLessEqual(peak - peak_before, ceiling - FIXED_BYTES)
        self.assertLessEqual(server.stats()["http2_outbound_frames_peak"], OUTBOUND_FRAMES_MAX)
        self.assert_recovers(server, before)
        catalog.note({"test": test, "against": self.numbers(), "peak": peak, "ceiling": ceiling,
                      "grew": peak - peak_before, "good": bystander.good, "asked": total})

    def numbers(self):
        test = getattr(self, self._testMethodName)
        return list(getattr(test, "against", getattr(self, "against", ())))

    def assert_recovers(self, server, before):
        """Pools back at their baseline within a second; the one connection asking is its own."""
        pools = ("connections", "read_regions", "write_buffers", "arenas", "pending_streams",
                 "backpressure", "handshake_slots", "http2_sessions", "streams", "body_leases")
        now = {}

        def back():
            now.update(server.stats())
            return all(now[p]["used"] <= before[p]["used"] for p in pools)
        self.until(back, 1.0, lambda: {p: (before[p]["used"], now[p]["used"]) for p in pools})
        self.assertEqual(now["critical_shed"], 0)

    def until(self, what, seconds=10.0, why=lambda: "did not happen in time"):
        """The one place that polls: what a server says of itself has no other way to be heard."""
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, why())
            time.sleep(0.02)

    def assert_not_busy(self, server, bystander):
        """While somebody asks now and then, the server sleeps most of the time."""
        cpu, start = server.cpu_seconds(), time.monotonic()
        self.assertTrue(bystander.wait_for_more(100))
        used = (server.cpu_seconds() - cpu) / (time.monotonic() - start)
        self.assertLess(used, 0.5, "busy while next to nothing happens")

    @staticmethod
    def answer_of(s):
        """All bytes until the server closes."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := s.recv(65536):
                got += piece
        return got

    def assert_closed(self, s, seconds=5.0):
        s.settimeout(seconds)
        self.assertIn(self._read_end(s), (b"", None), "the connection is still open")

    @staticmethod
    def _read_end(s):
        try:
            while True:
                piece = s.recv(65536)
                if not piece:
                    return piece
        except ConnectionResetError:
            return None


def raise_open_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(argv):
    global HELLO_SERVER, WEIR, TLS
    HELLO_SERVER, rest = argv[1], argv[2:]
    if rest[:1] == ["--through"]:
        WEIR, rest = rest[1], rest[2:]
    if rest[:1] == ["--cleartext"]:
        TLS, rest = False, rest[1:]
    print(f"WEIR_TEST_SEED={SEED}", file=sys.stderr)
    unittest.main(module="__main__", argv=[argv[0], *rest], verbosity=1)
