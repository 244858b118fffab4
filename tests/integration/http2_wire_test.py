"""HTTP/2 in cleartext through the gateway, judged by python3-hyperframe and python3-hpack: the
rules that are easily lost between a codec that knows them and a server that must act on them."""

import socket
import struct
import unittest

import hpack
from hyperframe.frame import Frame

from end_to_end_test import PythonBackend
from processes import ProcessTest, Weir

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
PROTOCOL, FLOW, TIMEOUT, CLOSED, SIZE, REFUSED, CANCEL, COMPRESSION = 1, 3, 4, 5, 6, 7, 8, 9
INITIAL_WINDOW = 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream) + payload


def settings(*entries):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *entry) for entry in entries))


def window(stream, size):
    return frame(WINDOW, 0, stream, struct.pack(">I", size))


def priority(parent, weight=16):
    return struct.pack(">IB", parent, weight)


class Peer:
    """A client that sends what it is told and keeps what comes."""

    def __init__(self, port, *entries, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.input = b""
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.frames = []
        self.closed = False
        if greet:
            self.send(PREFACE + settings(*entries))
            self.until(lambda f: f[0] == SETTINGS and not f[1] & ACK)
            self.send(frame(SETTINGS, ACK))
            self.until(lambda f: f[0] == SETTINGS and f[1] & ACK)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def fields(self, *more, method="GET", path="/"):
        return [(":method", method), (":scheme", "http"), (":path", path),
                (":authority", "127.0.0.1"), *more]

    def block(self, *more, **options):
        return self.encoder.encode(self.fields(*more, **options))

    def ask(self, stream, *more, flags=END_STREAM | END_HEADERS, **options):
        self.send(frame(HEADERS, flags, stream, self.block(*more, **options)))

    def next(self):
        """(kind, flags, stream, payload), or None at the end."""
        while not self.closed:
            if len(self.input) >= 9:
                parsed, length = Frame.parse_frame_header(memoryview(self.input[:9]))
                if len(self.input) >= 9 + length:
                    one = (self.input[3], self.input[4], parsed.stream_id,
                           self.input[9:9 + length])
                    self.input = self.input[9 + length:]
                    self.frames.append(one)
                    return one
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                self.closed = True
            self.input += more
        return None

    def until(self, wanted):
        while True:
            one = self.next()
            if one is None or wanted(one):
                return one

    def error(self, stream=None):
        """("connection", code) or ("stream", code), whichever is said first; the end is
        ("connection", None)."""
        while True:
            one = self.next()
            if one is None:
                return ("connection", None)
            if one[0] == GOAWAY:
                code = struct.unpack(">I", one[3][4:8])[0]
                self.until(lambda _: False)
                return ("connection", code)
            if one[0] == RST and (stream is None or one[2] == stream):
                return ("stream", struct.unpack(">I", one[3])[0])

    def status(self, stream=1):
        """The status of the response, its body read to the end."""
        status = None
        while True:
            one = self.next()
            if one is None:
                raise AssertionError(f"closed: {self.frames}")
            if one[0] == GOAWAY or (one[0] == RST and one[2] == stream):
                raise AssertionError(f"refused: {one}")
            if one[0] == HEADERS:
                fields = dict(self.decoder.decode(one[3]))
                if one[2] == stream:
                    status = int(fields[":status"])
            if one[2] == stream and one[0] in (HEADERS, DATA) and one[1] & END_STREAM:
                return status

    def in_step(self):
        self.send(frame(PING, payload=b"in step?"))
        return self.until(lambda f: f[0] == PING and f[1] & ACK) is not None

    def end(self):
        self.socket.close()


POST = {"method": "POST"}
OPEN = END_HEADERS  # of a stream whose body follows

# What is sent after the greeting, and the codes of a connection error that it must bring. An end
# without GOAWAY counts too, as in RFC 9113 §5.4.1, but never a reset of one stream alone.
CONNECTION_ERRORS = {
    "DATA on stream 0": (lambda p: frame(DATA, 0, 0, b"x"), PROTOCOL),
    "DATA on an idle stream": (lambda p: frame(DATA, 0, 1, b"x"), PROTOCOL),
    "RST_STREAM on an idle stream": (lambda p: frame(RST, 0, 1, b"\0\0\0\x08"), PROTOCOL),
    "WINDOW_UPDATE on an idle stream": (lambda p: window(1, 100), PROTOCOL),
    "CONTINUATION on an idle stream":
        (lambda p: frame(CONTINUATION, END_HEADERS, 1, p.block()), PROTOCOL),
    "HEADERS on stream 0": (lambda p: frame(HEADERS, 5, 0, p.block()), PROTOCOL),
    "HEADERS on an even stream": (lambda p: frame(HEADERS, 5, 2, p.block()), PROTOCOL),
    "HEADERS with too much padding":
        (lambda p: frame(HEADERS, 5 | PADDED, 1, b"\xff" + p.block()), PROTOCOL),
    "DATA with too much padding":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(DATA, PADDED, 1, b"\x09abc"),
         PROTOCOL),
    "a broken header block":
        (lambda p: frame(HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), COMPRESSION),
    "a table size update at the end of a block":
        (lambda p: frame(HEADERS, 5, 1, p.block() + b"\x20"), COMPRESSION),
    "an index that is not in the table":
        (lambda p: frame(HEADERS, 5, 1, p.block() + b"\xff\x80\x01"), COMPRESSION),
    "PING between HEADERS and CONTINUATION":
        (lambda p: frame(HEADERS, END_STREAM, 1, p.block()) + frame(PING, payload=b"x" * 8),
         PROTOCOL),
    "CONTINUATION after END_HEADERS":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) +
         frame(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL),
    "PRIORITY on stream 0": (lambda p: frame(PRIORITY, 0, 0, priority(1)), PROTOCOL),
    "RST_STREAM on stream 0": (lambda p: frame(RST, 0, 0, b"\0\0\0\x08"), PROTOCOL),
    "RST_STREAM of a wrong length":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(RST, 0, 1, b"\0\0\x08"), SIZE),
    "SETTINGS with ACK and entries":
        (lambda p: frame(SETTINGS, ACK, 0, struct.pack(">HI", 3, 1)), SIZE),
    "SETTINGS on a stream": (lambda p: frame(SETTINGS, 0, 1, struct.pack(">HI", 3, 1)), PROTOCOL),
    "SETTINGS of a wrong length": (lambda p: frame(SETTINGS, 0, 0, b"\0\3\0"), SIZE),
    "SETTINGS_ENABLE_PUSH of 2": (lambda p: settings((2, 2)), PROTOCOL),
    "SETTINGS_INITIAL_WINDOW_SIZE too large": (lambda p: settings((4, 0x80000000)), FLOW),
    "SETTINGS_MAX_FRAME_SIZE too small": (lambda p: settings((5, 16383)), PROTOCOL),
    "SETTINGS_MAX_FRAME_SIZE too large": (lambda p: settings((5, 16777216)), PROTOCOL),
    "PING on a stream": (lambda p: frame(PING, 0, 1, b"x" * 8), PROTOCOL),
    "PING of a wrong length": (lambda p: frame(PING, 0, 0, b"x" * 6), SIZE),
    "GOAWAY on a stream": (lambda p: frame(GOAWAY, 0, 1, b"\0" * 8), PROTOCOL),
    "PUSH_PROMISE from a client":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) +
         frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + p.block()), PROTOCOL),
    "WINDOW_UPDATE by 0 for the connection": (lambda p: window(0, 0), PROTOCOL),
    "WINDOW_UPDATE of a wrong length": (lambda p: frame(WINDOW, 0, 0, b"\0\0\1"), SIZE),
    "WINDOW_UPDATE beyond the limit for the connection":
        (lambda p: window(0, 0x7fffffff) + window(0, 0x7fffffff), FLOW),
    "DATA after END_STREAM and RST_STREAM of the client":
        (lambda p: frame(HEADERS, 5, 1, p.block(path="/slow")) + frame(DATA, END_STREAM, 1, b"x"),
         CLOSED),
    "HEADERS after END_STREAM":
        (lambda p: frame(HEADERS, 5, 1, p.block()) + frame(HEADERS, 5, 1, p.block()), CLOSED),
    "a lower stream than one before":
        (lambda p: frame(HEADERS, 5, 5, p.block()) + frame(HEADERS, 5, 3, p.block()), PROTOCOL),
    "a frame longer than allowed":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(DATA, 1, 1, b"x" * 16385),
         SIZE),
}

