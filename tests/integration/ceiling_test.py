"""The most memory the gateway ever held (as the kernel saw it: every resident page, of code too),
beside the ceiling it named before it served anybody."""

import contextlib
import pathlib
import socket
import ssl
import subprocess
import tempfile
import unittest

import hpack

from http2_wire_test import END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW, PREFACE
from http2_wire_test import frame, settings, window
from processes import Nginx, ProcessTest, Weir, get, wait_until

# Few of everything, so that clients can take all of it, and small socket buffers: what a client
# does not read is the gateway's to hold, not the kernel's.
CONFIG = """
[tls]
listen = ["127.0.0.1:0"]
certificate = "{folder}/cert.pem"
private_key = "{folder}/key.pem"
[server]
loops = 2
max_connections = 200
handshake_slots = 8
streams_max = 320
tcp_write_buffer_pool_size = 256
body_lease_pool_size = 16
socket_receive_buffer_size = "16KiB"
socket_send_buffer_size = "16KiB"
header_timeout_ms = 60000
body_timeout_ms = 60000
write_timeout_ms = 60000
stall_grace_ms = 60000
[http2]
sessions_max = 64
[admission]
streams_max = 320
waiting_max = 0
[admission.limit]
policy = "fixed"
initial_limit = 250
[admin]
access_log = "off"
[[upstream]]
name = "files"
endpoints = ["127.0.0.1:{files}"]
max_connections = 250
[[upstream]]
name = "deaf"
endpoints = ["127.0.0.1:{deaf}"]
max_connections = 70
[[route]]
path_prefix = "/deaf"
upstream = "deaf"
[[route]]
upstream = "files"
"""


class Ceiling(ProcessTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        files = pathlib.Path(self.folder.name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", files / "key.pem", "-out", files / "cert.pem"],
                       check=True, capture_output=True)
        self.context = ssl.create_default_context(cafile=files / "cert.pem")
        self.context.check_hostname = False
        self.context.set_alpn_protocols(["h2", "http/1.1"])
        self.held = []
        self.addCleanup(self.let_go)

    def let_go(self):
        for one in self.held:
            one.close()
        self.held.clear()

    def connect(self, port, protocol=None):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(10)
        s.connect(("127.0.0.1", port))
        if protocol:
            self.context.set_alpn_protocols([protocol])
            s = self.context.wrap_socket(s)
            self.assertEqual(s.selected_alpn_protocol(), protocol)
        self.held.append(s)
        return s

    def read_nothing(self, port):
        """HTTP/2: four large answers are asked for, and none is read."""
        s = self.connect(port, "h2")
        encoder = hpack.Encoder()
        fields = [(":method", "GET"), (":scheme", "https"), (":path", "/big"), (":authority", "t"),
                  ("x-fill", "f" * 4000)]
        s.sendall(PREFACE + settings((INITIAL_WINDOW, 1 << 30)) + window(0, 1 << 30) + b"".join(
            frame(HEADERS, END_HEADERS | END_STREAM, stream, encoder.encode(fields))
            for stream in (1, 3, 5, 7)))

    def end_no_head(self, port):
        self.connect(port, "http/1.1").sendall(b"GET / HTTP/1.1\r\nhost: t\r\na: " + b"x" * 16000)

    def send_to_the_deaf(self, port):
        s = self.connect(port)
        s.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            s.sendall(b"POST /deaf HTTP/1.1\r\nhost: t\r\ncontent-length: 90000000\r\n\r\n" +
                      b"y" * 200000)

    def test_everything_full_at_once(self):
        """Every kind of holder as full as clients can make it, at the same time."""
        files = self.started(Nginx({"big": b"b" * (8 << 20), "small": b"s"}))
        deaf = socket.create_server(("127.0.0.1", 0), backlog=256)  # takes, and never reads
        self.addCleanup(deaf.close)
        gateway = self.started(Weir(config=CONFIG.format(
            folder=self.folder.name, files=files.port, deaf=deaf.getsockname()[1])))
        tls = int(gateway.line_with(r"TLS.* 127\.0\.0\.1:(\d+)")[1])
        ceiling = gateway.stats()["memory"]["ceiling_bytes"]
        refused = 0
        for _ in range(60):
            for fill, port in ((self.end_no_head, tls), (self.send_to_the_deaf, gateway.port),
                               (self.read_nothing, tls)):
                try:
                    fill(port)
                except OSError:  # from some point on nobody else is let in
                    refused += 1
        peaks = []  # it takes in what was sent, and then grows no more

        def full():
            peaks.append(gateway.memory_bytes())
            return len(peaks) > 50 and peaks[-1] == peaks[-50]
        wait_until(full)
        stats = gateway.stats()
        print(f"{peaks[-1] >> 10} kB of {ceiling >> 10} kB; {refused} refused,", stats["requests"])
        self.assertLessEqual(peaks[-1], ceiling)
        self.assertGreater(peaks[-1], ceiling / 4, "nothing was filled")
        self.let_go()
        self.assertEqual(gateway.balance(), 0)
        self.assertEqual(get(gateway.port, "/small").status, 200)


if __name__ == "__main__":
    unittest.main()
