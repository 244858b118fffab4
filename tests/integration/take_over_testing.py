"""What tests of a take-over share: a service of every kind, its clients, and gateways that follow
one another."""

import concurrent.futures
import http.client
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from open_loop import OpenLoop  # noqa: E402
from processes import ProcessTest, Weir  # noqa: E402
from replicas_testing import LIMIT, Replica  # noqa: E402

HERE = pathlib.Path(__file__).parent
PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}
RAW = {"request_deserializer": bytes, "response_serializer": bytes}
SLOW_PIECES = 25
SLOW_PAUSE = 0.1


class SlowPages(http.server.BaseHTTPRequestHandler):
    """A response that takes some seconds, in pieces; and an upload that is echoed as its size."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for i in range(SLOW_PIECES):
            self.wfile.write(b"3\r\n%03d\r\n" % i)
            self.wfile.flush()
            time.sleep(SLOW_PAUSE)
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        text = str(len(body)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class SlowBackend:
    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowPages)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class GrpcService:
    def __init__(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
        kinds = {"say": grpc.unary_unary_rpc_method_handler(lambda said, _: said, **RAW),
                 "chat": grpc.stream_stream_rpc_method_handler(self.chat, **RAW)}
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Kinds", kinds),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def chat(self, pieces, _context):
        for piece in pieces:
            yield piece[::-1]

    def end(self):
        self.server.stop(0).wait(5)


class Worker:
    """Work that is repeated in threads until stop(); keeps what failed."""

    def __init__(self, count):
        self.failures = []
        self.done = 0
        self.stopping = False
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def start(self):
        for thread in self._threads:
            thread.start()
        return self

    def _run(self):
        while not self.stopping:
            try:
                self.once()
                with self._lock:
                    self.done += 1
            except Exception as error:  # whatever it is, a test reports it
                self.failures.append(f"{type(self).__name__}: {error!r}")
                return

    def stop(self):
        self.stopping = True
        for thread in self._threads:
            thread.join(30)

    def once(self):
        raise NotImplementedError


class SlowReaders(Worker):
    """Responses that are longer than a take-over takes."""

    def __init__(self, port, count):
        super().__init__(count)
        self.port = port

    def once(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/slow")
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 200 or body != b"".join(b"%03d" % i for i in range(SLOW_PIECES)):
            raise AssertionError((response.status, body))


class SlowWriters(Worker):
    """Uploads of which a piece comes from time to time."""

    def __init__(self, port, count):
        super().__init__(count)
        self.port = port

    def once(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest("POST", "/slow")
        connection.putheader("content-length", "200000")
        connection.endheaders()
        for _ in range(20):
            connection.send(b"x" * 10000)
            time.sleep(SLOW_PAUSE)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if (response.status, body) != (200, b"200000"):
            raise AssertionError((response.status, body))


class GrpcCalls(Worker):
    """Unary calls on one channel, as a service has it."""

    def __init__(self, port, count, pause=0.02):
        super().__init__(count)
        self.pause = pause
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.say = self.channel.unary_unary("/test.Kinds/say", **PLAIN)

    def once(self):
        said = os.urandom(50)
        if self.say(said, timeout=20, wait_for_ready=True) != said:
            raise AssertionError("another answer")
        time.sleep(self.pause)


class GrpcStreams(Worker):
    """Conversations of about two seconds."""

    def __init__(self, port, count):
        super().__init__(count)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.chat = self.channel.stream_stream("/test.Kinds/chat", **PLAIN)

    def once(self):
        def pieces():
            for i in range(20):
                time.sleep(SLOW_PAUSE)
                yield b"ab%d" % i
        heard = list(self.chat(pieces(), timeout=30, wait_for_ready=True))
        if heard != [(b"ab%d" % i)[::-1] for i in range(20)]:
            raise AssertionError(heard)


class Http2Load:
    def __init__(self, port, sessions, rate, tls=False):
        self.child = subprocess.Popen(
            ["node", str(HERE / "http2_load.mjs"), f"http{'s' * tls}://127.0.0.1:{port}",
             str(sessions), str(rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self):
        output, _ = self.child.communicate(timeout=40)
        return json.loads(output)

    def end(self):
        self.child.kill()
        self.child.wait(5)


class TakeOverTest(ProcessTest):
    """Gateways that take over from one another, all with the same addresses."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-test-take-over-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = os.path.join(self.folder, "take-over.sock")
        self.replica = self.started(Replica(os.path.join(self.folder, "journal")))
        self.slow = self.started(SlowBackend())
        self.calls = self.started(GrpcService())

    def config(self, extra="", server="", loops=2):
        return f"""
{LIMIT}
{extra}
[server]
loops = {loops}
{server}
[admin]
take_over_socket = "{self.socket}"
access_log = "off"
drain_timeout_ms = 20000
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{self.replica.port}"]
[[upstream]]
name = "slow"
endpoints = ["127.0.0.1:{self.slow.port}"]
[[upstream]]
name = "calls"
endpoints = ["127.0.0.1:{self.calls.port}"]
protocol = "http2"
[[route]]
path_prefix = "/slow"
upstream = "slow"
[[route]]
path_prefix = "/test.Kinds"
upstream = "calls"
[[route]]
upstream = "app"
"""

    def first(self, *arguments, **options):
        return self.started(Weir(*arguments, config=self.config(**options)))

    def next_of(self, old, *arguments, **options):
        """The gateway that has taken over from `old`."""
        new = self.started(Weir("--take-over", *arguments, config=self.config(**options)))
        self.assertEqual((new.port, new.admin), (old.port, old.admin))
        old.line_with(r"another process has taken over; draining for at most 20s")
        return new

    def assert_no_failure(self, open_loop, http2, workers):
        outcomes = open_loop.stop()
        failed = [o for o in outcomes if o.status != 200 or o.fault]
        self.assertEqual(failed, [])
        self.assertEqual(len(outcomes), open_loop.asked)
        self.assertEqual(open_loop.surprises, [])
        summary = http2.stop()
        self.assertEqual(summary["failures"], [])
        self.assertEqual(summary["answered"], summary["asked"])
        for worker in workers:
            worker.stop()
        self.assertEqual([f for worker in workers for f in worker.failures], [])
        counts = {type(worker).__name__: worker.done for worker in workers}
        print(f"  h1 {len(outcomes)}, h2 {summary['asked']} on {summary['sessions']} sessions "
              f"({summary['again']} sent again), {counts}")
        return summary


def start_open_loop(port, rate):
    return OpenLoop(port, {"GET": rate * 0.9, "POST": rate * 0.1}).start()
