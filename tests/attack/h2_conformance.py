#!/usr/bin/python3
"""The rules of RFC 9113 and RFC 7541 on the wire, as an outside judge would check them: each case
is what a client sends on a fresh connection and what it must see. The frames are hand-made.

`Rules` holds the server to the 147 cases by which HTTP/2 servers are compared, one test per case,
named by suite, section and number; the other classes go beside and beyond them. Three servers can
be judged: examples/hello_server in cleartext; with `--through WEIR` the gateway in front of it, by
TLS; with `--through WEIR --cleartext` the same by prior knowledge."""

import struct
import sys

import attack
import h2_judge
import h2_rules
import h2_rules_generic
import h2_wire as wire
from h2_wire import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING,
                     PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Client, frame,
                     indexed, integer, literal, remembered, reset, settings, text, window_update)

PROTOCOL, FLOW, CLOSED, SIZE, REFUSED, COMPRESSION = 1, 3, 5, 6, 7, 9
WHOLE = END_HEADERS | END_STREAM
PADDED, WITH_PRIORITY = 0x8, 0x20


class Conformance(attack.AttackTest):
    """By prior knowledge on the example server, or by TLS through the gateway (`--through`).
    `served`, `stream_error` and `connection_error` say what must follow."""

    @classmethod
    def setUpClass(cls):
        origin = cls.origin()
        cls.server = attack.Gateway(origin, tls=attack.TLS) if attack.WEIR else origin

    @staticmethod
    def origin():
        return attack.Server("--max-connections", 256)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, code

    def client(self, **first):
        c = Client(self.server, first).settle()
        self.addCleanup(c.s.close)
        return c

    def served(self, data, c=None, stream=1, status=200):
        c = c or self.client()
        c.send(data(c) if callable(data) else data)
        self.assertEqual(c.response(stream)[0], status)
        self.assertTrue(any(f.stream_id == stream and "END_STREAM" in f.flags for f in c.frames),
                        "the answer has no end")
        self.assertIsNone(c.goaway())
        return c

    def connection_error(self, data, *codes, c=None):
        c = c or self.client()
        c.send(data(c) if callable(data) else data)
        got = c.ended()
        if got is not None:
            self.assertIn(got, codes)
        return c

    def stream_error(self, data, *codes, c=None, stream=1):
        """The stream is reset, or the connection ended, with one of the codes."""
        c = c or self.client()
        c.send(data(c) if callable(data) else data)
        def seen():
            return c.goaway() is not None or c.count(RST_STREAM, stream_id=stream) > 0
        c.read_until(seen, 3)
        got = [f.error_code for f in c.frames
               if f.type == GOAWAY or (f.type == RST_STREAM and f.stream_id == stream)]
        self.assertTrue(got or c.closed, f"nothing happened: {c.frames[-3:]}")
        if got:
            self.assertIn(got[0], codes)
        return c

    def each(self, judge, cases, *codes):
        for name, data in cases.items():
            with self.subTest(name):
                judge(data, *codes)


def get(c, flags=WHOLE, stream=1, front=b"", back=b"", path="/"):
    return frame(HEADERS, flags, stream, front + c.block(path) + back)


def post(c, stream=1, path="/echo", extra=()):
    return frame(HEADERS, END_HEADERS, stream, c.block(path, "POST", extra))


def dependency(on, weight=15, exclusive=False):
    return struct.pack(">IB", on | (exclusive << 31), weight)