# The same for a stream; a connection error is a valid answer to these too.
STREAM_ERRORS = {
    "DATA on a stream that the client reset":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(RST, 0, 1, b"\0\0\0\x08") +
         frame(DATA, END_STREAM, 1, b"x"), CLOSED),
    "WINDOW_UPDATE by 0 for a stream":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + window(1, 0), PROTOCOL),
    "WINDOW_UPDATE beyond the limit for a stream":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + window(1, 0x7fffffff) +
         window(1, 0x7fffffff), FLOW),
    "PRIORITY of a wrong length":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(PRIORITY, 0, 1, b"\0\0\0\1"),
         SIZE),
    "HEADERS that depend on their own stream":
        (lambda p: frame(HEADERS, 5 | HAS_PRIORITY, 1, priority(1) + p.block()), PROTOCOL),
    "PRIORITY that depends on its own stream":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(PRIORITY, 0, 1, priority(1)),
         PROTOCOL),
    "content-length larger than DATA":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(("content-length", "2"), **POST)) +
         frame(DATA, END_STREAM, 1, b"x"), PROTOCOL),
    "content-length smaller than DATA in two frames":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(("content-length", "1"), **POST)) +
         frame(DATA, 0, 1, b"x") + frame(DATA, END_STREAM, 1, b"x"), PROTOCOL),
    "trailers without END_STREAM":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(DATA, 0, 1, b"x") +
         frame(HEADERS, END_HEADERS, 1, p.encoder.encode([("x", "y")])), PROTOCOL),
    "trailers with a pseudo-header":
        (lambda p: frame(HEADERS, OPEN, 1, p.block(**POST)) + frame(DATA, 0, 1, b"x") +
         frame(HEADERS, 5, 1, p.encoder.encode([(":method", "POST")])), PROTOCOL),
}

