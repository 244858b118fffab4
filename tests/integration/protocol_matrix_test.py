"""Every protocol of clients with every protocol of upstreams, for every kind of body. Each pair
keeps one client connection for all kinds, in an order from a seed, so that a message that ends in
the wrong place spoils the next one. `protocol_matrix_test.py [seed]`; prints the table."""

import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from matrix_peers import Backend, Http1Client, Http2Client, Message
from processes import WEIR, ProcessTest, Weir
from tls_test import Certificates

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc  # noqa: E402

SEED = 1
UPSTREAMS = ("h1", "h1-tls", "h2", "h2-tls")
CLIENTS = ("h1", "h1-tls", "h2", "h2-tls", "grpc", "grpc-tls")
SMALL = b"a small body"
MIDDLE = bytes(range(256)) * 280      # 70 KB: more than buffer_request_max
LARGE = random.Random(7).randbytes(2_000_000)
UP, DOWN = [("x-up", "last word"), ("x-up-two", "2")], [("x-down", "the end")]
EARLY = (103, [("link", "</style.css>; rel=preload")])


def get(answer, method="GET"):
    return Message(method=method), answer


def post(body, answer, **more):
    return Message(method="POST", body=body, **more), answer


def ok(body=SMALL, **more):
    return Message(status=200, body=body, **more)


# name: (what the client sends, what the backend answers)
KINDS = {
    "none": get(ok()),
    "no-body-back": get(ok(b"")),
    "query": get(ok()),
    "empty": post(b"", ok()),
    "empty-without-length": post(b"", ok(b"", length=False), length=False),
    "one-byte": post(b"x", ok(b"y")),
    "one-byte-without-length": post(b"x", ok(b"y", length=False), length=False),
    "length": post(SMALL, ok()),
    "without-length": post(SMALL, ok(length=False), length=False),
    "70kB": post(MIDDLE, ok(MIDDLE)),
    "70kB-without-length": post(MIDDLE, ok(MIDDLE, length=False), length=False),
    "2MB": post(LARGE, ok(LARGE)),
    "2MB-up-without-length": post(LARGE, ok(b""), length=False),
    "2MB-down-without-length": get(ok(LARGE, length=False)),
    "trailers": post(SMALL, ok(length=False, trailers=DOWN), length=False, trailers=UP,
                     fields=[("te", "trailers")]),
    "trailers-70kB": post(MIDDLE, ok(MIDDLE, length=False, trailers=DOWN), length=False,
                          trailers=UP, fields=[("te", "trailers")]),
    "head": get(Message(status=200, fields=[("content-length", "12345")]), "HEAD"),
    "head-without-length": get(Message(status=200, length=False), "HEAD"),
    "204": post(SMALL, Message(status=204)),
    "304": get(Message(status=304, fields=[("etag", '"v1"')])),
    "404": get(Message(status=404, body=SMALL)),
    "103": get(ok(interims=[EARLY])),
    "103-twice-70kB": post(MIDDLE, ok(MIDDLE, interims=[EARLY, EARLY])),
    "expect": post(SMALL, ok(), expect=True),
    "expect-70kB": post(MIDDLE, ok(), expect=True),
    "expect-without-length": post(SMALL, ok(), length=False, expect=True),
    "delete": (Message(method="DELETE"), Message(status=204)),
    "put": (Message(method="PUT", body=MIDDLE), Message(status=201, body=b"made")),
    "until-close": get(ok(MIDDLE, until_close=True)),  # upstreams of HTTP/1.1 only
}


def framed(message):
    return b"\0" + struct.pack(">I", len(message)) + message


def called(message, code=0, **more):
    head = [("content-type", "application/grpc")]
    if message is None:  # trailers alone
        return Message(status=200, length=False,
                       fields=[*head, ("grpc-status", str(code)), ("grpc-message", "as%20asked"),
                               *DOWN])
    return Message(status=200, length=False, fields=head, body=framed(message),
                   trailers=[("grpc-status", str(code)), *DOWN], **more)


