"""The same client as peer_client.cc, by gRPC's Python library. peer_client.py TARGET [CA_FILE]."""

import json
import os
import pathlib
import queue
import sys
import time

sys.path.insert(0, os.path.join(os.environ["WEIR_BUILD"], "tests/grpc"))
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402
import health_pb2  # noqa: E402
import health_pb2_grpc  # noqa: E402
import peers_pb2  # noqa: E402
import peers_pb2_grpc  # noqa: E402

MESSAGE_BYTES_MAX = 64 << 20
LARGE = bytes(range(256)) * (16 << 12)
RETRY_POLICY = {"methodConfig": [{
    "name": [{"service": "peers.Peer"}],
    "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
                    "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}


def piece(data=b""):
    return peers_pb2.Piece(data=data)


def values(fields, name):
    found = [value for key, value in fields or () if key == name]
    return ",".join((v if isinstance(v, bytes) else v.encode()).hex() for v in found)


def number(status):
    return status.value[0]


class Client:
    def __init__(self, target, ca_file=None):
        options = [("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                   ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
                   ("grpc.service_config", json.dumps(RETRY_POLICY)), ("grpc.enable_retries", 1)]
        if ca_file:
            credentials = grpc.ssl_channel_credentials(pathlib.Path(ca_file).read_bytes())
            self.channel = grpc.secure_channel(target, credentials, options)
        else:
            self.channel = grpc.insecure_channel(target, options)
        self.peer = peers_pb2_grpc.PeerStub(self.channel)
        self.checks = health_pb2_grpc.HealthStub(self.channel)

    def do(self, word):
        """[(key, value)]: what the word found."""
        return getattr(self, "do_" + word)()

    def do_unary(self):
        answer, call = self.peer.Echo.with_call(piece(b"hello"), timeout=60,
                                                metadata=(("key", "a"), ("key", "b")))
        trailers = call.trailing_metadata()
        return [("code", number(call.code())), ("answer", answer.data.decode()),
                ("keys", values(trailers, "key")), ("blob", values(trailers, "blob-bin"))]

    def do_split(self):
        call = self.peer.Split(piece(b"abcdefgh"), timeout=60)
        text = b"".join(answer.data for answer in call)
        return [("code", number(call.code())), ("answer", text.decode())]

    def do_join(self):
        parts = (piece(part) for part in (b"one", b"", b"two", b"three"))
        answer, call = self.peer.Join.with_call(parts, timeout=60)
        return [("code", number(call.code())), ("answer", answer.data.decode())]

    def do_chat(self):
        parts = queue.SimpleQueue()
        call = self.peer.Chat(iter(parts.get, None), timeout=60)
        text = b""
        for part in (b"ab", b"cd", b"ef"):
            parts.put(piece(part))
            text += next(call).data
        parts.put(None)
        assert next(call, None) is None
        return [("code", number(call.code())), ("answer", text.decode())]

    def do_deadline(self):
        began = time.monotonic()
        try:
            code = number(self.peer.Sleep.with_call(piece(), timeout=0.4)[1].code())
        except grpc.RpcError as error:
            code = number(error.code())
        return [("code", code), ("ms", int((time.monotonic() - began) * 1000))]

    def do_cancel(self):
        call = self.peer.Hold(piece(b"held"), timeout=60)
        first = next(call).data.decode()
        call.cancel()
        return [("first", first), ("code", number(call.code()))]

    @staticmethod
    def failure(error):
        trailers = error.trailing_metadata()
        return [("codes", number(error.code())), ("messages", error.details().encode().hex()),
                ("details", values(trailers, "grpc-status-details-bin")),
                ("why", values(trailers, "why") + "," + values(trailers, "why-bin"))]

    def do_errors(self):
        said = []
        for code in range(1, 17):
            wanted = peers_pb2.Failure(code=code, message="as asked: 100 % €",
                                       details=b"\x08\x05\x00\xff")
            for ask in (lambda w: self.peer.Fail(w, timeout=60),
                        lambda w: list(self.peer.FailLate(w, timeout=60))):
                try:
                    ask(wanted)
                except grpc.RpcError as error:
                    said += self.failure(error)
        return said

    def do_large(self):
        answer, call = self.peer.Echo.with_call(piece(LARGE), timeout=60)
        return [("code", number(call.code())), ("same", int(answer.data == LARGE))]

    def do_retry(self):
        began = time.monotonic()
        try:
            code = number(self.peer.Echo.with_call(piece(b"x"), timeout=60)[1].code())
        except grpc.RpcError as error:
            code = number(error.code())
        return [("code", code), ("ms", int((time.monotonic() - began) * 1000))]

    def do_thousand(self):
        calls = []
        for index in range(1000):
            parts = queue.SimpleQueue()
            parts.put(piece(b"%d" % (1000 + index)))
            calls.append((parts, self.peer.Chat(iter(parts.get, None), timeout=60)))
        opened = sum(next(call).data == (b"%d" % (1000 + index))[::-1]
                     for index, (_, call) in enumerate(calls))
        for parts, _ in calls:
            parts.put(piece(b"end"))
            parts.put(None)
        good = sum([answer.data for answer in call] == [b"dne"] and
                   call.code() == grpc.StatusCode.OK for _, call in calls)
        return [("open", opened), ("good", good)]

    def health_of(self, service):
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            return self.checks.Check(request, timeout=60).status
        except grpc.RpcError as error:
            return -number(error.code())

    def do_health(self):
        said = [("check", self.health_of("")), ("unknown", self.health_of("no.such.Service"))]
        watch = self.checks.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        said.append(("watched", next(watch).status))
        self.peer.SetServing(peers_pb2.Serving(serving=False), timeout=60)
        said += [("watched_then", next(watch).status), ("check_then", self.health_of(""))]
        self.peer.SetServing(peers_pb2.Serving(serving=True), timeout=60)
        watch.cancel()
        return [*said, ("code", number(watch.code()))]


if __name__ == "__main__":
    client = Client(*sys.argv[1:])
    for line in sys.stdin:
        print(" ".join(f"{key}={value}" for key, value in client.do(line.strip())), flush=True)