class Frames(Conformance):
    def test_prefaces(self):
        c = Client(self.server, greet=False)
        c.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX" + settings())
        c.ended()
        c.s.close()
        c = Client(self.server, greet=False)
        c.send(wire.PREFACE + frame(PING, 0, 0, b"12345678"))  # SETTINGS must come first
        c.ended()
        c.s.close()

    def test_what_must_be_ignored(self):
        for name, data, stream in (
                ("a frame of unknown type", lambda c: frame(0xff, 0, 0, b"what") + get(c), 1),
                ("undefined flags", lambda c: frame(PING, 0x16, 0, b"12345678") + get(c), 1),
                ("the reserved bit", lambda c: frame(PING, 0, 1 << 31, b"12345678") + get(c), 1),
                ("an unknown setting",
                 lambda c: frame(SETTINGS, 0, 0, struct.pack(">HI", 255, 1)) + get(c), 1),
                ("a PING that is an answer",
                 lambda c: frame(PING, ACK, 0, b"12345678") + get(c), 1),
                ("an unknown code in RST_STREAM",
                 lambda c: get(c, path="/slow/50") + reset(1, 0xff) + get(c, stream=3), 3)):
            with self.subTest(name):
                self.served(data, stream=stream)

    def test_frame_sizes(self):
        self.served(lambda c: post(c) + frame(DATA, END_STREAM, 1, b"x" * 16384))
        self.stream_error(lambda c: post(c) + frame(DATA, END_STREAM, 1, b"x" * 16385), SIZE)
        self.connection_error(
            lambda c: get(c, back=literal("x-big", "y" * 16400)), SIZE)

    def test_frames_in_the_middle_of_a_header_block(self):
        start = lambda c: get(c, END_STREAM)
        self.each(self.connection_error, {
            "PRIORITY": lambda c: start(c) + frame(PRIORITY, 0, 1, dependency(0)),
            "another stream's HEADERS": lambda c: start(c) + get(c, stream=3),
            "an extension": lambda c: start(c) + frame(0xff, 0, 0, b"x"),
            "DATA": lambda c: start(c) + frame(DATA, END_STREAM, 1, b"x"),
        }, PROTOCOL)

    def test_lengths(self):
        self.each(self.connection_error, {
            "RST_STREAM": lambda c: get(c, path="/slow/100") + frame(RST_STREAM, 0, 1, b"123"),
            "SETTINGS": frame(SETTINGS, 0, 0, b"123"),
            "SETTINGS ACK": frame(SETTINGS, ACK, 0, b"123456"),
            "PING": frame(PING, 0, 0, b"123456"),
            "WINDOW_UPDATE": frame(WINDOW_UPDATE, 0, 0, b"123"),
        }, SIZE)
        self.stream_error(lambda c: get(c, path="/slow/100") + frame(PRIORITY, 0, 1, b"1234"), SIZE)

    def test_stream_zero_and_others(self):
        self.each(self.connection_error, {
            "DATA": frame(DATA, END_STREAM, 0, b"x"),
            "HEADERS": lambda c: get(c, stream=0),
            "PRIORITY": frame(PRIORITY, 0, 0, dependency(0)),
            "RST_STREAM": reset(0),
            "CONTINUATION": lambda c: get(c, END_STREAM) + frame(CONTINUATION, END_HEADERS, 0, b""),
            "SETTINGS": frame(SETTINGS, 0, 1, b""),
            "PING": frame(PING, 0, 1, b"12345678"),
            "GOAWAY": frame(GOAWAY, 0, 1, struct.pack(">II", 0, 0)),
            "PUSH_PROMISE": lambda c: get(c, path="/slow/100") +
                frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + c.block()),
        }, PROTOCOL)

    def test_padding(self):
        self.served(lambda c: post(c) + frame(DATA, END_STREAM | PADDED, 1, b"\x05hello\0\0\0\0\0"))
        self.served(lambda c: frame(HEADERS, WHOLE | PADDED, 1, b"\x03" + c.block() + b"\0\0\0"))
        self.connection_error(lambda c: post(c) + frame(DATA, END_STREAM | PADDED, 1, b"\x06hello"),
                              PROTOCOL)
        self.connection_error(lambda c: frame(HEADERS, WHOLE | PADDED, 1, b"\xff" + c.block()),
                              PROTOCOL)