# Field lists that may not reach a backend: what HTTP/2 forbids, and what would mean something else
# in HTTP/1.1.
GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]
FORBIDDEN = {
    "upper case": GET + [("X-Test", "ok")],
    "a pseudo-header that is unknown": GET + [(":test", "ok")],
    "a pseudo-header of responses": GET + [(":status", "200")],
    "a pseudo-header behind a field":
        [(":method", "GET"), (":scheme", "http"), ("x", "y"), (":path", "/")],
    "connection": GET + [("connection", "keep-alive")],
    "transfer-encoding": GET + [("transfer-encoding", "chunked")],
    "upgrade": GET + [("upgrade", "websocket")],
    "te that is not trailers": GET + [("te", "trailers, deflate")],
    "no method": GET[1:],
    "no scheme": GET[:1] + GET[2:],
    "no path": GET[:2] + GET[3:],
    "an empty path": GET[:2] + [(":path", "")] + GET[3:],
    "two methods": GET[:1] + GET,
    "two schemes": GET[1:2] + GET,
    "two paths": GET[2:3] + GET,
    "a path with a space": GET[:2] + [(":path", "/a b")] + GET[3:],
    "a path with a line end": GET[:2] + [(":path", "/ HTTP/1.1\r\nx: y")] + GET[3:],
    "a path without slash": GET[:2] + [(":path", "x")] + GET[3:],
    "a method with a space": [(":method", "GET /x")] + GET[1:],
    "a line end in a value": GET + [("x", "y\r\nz: 1")],
    "a lone line feed in a value": GET + [("x", "y\nz: 1")],
    "a zero byte in a value": GET + [("x", "y\0z")],
    "a colon in a name": GET + [("x:y", "z")],
    "a blank in a name": GET + [("x y", "z")],
    "a line end in a name": GET + [("x\r\ny", "z")],
    "an empty name": GET + [("", "z")],
    "two lengths": GET + [("content-length", "0"), ("content-length", "1")],
    "a length that is none": GET + [("content-length", "+1")],
    "a host that is another": GET + [("host", "b")],
    "an authority with a user": GET[:3] + [(":authority", "a@b")],
}


