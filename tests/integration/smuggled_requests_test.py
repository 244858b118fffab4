"""Messages that two parsers could read in two ways, through the gateway: the backend sees none of
them, or exactly the one that the client has sent. From HTTP/1.1 to HTTP/1.1 and HTTP/2 (the vectors
of tests/corpus/h1_smuggling), and from HTTP/2 to both (the vectors below)."""

import pathlib
import re
import socket
import sys
import unittest

import hpack

from http2_wire_test import (DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST, Peer, frame)
from matrix_peers import Backend, Message
from processes import ProcessTest, Weir, wait_until

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "../differential"))
from against_h11 import unescape  # noqa: E402

CORPUS = HERE / "../corpus/h1_smuggling/requests.txt"


def load():
    """[(name, bytes, [wanted])]"""
    vectors = []
    for line in CORPUS.read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(": ")
        if key == "name":
            vectors.append((value, bytearray(), []))
        elif key == "send":
            vectors[-1][1].extend(unescape(value))
        elif key == "want":
            vectors[-1][2].append(value)
    return vectors


def requests_of(wanted):
    """[(method, authority, path, body)] that are complete."""
    found = []
    for line in wanted:
        kind, *rest = line.split(" ", 4)
        if kind == "request":
            found.append((*rest[:3], unescape(rest[3]) if len(rest) > 3 else b""))
    return found


def seen_by(backend):
    return [(one.method, one.authority, one.path, one.body) for one in backend.journal
            if one.complete]


GET = [(":method", "GET"), (":scheme", "http"), (":path", "/ask"), (":authority", "a")]
POST = [(":method", "POST"), *GET[1:]]


def instead(name, value):
    """A GET with another value of one field, or without it."""
    return [(key, value if key == name else old) for key, old in GET
            if key != name or value is not None]


# (name, fields, pieces of body, trailers)
VECTORS = [
    *((f"value with {code!r}", [*GET, ("x", f"a{code}x-smuggled: 1")], [], None)
      for code in ("\r\n", "\r", "\n", "\0", "\r\n\r\nGET /stolen HTTP/1.1\r\nhost: a\r\n")),
    *((f"name {name!r}", [*GET, (name, "1")], [], None)
      for name in ("x:y", "x y", "X-Upper", "x\r\nx-smuggled", "x\n", "x\0", "", "x\t",
                   "x-smuggled: 1\r\ny", "\x80")),
    *((f"path {path!r}", instead(":path", path), [], None)
      for path in ("/a b", "/a HTTP/1.1\r\nx-smuggled: 1\r\ny: ", "/\r\n", "/\n", "/\0", "", "ask",
                   "/a#b", "http://b/ask", "*", "/\t", "/\x80", None)),
    *((f"method {method!r}", instead(":method", method), [], None)
      for method in ("GET /stolen HTTP/1.1\r\nhost: a\r\n\r\nGET", "G ET", "GET\r\n", "", "G\0",
                     "get ", None)),
    *((f"authority {host!r}", instead(":authority", host), [], None)
      for host in ("a\r\nx-smuggled: 1", "a b", "a/b", "user@a", "a\0", "a\n", "")),
    *((f"scheme {scheme!r}", instead(":scheme", scheme), [], None)
      for scheme in ("http\r\n", "", "http://a/ask?", None)),
    *((f"field {name}: {value}", [*POST, (name, value)], [b"body"], None)
      for name, value in (("transfer-encoding", "chunked"), ("connection", "close"),
                          ("connection", "x-a"), ("keep-alive", "1"), ("upgrade", "websocket"),
                          ("proxy-connection", "close"), ("te", "gzip"), ("host", "b"))),
    *((f"content-length {length} for 4", [*POST, ("content-length", length)], [b"body"], None)
      for length in ("3", "5", "0", "+4", "-4", "4, 4", "4,5", "0x4", " ", "4a",
                     "18446744073709551620")),
    ("content-length 4 for none", [*POST, ("content-length", "4")], [], None),
    ("two content-lengths", [*POST, ("content-length", "4"), ("content-length", "5")],
     [b"body"], None),
    ("a body behind the length", [*POST, ("content-length", "4")],
     [b"body", b"GET /stolen HTTP/1.1\r\nhost: a\r\n\r\n"], None),
    ("path twice", [*GET, (":path", "/stolen")], [], None),
    ("path behind a field", [*GET[:2], ("x", "y"), *GET[2:]], [], None),
    ("method twice", [GET[0], *POST], [], None),
    ("unknown pseudo field", [*GET, (":stolen", "1")], [], None),
    ("status in a request", [*GET, (":status", "200")], [], None),
    ("host differs", [*GET, ("host", "b")], [], None),
    ("host twice", [*GET[:3], ("host", "a"), ("host", "b")], [], None),
    ("pseudo field in trailers", POST, [b"body"], [(":path", "/stolen")]),
    ("line end in trailers", POST, [b"body"], [("x", "a\r\n\r\nGET /stolen HTTP/1.1\r\n")]),
    ("framing in trailers", POST, [b"body"], [("content-length", "100")]),
    ("coding in trailers", POST, [b"body"], [("transfer-encoding", "chunked")]),
]