class Streams(Conformance):
    def test_idle_streams(self):
        self.each(self.connection_error, {
            "DATA": frame(DATA, END_STREAM, 1, b"x"),
            "RST_STREAM": reset(1),
            "WINDOW_UPDATE": window_update(1, 100),
            "CONTINUATION": lambda c: frame(CONTINUATION, END_HEADERS, 1, c.block()),
        }, PROTOCOL)
        self.served(lambda c: frame(PRIORITY, 0, 5, dependency(0)) + get(c))

    def test_half_closed_streams(self):
        slow = lambda c: get(c, path="/slow/200")
        self.each(self.stream_error, {
            "DATA": lambda c: slow(c) + frame(DATA, END_STREAM, 1, b"x"),
            "HEADERS": lambda c: slow(c) + get(c),
        }, CLOSED)
        self.stream_error(lambda c: slow(c) + frame(CONTINUATION, END_HEADERS, 1, c.block()),
                          CLOSED, PROTOCOL)
        self.served(lambda c: slow(c) + window_update(1, 10) + frame(PRIORITY, 0, 1, dependency(0)))

    def test_streams_that_were_reset(self):
        gone = lambda c: post(c) + reset(1)
        self.each(self.stream_error, {
            "DATA": lambda c: gone(c) + frame(DATA, END_STREAM, 1, b"x"),
            "HEADERS": lambda c: gone(c) + get(c),
        }, CLOSED)
        self.stream_error(lambda c: gone(c) + frame(CONTINUATION, END_HEADERS, 1, c.block()),
                          CLOSED, PROTOCOL)

    def test_streams_that_are_over(self):
        for name, data, codes in (
                ("DATA", lambda c: frame(DATA, END_STREAM, 1, b"x"), (CLOSED,)),
                ("HEADERS", lambda c: get(c), (CLOSED, PROTOCOL)),
                ("CONTINUATION", lambda c: frame(CONTINUATION, END_HEADERS, 1, c.block()),
                 (CLOSED, PROTOCOL))):
            with self.subTest(name):
                c = self.served(get)
                self.stream_error(data, *codes, c=c)
        c = self.served(get)
        self.served(lambda c: frame(PRIORITY, 0, 1, dependency(0)) + get(c, stream=3), c=c,
                    stream=3)

    def test_identifiers(self):
        self.connection_error(lambda c: get(c, stream=2), PROTOCOL)
        self.connection_error(lambda c: get(c, stream=5) + get(c, stream=3), PROTOCOL, CLOSED)

    def test_concurrency(self):
        def many(c):
            return b"".join(get(c, path="/slow/300", stream=1 + 2 * i) for i in range(101))
        self.stream_error(many, PROTOCOL, REFUSED, stream=201)

    def test_dependencies(self):
        self.stream_error(lambda c: frame(HEADERS, WHOLE | WITH_PRIORITY, 1,
                                          dependency(1) + c.block()), PROTOCOL)
        self.stream_error(lambda c: get(c, path="/slow/100") +
                          frame(PRIORITY, 0, 1, dependency(1)), PROTOCOL)
        for given in (dependency(0, 0), dependency(0, 255), dependency(3), dependency(0, 9, True)):
            self.served(lambda c: frame(HEADERS, WHOLE | WITH_PRIORITY, 1, given + c.block()))

    def test_continuations(self):
        self.served(lambda c: get(c, END_STREAM) + frame(CONTINUATION, 0, 1, literal("a", "b")) +
                    frame(CONTINUATION, END_HEADERS, 1, literal("c", "d")))
        self.connection_error(lambda c: get(c, path="/slow/100") +
                              frame(CONTINUATION, END_HEADERS, 1, literal("a", "b")), PROTOCOL)
        self.connection_error(lambda c: post(c) + frame(DATA, 0, 1, b"x") +
                              frame(CONTINUATION, END_HEADERS, 1, literal("a", "b")), PROTOCOL)


