"""What the chaos test consists of: replicas that misbehave, and clients of gRPC and WebSocket that
compare every answer with what they asked."""

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

from processes import Process  # noqa: E402
from websocket_testing import BINARY, CLOSE, Http1Socket, Http2Socket, frame  # noqa: E402

HERE = pathlib.Path(__file__).parent
CLASSES = ("critical", "high", "normal", "low")
PLAIN = {"request_serializer": bytes, "response_deserializer": bytes}
# How a call may end when its replica fails or the gateway refuses it.
HONEST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED,
          grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL}


class ChaosReplica(Process):
    def __init__(self, protocol, port=0):
        self.protocol = protocol
        super().__init__("node", str(HERE / "chaos_replica.mjs"), str(port), protocol,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])

    def behave(self, manner):
        self.child.stdin.write(manner + "\n")
        self.child.stdin.flush()

    def again(self):
        return ChaosReplica(self.protocol, self.port)

    def end(self):
        super().end()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()


class Monkey:
    """Does one thing after the other to the replicas of one kind, one replica at a time, until it
    is stopped; leaves all of them well."""

    def __init__(self, kind, count, seed):
        self.rng = random.Random(f"{seed} {kind}")
        self.replicas = [ChaosReplica(kind) for _ in range(count)]
        self.done = collections.Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    @property
    def ports(self):
        return [one.port for one in self.replicas]

    def _run(self):
        acts = [self.kill, self.pause, self.slow, self.reset]
        while not self.stopping.wait(self.rng.uniform(0.1, 0.6)):
            act = self.rng.choice(acts)
            act(self.rng.randrange(len(self.replicas)))
            self.done[act.__name__] += 1

    def kill(self, i):
        self.replicas[i].end()
        self.stopping.wait(self.rng.uniform(0.0, 1.0))
        self.replicas[i] = self.replicas[i].again()

    def pause(self, i):
        self.replicas[i].signal(signal.SIGSTOP)
        self.stopping.wait(self.rng.uniform(0.2, 2.0))
        self.replicas[i].signal(signal.SIGCONT)

    def slow(self, i):
        self._behave_for(i, f"slow {self.rng.randrange(20, 400)}")

    def reset(self, i):
        self._behave_for(i, "reset")

    def _behave_for(self, i, manner):
        self.replicas[i].behave(manner)
        self.stopping.wait(self.rng.uniform(0.2, 1.5))
        self.replicas[i].behave("good")

    def surprises(self):
        """What the replicas said that ended by themselves."""
        return [line for one in self.replicas for line in one.lines]

    def stop(self):
        self.stopping.set()
        self.thread.join(30)

    def end(self):
        if self.thread.is_alive():
            self.stop()
        for one in self.replicas:
            one.end()


class Clients:
    """Threads that repeat once() until stop(); `seen` counts how it ended, `faults` must be
    empty."""

    def __init__(self, count, seed):
        self.seen = collections.Counter()
        self.faults = []
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.threads = [
            threading.Thread(target=self._run, daemon=True,
                             args=(random.Random(f"{seed} {type(self).__name__} {i}"), i))
            for i in range(count)]

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def _run(self, rng, number):
        while not self.stopping.wait(rng.choice((0, rng.uniform(0, 0.1), rng.uniform(0, 0.02)))):
            try:
                ended = self.once(rng, number)
            except Exception as error:  # whatever it is, the test reports it
                ended = "fault"
                self.faults.append(f"{type(self).__name__}: {error!r}")
            with self.lock:
                self.seen[ended] += 1

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(40)
            if thread.is_alive():
                self.faults.append(f"{type(self).__name__}: has not ended")

    def once(self, rng, number):
        raise NotImplementedError


class Calls(Clients):
    """Unary calls and conversations of gRPC, each piece with a number of its own."""

    def __init__(self, port, count, seed):
        super().__init__(count, seed)
        self.channels = [grpc.insecure_channel(f"127.0.0.1:{port}",
                                               options=[("grpc.use_local_subchannel_pool", 1)])
                         for _ in range(2)]

    def once(self, rng, number):
        of = rng.choice(CLASSES)
        channel = rng.choice(self.channels)
        unary = rng.random() < 0.7
        try:
            if unary:
                said = rng.randbytes(rng.choice((0, 10, 1000, 50000)))
                heard = channel.unary_unary(f"/{of}/say", **PLAIN)(said, timeout=10)
            else:
                said = [rng.randbytes(rng.choice((1, 100, 10000)))
                        for _ in range(rng.randrange(1, 20))]
                heard = list(channel.stream_stream(f"/{of}/chat", **PLAIN)(
                    self._slowly(said, rng), timeout=20))
        except grpc.RpcError as error:
            if error.code() not in HONEST:
                raise
            return f"{of} {error.code().name}"
        if heard != said:
            raise AssertionError(f"the answer of another call, {len(heard)} of {len(said)}")
        return f"{of} ok"

    @staticmethod
    def _slowly(pieces, rng):
        for piece in pieces:
            time.sleep(rng.uniform(0, 0.03))
            yield piece

    def stop(self):
        super().stop()
        for channel in self.channels:
            channel.close()


class OneThreadedHttp2Socket(Http2Socket):
    """Reads while it waits for a window: nobody else does."""

    def send(self, data):
        while data:
            if self.ended:
                raise ConnectionError
            room = min(self.peer.local_flow_control_window(self.stream),
                       self.peer.max_outbound_frame_size, len(data))
            if room == 0:
                self._read()
                continue
            self.peer.send_data(self.stream, data[:room])
            self._flush()
            data = data[room:]


class Sockets(Clients):
    """WebSocket conversations over HTTP/1.1 and HTTP/2: an answer is the SHA-256 of its message."""

    def __init__(self, port, count, seed):
        super().__init__(count, seed)
        self.port = port

    def once(self, rng, number):
        of = rng.choice(CLASSES)
        kind = (Http1Socket, OneThreadedHttp2Socket)[number % 2]
        try:
            client = kind(self.port, f"/{of}/socket")
        except OSError:
            return f"{of} not opened"
        try:
            if client.status not in (101, 200):
                return f"{of} {client.status}"
            return f"{of} " + self._converse(client, rng)
        except OSError:
            return f"{of} cut"
        finally:
            client.close()

    def _converse(self, client, rng):
        for _ in range(rng.randrange(1, 40)):
            sent = [rng.randbytes(rng.choice((0, 10, 126, 5000)))
                    for _ in range(rng.randrange(1, 5))]
            client.send(b"".join(frame(BINARY, one, rng.randbytes(4)) for one in sent))
            expected = [hashlib.sha256(one).digest() for one in sent]
            while expected:
                frames = client.receive()
                if not frames:
                    return "cut"
                for opcode, payload in frames:
                    if opcode == CLOSE:
                        return "closed"
                    if payload != expected.pop(0):
                        raise AssertionError("the answer of another message")
            if self.stopping.wait(rng.uniform(0, 0.05)):
                break
        client.send(frame(CLOSE, b"\x03\xe8", rng.randbytes(4)))
        while client.receive():
            pass
        return "ok"


class NodeClients:
    """chaos_clients.mjs"""

    def __init__(self, wanted):
        self.child = subprocess.Popen(["node", str(HERE / "chaos_clients.mjs"), json.dumps(wanted)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self):
        output, _ = self.child.communicate(timeout=60)
        return json.loads(output)

    def end(self):
        self.child.kill()
        self.child.wait(5)