# name: (message that the client sends, what the backend answers, code, message that it answers)
CALLS = {
    "empty": (b"", called(b""), 0, b""),
    "one-byte": (b"x", called(b"y"), 0, b"y"),
    "small": (SMALL, called(SMALL), 0, SMALL),
    "70kB": (MIDDLE, called(MIDDLE), 0, MIDDLE),
    "2MB": (LARGE, called(LARGE), 0, LARGE),
    "trailers-alone": (SMALL, called(None, 9), 9, None),
    "error-behind-an-answer": (SMALL, called(SMALL, 5), 5, None),
    "103": (SMALL, called(SMALL, interims=[EARLY]), 0, SMALL),
}


class Matrix(ProcessTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-matrix-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.certificates = Certificates(cls.folder)
        pair = cls.certificates.make("server", "/CN=localhost")
        plans = {**{"http-" + name: answer for name, (_, answer) in KINDS.items()},
                 **{"grpc-" + name: call[1] for name, call in CALLS.items()}}
        cls.backends = {name: Backend(name.startswith("h2"), plans,
                                      pair if name.endswith("tls") else None)
                        for name in UPSTREAMS}
        for backend in cls.backends.values():
            cls.addClassCleanup(backend.end)
        cls.weir = Weir(config=cls.config(pair))
        cls.addClassCleanup(cls.weir.end)
        cls.tls_port = int(cls.weir.line_with(r"listening with TLS on .*:(\d+)")[1])

    @classmethod
    def config(cls, pair):
        parts = [f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{pair[0]}"
private_key = "{pair[1]}"
"""]
        for name, backend in cls.backends.items():
            tls = (f'[upstream.tls]\nenabled = true\nca = "{cls.certificates.authority}"'
                   if name.endswith("tls") else "")  # the protocol is what ALPN finds
            protocol = "" if tls else f'protocol = "http{name[1]}"'
            parts.append(f"""
[[upstream]]
name = "{name}"
endpoints = ["127.0.0.1:{backend.port}"]
{protocol}
{tls}
[[route]]
path_prefix = "/{name}/"
upstream = "{name}"
""")
        return "".join(parts)

    def test_every_pair(self):
        chance = random.Random(SEED)
        table = {}
        for client in CLIENTS:
            for upstream in UPSTREAMS:
                run = self.calls if client.startswith("grpc") else self.requests
                table[client, upstream] = run(client, upstream, chance)
        print(f"\n{'client':10}" + "".join(f"{'to ' + name:>14}" for name in UPSTREAMS))
        for client in CLIENTS:
            print(f"{client:10}" + "".join("{:>14}".format("%d of %d" % table[client, upstream])
                                           for upstream in UPSTREAMS))
        for name, backend in self.backends.items():
            self.assertEqual(backend.faults, [], name)
        self.assertEqual(self.weir.balance(), 0)

    def port_and_authority(self, client):
        if client.endswith("tls"):
            return self.tls_port, self.certificates.authority
        return self.weir.port, None

    # ---- HTTP ----

    def requests(self, client, upstream, chance):
        """(kinds that are right, kinds)"""
        names = [name for name in KINDS if name != "until-close" or upstream.startswith("h1")]
        chance.shuffle(names)
        kind = Http1Client if client.startswith("h1") else Http2Client
        peer, good = None, 0
        for name in names:
            with self.subTest(client=client, upstream=upstream, kind=name):
                try:
                    peer = peer or kind(*self.port_and_authority(client))
                    self.check(peer, client, upstream, name)
                    good += 1
                except BaseException:
                    peer = None  # it may be in the middle of something
                    raise
        return good, len(names)

    def check(self, peer, client, upstream, name):
        asked, planned = KINDS[name]
        path = f"/{upstream}/{'a?b=c&d=%2F/' if name == 'query' else ''}http-{name}"
        backend = self.backends[upstream]
        backend.journal.clear()
        request = Message(**{**asked.__dict__, "path": path, "authority": "a.test",
                             "fields": [*asked.fields, ("x-mine", name), ("cookie", "a=1; b=2")]})
        answer = peer.ask(request)
        self.check_answer(answer, request, planned)
        self.check_journal(backend.journal, request, upstream)
        if client.startswith("h1") and planned.body and not planned.length:
            self.assertEqual(answer.values("transfer-encoding"), ["chunked"])

    def check_answer(self, answer, request, planned):
        self.assertEqual(answer.status, planned.status, answer.fields)
        wanted = b"" if request.method == "HEAD" else planned.body
        self.assertEqual(answer.digest(), Message(body=wanted).digest())
        for pair in planned.fields:
            self.assertIn(pair, answer.fields)
        self.assertEqual(answer.trailers, planned.trailers)
        interims = ([(100, [])] if request.expect else []) + planned.interims
        self.assertEqual([(status, [pair for pair in fields if pair[0] == "link"])
                          for status, fields in answer.interims], interims)
        if planned.until_close or not planned.length:
            self.assertIn(answer.values("content-length"), [[]] if planned.body else [[], ["0"]])
        elif planned.status not in (204, 304) and not planned.values("content-length"):
            self.assertEqual(answer.values("content-length"), [str(len(planned.body))])

    def check_journal(self, journal, request, upstream):
        """The backend saw this request, once, and nothing else."""
        self.assertEqual(len(journal), 1)
        seen = journal[0]
        self.assertTrue(seen.complete)
        self.assertEqual((seen.method, seen.path, seen.authority),
                         (request.method, request.path, request.authority))
        self.assertEqual(seen.digest(), request.digest())
        self.assertEqual(seen.trailers, request.trailers)
        self.assertEqual(seen.values("x-mine"), request.values("x-mine"))
        self.assertEqual("; ".join(seen.values("cookie")), "a=1; b=2")
        sized = request.method not in ("GET", "HEAD", "DELETE")
        if not request.length:
            self.assertIn(seen.values("content-length"), [[]] if request.body else [[], ["0"]])
        elif sized:
            self.assertEqual(seen.values("content-length"), [str(len(request.body))])
        if upstream.startswith("h1"):
            self.assertEqual(seen.values("transfer-encoding"),
                             [] if request.length else ["chunked"])

    # ---- gRPC ----

    def calls(self, client, upstream, _chance):
        port, authority = self.port_and_authority(client)
        target = f"127.0.0.1:{port}"
        if authority:
            credentials = grpc.ssl_channel_credentials(pathlib.Path(authority).read_bytes())
            channel = grpc.secure_channel(target, credentials)
        else:
            channel = grpc.insecure_channel(target)
        self.addCleanup(channel.close)
        good = 0
        for name in CALLS:
            with self.subTest(client=client, upstream=upstream, kind=name):
                self.backends[upstream].journal.clear()
                call = channel.unary_unary(f"/{upstream}/grpc-{name}", request_serializer=bytes,
                                           response_deserializer=bytes)
                done = call.future(CALLS[name][0], timeout=20, metadata=(("x-mine", name),))
                if upstream.startswith("h2"):
                    self.check_call(done, upstream, name)
                else:
                    self.check_unimplemented(done, upstream)
                good += 1
        return good, len(CALLS)

    def check_call(self, done, upstream, name):
        message, _, code, expected = CALLS[name]
        self.assertEqual(done.code().value[0], code, done.details())
        if expected is not None:
            self.assertEqual(done.result(), expected)
        self.assertIn(DOWN[0], [tuple(pair) for pair in done.trailing_metadata()])
        seen, = self.backends[upstream].journal
        self.assertEqual((seen.complete, seen.method, seen.path, seen.body),
                         (True, "POST", f"/{upstream}/grpc-{name}", framed(message)))
        self.assertEqual(seen.values("te"), ["trailers"])
        self.assertEqual(seen.values("x-mine"), [name])

    def check_unimplemented(self, done, upstream):
        """An upstream of HTTP/1.1 cannot say how a call ended: it is not asked."""
        self.assertEqual(done.code(), grpc.StatusCode.UNIMPLEMENTED, done.details())
        self.assertEqual(list(done.initial_metadata()), [], "trailers alone")
        self.assertEqual(self.backends[upstream].journal, [])

    def test_a_grpc_route_to_an_upstream_of_http1_does_not_pass_the_check(self):
        path = os.path.join(self.folder, "check.toml")
        for upstream, status in (('protocol = "http1"', 2), ("", 2), ('protocol = "http2"', 0)):
            text_of = f"""
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:1"]
{upstream}
[[route]]
grpc = "a.Service"
upstream = "app"
"""
            pathlib.Path(path).write_text(text_of, encoding="utf-8")
            done = subprocess.run([WEIR, "check", path], capture_output=True, text=True,
                                  timeout=20, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            if status:
                self.assertIn("route[0].grpc", done.stderr)
                self.assertIn('protocol = "http2"', done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SEED = int(sys.argv.pop(1))
    unittest.main(verbosity=2)