class Settings(Conformance):
    def test_values(self):
        value = lambda ident, v: frame(SETTINGS, 0, 0, struct.pack(">HI", ident, v))
        self.each(self.connection_error, {"push": value(2, 2), "frame low": value(5, 16383),
                                          "frame high": value(5, 1 << 24)}, PROTOCOL)
        self.connection_error(value(4, 1 << 31), FLOW)

    def test_they_are_acknowledged(self):
        c = self.client()
        before = c.count(SETTINGS)
        c.send(settings(window=100) + settings(window=200))
        self.assertTrue(c.read_until(lambda: c.count(SETTINGS) >= before + 2))

    def test_the_last_of_two_values_holds(self):
        c = self.client()
        c.send(frame(SETTINGS, 0, 0, struct.pack(">HIHI", 4, 100, 4, 1)) + get(c))
        c.read_until(lambda: c.count(DATA) > 0)
        self.assertEqual([len(f.data) for f in c.frames if f.type == DATA], [1])

    def test_pings_are_answered_with_their_bytes(self):
        c = self.client()
        c.send(frame(PING, 0, 0, b"abcdefgh"))
        self.assertTrue(c.read_until(lambda: c.count(PING, opaque_data=b"abcdefgh") == 1))

    def test_a_goaway_is_no_reason_to_drop_what_was_asked(self):
        c = self.client()
        c.send(get(c, path="/slow/100") + frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0xff)))
        self.assertEqual(c.response(1)[0], 200)


class Windows(Conformance):
    def test_one_byte_of_window_brings_one_byte(self):
        c = self.client(window=1)
        c.send(get(c))
        c.read_until(lambda: c.count(DATA) > 0)
        self.assertEqual([len(f.data) for f in c.frames if f.type == DATA], [1])

    def test_a_window_that_opens_later_is_used(self):
        c = self.client(window=0)
        c.send(get(c))
        c.read_until(lambda: c.count(HEADERS) > 0)
        c.send(settings(window=1))
        self.assertTrue(c.read_until(lambda: c.count(DATA) > 0))

    def test_a_window_may_become_negative(self):
        c = self.client(window=3)
        c.send(get(c))
        c.read_until(lambda: c.count(DATA) > 0)
        c.send(settings(window=2) + window_update(1, 2))
        self.assertTrue(c.read_until(lambda: c.count(DATA) > 1))
        self.assertEqual([len(f.data) for f in c.frames if f.type == DATA], [3, 1])

    def test_bad_increments(self):
        self.connection_error(window_update(0, 0), PROTOCOL)
        self.stream_error(lambda c: get(c, path="/slow/100") + window_update(1, 0), PROTOCOL)
        self.connection_error(window_update(0, 0x7fffffff) * 2, FLOW)
        self.stream_error(lambda c: get(c, path="/slow/100") + window_update(1, 0x7fffffff) * 2,
                          FLOW)


class Messages(Conformance):
    def bad(self, name, data):
        with self.subTest(name):
            self.stream_error(data, PROTOCOL)

    def test_exchanges(self):
        self.served(get)
        self.served(lambda c: frame(HEADERS, WHOLE, 1, c.block(method="HEAD")))
        self.served(lambda c: post(c) + frame(DATA, 0, 1, b"a") + frame(DATA, END_STREAM, 1, b"b"))
        self.served(lambda c: post(c) + frame(DATA, 0, 1, b"a") +
                    frame(HEADERS, WHOLE, 1, literal("x-trailer", "t")))

    def test_second_heads(self):
        self.bad("without END_STREAM", lambda c: post(c) + frame(HEADERS, END_HEADERS, 1,
                                                                 literal("x", "y")))
        self.bad("pseudo in trailers", lambda c: post(c) + frame(HEADERS, WHOLE, 1,
                                                                 literal(":method", "GET")))

    def test_fields(self):
        for name, extra in {
                "upper case": ("X-Test", "a"), "unknown pseudo": (":test", "a"),
                "a response's pseudo": (":status", "200"), "connection": ("connection", "close"),
                "te": ("te", "trailers, deflate"), "two methods": (":method", "GET"),
                "two schemes": (":scheme", "http"), "two paths": (":path", "/")}.items():
            self.bad(name, lambda c, extra=extra: get(c, back=literal(*extra)))
        self.bad("pseudo after others", lambda c: get(c, front=literal("x", "y")))
        self.bad("empty path", lambda c: get(c, path=""))
        for missing in (":method", ":scheme", ":path"):
            self.bad(missing, lambda c, missing=missing: frame(
                HEADERS, WHOLE, 1, c.block(leave_out=(missing,))))
        self.served(lambda c: get(c, back=literal("te", "trailers")))

    def test_content_length(self):
        one = lambda c: post(c, extra=[("content-length", "1")])
        self.bad("one frame", lambda c: one(c) + frame(DATA, END_STREAM, 1, b"test"))
        self.bad("two frames", lambda c: one(c) + frame(DATA, 0, 1, b"test") +
                 frame(DATA, END_STREAM, 1, b"test"))