class Smuggling(ProcessTest):
    @classmethod
    def setUpClass(cls):
        plans = {"": Message(status=200, body=b"seen")}
        cls.backends = {name: Backend(name == "h2", plans) for name in ("h1", "h2")}
        cls.gateways = {}
        for name, backend in cls.backends.items():
            cls.addClassCleanup(backend.end)
            cls.gateways[name] = Weir(config=f"""
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{backend.port}"]
protocol = "http{name[1]}"
[[route]]
upstream = "app"
""")
            cls.addClassCleanup(cls.gateways[name].end)

    def each(self, vectors, check):
        good = {name: 0 for name in self.backends}
        for upstream, backend in self.backends.items():
            for vector in vectors:
                with self.subTest(upstream=upstream, vector=vector[0]):
                    backend.journal.clear()
                    check(upstream, backend, *vector[1:])
                    self.assertEqual(backend.faults, [])
                    good[upstream] += 1
                backend.faults.clear()
            self.assertEqual(self.gateways[upstream].balance(), 0)
        print(f"\n{self.id().rsplit('.', 1)[-1]}: " +
              ", ".join(f"to {name} {count} of {len(vectors)}" for name, count in good.items()))

    # ---- from HTTP/1.1 ----

    def test_what_the_corpus_holds(self):
        vectors = load()
        self.assertGreater(len(vectors), 100)
        self.each(vectors, self.check_http1)

    def check_http1(self, upstream, backend, sent, wanted):
        expected = requests_of(wanted)
        refused = [line.split(" ")[1] for line in wanted if line.startswith("error")]
        if sent.startswith(b"PRI * HTTP/2.0"):
            refused = []  # the beginning of HTTP/2, which this gateway speaks
        gateway = self.gateways[upstream]
        statuses = self.statuses(gateway.port, bytes(sent), len(expected) + len(refused),
                                 bool(refused))
        wait_until(lambda: gateway.stats()["requests"]["active"] == 0)
        last = wanted[-1]
        if last.startswith("tunnel"):  # answered with a usual response, or refused
            method, authority, path = (last.split(" ") + ["/"])[1:4]
            self.assertIn(seen_by(backend), [[], [(method, authority, path, b"")]])
            return
        self.assertEqual(seen_by(backend), expected)
        if last != "waiting":
            self.assertEqual(statuses[:len(expected)], ["200"] * len(expected))
            # What is not HTTP at all is closed without an answer.
            self.assertIn(statuses[len(expected):],
                          [refused, []] if last.endswith("bad_version") else [refused])

    @staticmethod
    def statuses(port, sent, count, until_closed):
        """Of all final responses: of `count`, or all until the gateway closes. With none to come,
        what comes soon."""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
            got, found = b"", []
            wire.sendall(sent)
            wire.settimeout(10 if count else 0.3)
            try:
                while until_closed or len(found) < max(count, 1):
                    more = wire.recv(65536)
                    if not more:
                        break
                    got += more
                    found = re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", got)
            except (TimeoutError, ConnectionResetError):
                pass
            return [status.decode() for status in found]

    # ---- from HTTP/2 ----

    def test_what_becomes_dangerous_behind_http2(self):
        self.each(VECTORS, self.check_http2)

    def check_http2(self, upstream, backend, fields, pieces, trailers):
        """Nothing complete arrives; the gateway says so on the stream or ends the connection."""
        gateway = self.gateways[upstream]
        peer = Peer(gateway.port)
        try:
            encoder = hpack.Encoder()
            block = encoder.encode([(name.encode("latin-1"), value.encode("latin-1"))
                                    for name, value in fields])
            last = not pieces and trailers is None
            peer.send(frame(HEADERS, END_HEADERS | (END_STREAM if last else 0), 1, block))
            for index, piece in enumerate(pieces):
                end = index + 1 == len(pieces) and trailers is None
                peer.send(frame(DATA, END_STREAM if end else 0, 1, piece))
            if trailers is not None:
                peer.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, encoder.encode(trailers)))
            self.assertIn(self.verdict(peer), ("reset", "goaway", "4xx", "closed"))
        finally:
            peer.end()
        wait_until(lambda: gateway.stats()["requests"]["active"] == 0)
        self.assertEqual(seen_by(backend), [])

    @staticmethod
    def verdict(peer):
        while (one := peer.next()) is not None:
            if one[0] == RST:
                return "reset"
            if one[0] == GOAWAY:
                return "goaway"
            if one[0] == HEADERS and one[2] == 1:
                status = dict(peer.decoder.decode(one[3]))[":status"]
                return "4xx" if status.startswith("4") else status
        return "closed"


if __name__ == "__main__":
    unittest.main(verbosity=2)