class Wire(ProcessTest):
    @classmethod
    def setUpClass(cls):
        cls.backend = PythonBackend()
        cls.weir = Weir("--to", f"127.0.0.1:{cls.backend.port}")

    @classmethod
    def tearDownClass(cls):
        cls.weir.end()
        cls.backend.end()

    def peer(self, *entries, **options):
        peer = Peer(self.weir.port, *entries, **options)
        self.addCleanup(peer.end)
        return peer

    def seen_by_backend(self):
        return self.weir.stats()["requests"]["received"]

    def test_connection_errors_end_in_goaway_and_the_end(self):
        for name, (bytes_of, code) in CONNECTION_ERRORS.items():
            with self.subTest(name):
                peer = self.peer()
                peer.send(bytes_of(peer))
                kind, said = peer.error()
                self.assertEqual(kind, "connection", name)
                self.assertIn(said, (code, None), name)
                self.assertTrue(peer.closed, name)

    def test_stream_errors_reset_the_stream(self):
        for name, (bytes_of, code) in STREAM_ERRORS.items():
            with self.subTest(name):
                peer = self.peer()
                peer.send(bytes_of(peer))
                kind, said = peer.error(1)
                self.assertIn(said, (code, None), name)
                if kind == "stream":
                    peer.ask(3)
                    self.assertEqual(peer.status(3), 200, "the connection lives on")

    def test_what_http1_would_misread_stays_outside(self):
        before = self.seen_by_backend()
        for name, fields in FORBIDDEN.items():
            with self.subTest(name):
                peer = self.peer()
                block = b"".join(b"\x00" + bytes([len(n)]) + n.encode() + bytes([len(v)]) +
                                 v.encode() for n, v in fields)
                peer.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, block))
                kind, said = peer.error(1)
                self.assertEqual((kind, said), ("stream", PROTOCOL), name)
                peer.ask(3)
                self.assertEqual(peer.status(3), 200, "the next request is not hurt")
        self.assertEqual(self.seen_by_backend() - before, len(FORBIDDEN))

    def test_an_invalid_preface_ends_the_connection(self):
        peer = self.peer(greet=False)
        peer.send(b"INVALID CONNECTION PREFACE\r\n\r\n")
        while True:
            if not peer.socket.recv(4096):
                break
        peer = self.peer(greet=False)
        peer.send(PREFACE + frame(PING, payload=b"x" * 8))  # SETTINGS must come first
        self.assertEqual(peer.error(), ("connection", PROTOCOL))

    def test_settings_are_acknowledged_in_order(self):
        peer = self.peer()
        peer.send(settings((4, 100)) + frame(PING, payload=b"in order"))
        kinds = [peer.next()[0] for _ in range(3)]
        self.assertEqual(kinds, [WINDOW, SETTINGS, PING], "first the connection's own window")

    def test_windows_are_obeyed_to_the_byte(self):
        peer = self.peer((INITIAL_WINDOW, 1))
        peer.ask(1)
        data = peer.until(lambda f: f[0] == DATA)
        self.assertEqual(len(data[3]), 1)
        self.assertTrue(peer.in_step())
        self.assertEqual([f for f in peer.frames if f[0] == DATA], [data])
        # Smaller by 1: the window is -1, and 2 more make one byte.
        peer.send(settings((INITIAL_WINDOW, 0)) + window(1, 2))
        data = peer.until(lambda f: f[0] == DATA)
        self.assertEqual(len(data[3]), 1)
        peer.send(settings((INITIAL_WINDOW, 1 << 20)))
        self.assertEqual(peer.until(lambda f: f[1] & END_STREAM and f[0] == DATA)[2], 1)

    def test_a_window_of_nothing_then_settings(self):
        peer = self.peer((INITIAL_WINDOW, 0))
        peer.ask(1)
        self.assertIsNotNone(peer.until(lambda f: f[0] == HEADERS))
        peer.send(settings((INITIAL_WINDOW, 1)))
        self.assertEqual(len(peer.until(lambda f: f[0] == DATA)[3]), 1)

    def test_frames_that_mean_nothing_are_ignored(self):
        peer = self.peer()
        peer.send(frame(22, 0, 0, b"unknown") + settings((99, 1)) +
                  frame(PRIORITY, 0, 1, priority(0, 255)) + frame(PING, 0xf6, 0, b"x" * 8))
        self.assertTrue(peer.in_step())
        peer.ask(1, flags=END_STREAM | END_HEADERS | 0x40)
        self.assertEqual(peer.status(), 200)

    def test_late_frames_for_a_stream_that_is_over_are_ignored(self):
        peer = self.peer()
        peer.ask(1)
        self.assertEqual(peer.status(), 200)
        peer.send(window(1, 100) + frame(PRIORITY, 0, 1, priority(0)) +
                  frame(RST, 0, 1, b"\0\0\0\x08"))
        peer.ask(3)
        self.assertEqual(peer.status(3), 200)

    def test_requests_of_all_kinds(self):
        peer = self.peer()
        peer.ask(1, method="HEAD")
        self.assertEqual(peer.status(1), 200)
        peer.ask(3, flags=OPEN, **POST)
        peer.send(frame(DATA, 0, 3, b"x" * 1000) +
                  frame(HEADERS, END_STREAM | END_HEADERS, 3, peer.encoder.encode([("t", "v")])))
        self.assertEqual(peer.status(3), 200)
        block = peer.block(("x", "y" * 100))
        peer.send(frame(HEADERS, END_STREAM, 5, block[:10]) +
                  frame(CONTINUATION, 0, 5, block[10:20]) +
                  frame(CONTINUATION, END_HEADERS, 5, block[20:]))
        self.assertEqual(peer.status(5), 200)
        padded = bytes([3]) + priority(0) + peer.block() + b"\0" * 3
        peer.send(frame(HEADERS, END_STREAM | END_HEADERS | PADDED | HAS_PRIORITY, 7, padded))
        self.assertEqual(peer.status(7), 200)
        peer.ask(9, flags=OPEN, **POST)
        peer.send(frame(DATA, END_STREAM | PADDED, 9, b"\x04body" + b"\0" * 4))
        self.assertEqual(peer.status(9), 200)

    def test_more_streams_than_allowed_are_refused(self):
        peer = self.peer((INITIAL_WINDOW, 0))  # so that none of them ends
        for stream in range(1, 2 * 101 + 1, 2):
            peer.ask(stream)
        self.assertEqual(peer.error(201), ("stream", REFUSED))


if __name__ == "__main__":
    unittest.main()