class Hpack(Conformance):
    def test_what_does_not_decode(self):
        broken = {
            "an index beyond the tables": indexed(70),
            "a name index beyond the tables": b"\x7f\x01" + text("x"),
            "a table size at the end of a block": b"\x20",
            "huffman padding of eight bits": b"\x00" + text("x") + b"\x82\x07\xff",
            "huffman padding of zeros": b"\x00" + text("x") + b"\x81\x00",
            "huffman with EOS": b"\x00" + text("x") + b"\x87\xff\xff\xff\xff\xff\xff\xff",
            "index zero": b"\x80",
        }
        for name, data in broken.items():
            with self.subTest(name):
                self.connection_error(lambda c, data=data: get(c, back=data), COMPRESSION)
        self.connection_error(lambda c: get(c, front=integer(4097, 5, 0x20)), COMPRESSION)

    def test_every_way_to_write_a_field(self):
        huffman = b"\x40" + text("x-h") + b"\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"
        for front, back in ((integer(0, 5, 0x20), b""),
                            (integer(128, 5, 0x20) + integer(4096, 5, 0x20), b""),
                            (b"", remembered("x", "y") + indexed(62)),
                            (b"", b"\x10" + text("never") + text("kept")),
                            (b"", b"\x0f\x2b" + text("agent")),  # user-agent by its index
                            (b"", huffman)):
            self.served(lambda c: get(c, front=front, back=back))


class Rules(Conformance):
    """Filled from the tables below."""

    def test_there_are_as_many_as_there_must_be(self):
        names = [rule.name for rule in RULES]
        self.assertEqual(len(set(names)), len(names))
        count = {suite: sum(name.startswith(suite + "/") for name in names)
                 for suite in ("http2", "generic", "hpack")}
        self.assertEqual(count, {"http2": 95, "generic": 44, "hpack": 8})

    def hold(self, rule):
        for way in h2_judge.WAYS:
            with self.subTest(rule.says, way=way):
                with h2_judge.Peer(self.server, way) as p:
                    if rule.greets:
                        p.greet()
                    frames = rule.sends(p)
                    if rule.then:
                        p.write(*frames)
                        rule.then(p)


class HastyRules(Rules):
    """The same, when the answer is there before the request is whole. Through the gateway only."""

    @staticmethod
    def origin():
        return attack.HastyOrigin()

    def test_a_rest_that_does_not_come_is_cut_off_without_blame(self):
        with h2_judge.Peer(self.server) as p:
            p.greet().write(h2_judge.post(p))
            h2_judge.stream_over(p)
            event = p.first(RST_STREAM)
            self.assertEqual((event.stream_id, event.error_code), (1, 0))
            p.write(h2_judge.ping())
            h2_judge.pinged()(p)


RULES = h2_rules.RULES + h2_rules_generic.RULES
for one in RULES:
    setattr(Rules, "test_" + one.name.replace("/", "_").replace(".", "_"),
            lambda self, one=one: self.hold(one))


if __name__ == "__main__":
    attack.raise_open_files()
    attack.main(sys.argv)
