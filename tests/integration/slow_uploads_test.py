"""Four synchronous workers, six uploads at 8 kB/s, fifty requests a second: the uploads must not
hold the workers, neither if their bodies are received first nor if there is no memory for that.

usage: slow_uploads_test.py [seconds [share that must be served]]
"""

import collections
import socket
import sys
import threading
import time
import unittest

from open_loop import OpenLoop
from processes import ProcessTest, Weir, wait_until

SECONDS = float(sys.argv.pop(1)) if len(sys.argv) > 1 else 4.0
SERVED = float(sys.argv.pop(1)) if len(sys.argv) > 1 else 0.9
WORKERS = 4
UPLOADS = 6
BYTES_PER_SECOND = 8000
LENGTH = 60_000  # longer than the test: none is complete before its end
RATE = 50

CONFIG = """
[admin]
access_log = "off"
[server]
buffer_request_max = "{most}"
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{port}"]
"""

# What an operator sets who knows the workers: uploads that are forwarded as they come may fill half
# of it while others wait.
AS_MANY_AS_WORKERS = f"""
[admission.limit]
policy = "fixed"
initial_limit = {WORKERS}
"""

Upload = collections.namedtuple("Upload", "began ended length")


class SynchronousBackend:
    """As many workers as threads; each serves one connection at a time, from its head to its end,
    and closes it. While one waits for a body, it does nothing else."""

    def __init__(self, workers, seconds=0.005):
        self.uploads = []
        self.served = 0
        self.heads = 0
        self._seconds = seconds
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listening.getsockname()[1]
        for _ in range(workers):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                try:
                    self._serve(connection.makefile("rb"), connection)
                except OSError:
                    continue

    def _serve(self, received, connection):
        request = received.readline()
        if not request:
            return
        began = time.monotonic()
        item, length = request.split(b" ")[1].partition(b"?")[2], 0
        for line in iter(received.readline, b"\r\n"):
            if not line:
                return
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        with self._lock:
            self.heads += 1
        body = received.read(length)
        if length > 0:
            with self._lock:
                self.uploads.append(Upload(began, time.monotonic(), len(body)))
        time.sleep(self._seconds)
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
                           % (len(item), item))
        with self._lock:
            self.served += 1

    def end(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


class SlowUpload(threading.Thread):
    """Sends its body evenly; `finish` sends the rest at once."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.finish = threading.Event()
        self.completed_at = None
        self.status = None
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self.start()

    def run(self):
        step, sent = 0.05, 0
        try:
            self._socket.sendall(
                b"POST /upload HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n" % LENGTH)
            while sent < LENGTH - 1 and not self.finish.wait(step):
                piece = min(int(BYTES_PER_SECOND * step), LENGTH - 1 - sent)
                self._socket.sendall(b"x" * piece)
                sent += piece
            self.finish.wait()
            self._socket.sendall(b"x" * (LENGTH - 1 - sent))
            self.completed_at = time.monotonic()  # before the last byte leaves
            self._socket.sendall(b"x")
            self.status = int(self._socket.recv(4096).split(b" ")[1])
        except (OSError, IndexError):
            self.status = 0
        finally:
            self._socket.close()


class SlowUploads(ProcessTest):
    def served_beside_uploads(self, port, begun, seconds=SECONDS):
        """The share of GETs that are served while the uploads last."""
        self.uploads = [SlowUpload(port) for _ in range(UPLOADS)]
        wait_until(begun)
        load = OpenLoop(port, {"GET": RATE}, patience=1.0).start()
        time.sleep(seconds)
        outcomes = load.stop()
        self.seen_by_then = len(self.backend.uploads)
        for upload in self.uploads:
            upload.finish.set()
        for upload in self.uploads:
            upload.join(30)
        served = sum(one.status == 200 for one in outcomes)
        print(f"{self.id()}: served {served} of {len(outcomes)},",
              "uploads:", [upload.status for upload in self.uploads])
        return served / len(outcomes)

    def setUp(self):
        self.backend = self.started(SynchronousBackend(WORKERS))

    def gateway(self, most, extra=""):
        gateway = self.started(Weir(config=extra + CONFIG.format(port=self.backend.port,
                                                                 most=most)))
        return gateway, lambda: gateway.stats()["requests"]["received"] >= UPLOADS

    def test_uploads_do_not_hold_the_workers(self):
        gateway, begun = self.gateway("64KiB")
        share = self.served_beside_uploads(gateway.port, begun)
        self.assertGreaterEqual(share, SERVED)
        # Exact: the backend saw no upload before its body was complete, and then the whole of each.
        self.assertEqual(self.seen_by_then, 0)
        self.assertEqual([upload.status for upload in self.uploads], [200] * UPLOADS)
        self.assertEqual([one.length for one in self.backend.uploads], [LENGTH] * UPLOADS)
        complete = sorted(upload.completed_at for upload in self.uploads)
        began = sorted(one.began for one in self.backend.uploads)
        for nth, at in enumerate(began):
            self.assertGreaterEqual(at, complete[nth], f"upload {nth}")

    def test_with_no_memory_for_their_bodies_the_slowest_end_for_others(self):
        gateway, begun = self.gateway("0", AS_MANY_AS_WORKERS)
        share = self.served_beside_uploads(gateway.port, begun)
        self.assertGreaterEqual(share, SERVED)
        self.assertGreater(gateway.metric(
            'weir_requests_refused_total{upstream="app",reason="slow_body"}'), 0)
        gateway.settled()

    def test_without_the_gateway_they_hold_all_workers(self):
        """What the other two are compared with."""
        share = self.served_beside_uploads(self.backend.port,
                                           lambda: self.backend.heads >= WORKERS, 1.0)
        self.assertLess(share, SERVED / 2)


if __name__ == "__main__":
    unittest.main()
