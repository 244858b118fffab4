"""The rules of RFC 7540 (9113), section by section: 95 of the 147. See h2_judge for the words."""

import struct

from h2_judge import (CLOSED, COMPRESSION, FLOW, PADDED, PROTOCOL, REFUSED, SIZE, WITH_PRIORITY,
                      Peer, Rule, acknowledged, answered, connection_error, data, dependency, get,
                      has_data, headers, more, one_byte, ping, pinged, pinged_or_ended, post,
                      priority, stream_error, stream_over)
from h2_wire import (ACK, END_HEADERS, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, PUSH_PROMISE,
                     RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, reset, settings, window_update)

MOST = 0x7fffffff
UNKNOWN = frame(0x16, 0, 0, bytes(8))
GREETING = [PREFACE, settings(window=65535)]


def first_is_settings(p):
    event = p.next()
    assert not isinstance(event, str) and event.type == SETTINGS, event
    assert "ACK" not in event.flags, event


def body_length(p):
    """Of an answer to another connection: the rules of windows need a body."""
    other = Peer(p.server).greet()
    other.write(get(other))
    stream_over(other)
    other.s.close()
    return sum(len(f.data) for f in other.frames if f.type == 0)


def _block_broken_by(p, interloper):
    return [get(p, end=False, whole=False), interloper(p), more(p.long_fields(1))]


def over_then(send, verdict):
    """The stream is over before `send` goes out for it."""
    def run(p):
        p.write(get(p))
        stream_over(p)
        p.write(*send(p))
        verdict(p)
    return run


def one_too_many(p):
    allowed = p.announced[3]  # MAX_CONCURRENT_STREAMS: not announced would be unlimited
    block = p.encode(p.fields())
    return [settings(window=0)] + [headers(block, 1 + 2 * i) for i in range(allowed + 1)]


def closes(p):
    """It must not stay half open after GOAWAY."""
    p.assert_ends()


def says_goaway(p):
    assert p.first(GOAWAY).error_code == PROTOCOL
    p.assert_ends()


def goaway_for_flow(p):
    assert p.first(GOAWAY).error_code == FLOW


def reset_for_flow(p):
    event = p.first(RST_STREAM)
    assert (event.stream_id, event.error_code) == (1, FLOW), event


def window_rule(least, *steps):
    """Steps are lists of frames to send and verdicts to wait for."""
    def run(p):
        assert body_length(p) >= least, "the body is too short to judge"
        for step in steps:
            if isinstance(step, list):
                p.write(*(s(p) if callable(s) else s for s in step))
            else:
                step(p)
    return run


def padded_head(p):
    block = p.encode(p.fields())
    return [headers(bytes([len(block) + 2]) + block, flags=PADDED)]


def same_block_again(p):
    block = p.encode(p.fields())
    return [headers(block), more(block)]


def twice_the_same_head():
    kept = []

    def run(p):
        kept[:] = [get(p)]
        p.write(kept[0])
        stream_over(p)
        p.write(kept[0])
        connection_error(CLOSED)(p)
    return run


def with_field(*extra):
    return lambda p: [headers(p.encode(p.fields(extra=extra)))]


def without_field(*names):
    return lambda p: [headers(p.encode(p.fields(without=names)))]


PRE = [
    Rule("http2/3.5/1", "the first frame of the server is SETTINGS",
         lambda p: GREETING, first_is_settings, greets=False),
    Rule("http2/3.5/2", "a preface that is none ends the connection",
         lambda p: [b"INVALID CONNECTION PREFACE\r\n\r\n"], connection_error(PROTOCOL),
         greets=False),
]

FRAMES = [
    Rule("http2/4.1/1", "a frame of unknown type is ignored",
         lambda p: [UNKNOWN, ping()], pinged()),
    Rule("http2/4.1/2", "flags without meaning are ignored",
         lambda p: [ping(flags=0x16)], pinged()),
    Rule("http2/4.1/3", "the reserved bit is ignored",
         lambda p: [ping(flags=0x16, stream=1 << 31)], pinged()),
    Rule("http2/4.2/1", "a DATA frame of 2^14 bytes is taken",
         lambda p: [post(p), data(body=b"x" * 16384)], answered),
    Rule("http2/4.2/2", "a larger DATA frame than allowed",
         lambda p: [post(p), data(body=b"x" * 16385)], stream_error(SIZE)),
    Rule("http2/4.2/3", "a larger HEADERS frame than allowed",
         lambda p: [headers(p.encode(p.fields()) + p.long_fields(5))], connection_error(SIZE)),
    Rule("http2/4.3/1", "a header block that breaks off inside a field",
         lambda p: [headers(b"\x40")], connection_error(COMPRESSION)),
    Rule("http2/4.3/2", "PRIORITY inside a header block",
         lambda p: _block_broken_by(p, lambda _: priority()), connection_error(PROTOCOL)),
    Rule("http2/4.3/3", "HEADERS of another stream inside a header block",
         lambda p: _block_broken_by(p, lambda _: get(p, 3)), connection_error(PROTOCOL)),
]

STREAMS = [
    Rule("http2/5.1/1", "DATA on an idle stream",
         lambda p: [data()], connection_error(PROTOCOL)),
    Rule("http2/5.1/2", "RST_STREAM on an idle stream",
         lambda p: [reset(1)], connection_error(PROTOCOL)),
    Rule("http2/5.1/3", "WINDOW_UPDATE on an idle stream",
         lambda p: [window_update(1, 100)], connection_error(PROTOCOL)),
    Rule("http2/5.1/4", "CONTINUATION on an idle stream",
         lambda p: [more(p.encode(p.fields()))], connection_error(PROTOCOL)),
    Rule("http2/5.1/5", "DATA on a stream half closed by the client",
         lambda p: [get(p), data()], stream_error(CLOSED)),
    Rule("http2/5.1/6", "HEADERS on a stream half closed by the client",
         lambda p: [get(p), get(p)], stream_error(CLOSED)),
    Rule("http2/5.1/7", "CONTINUATION on a stream half closed by the client",
         same_block_again, stream_error(CLOSED, PROTOCOL)),
    Rule("http2/5.1/8", "DATA on a stream the client has reset",
         lambda p: [get(p, end=False), reset(1), data()], stream_error(CLOSED)),
    Rule("http2/5.1/9", "HEADERS on a stream the client has reset",
         lambda p: [get(p, end=False), reset(1), get(p)], stream_error(CLOSED)),
    Rule("http2/5.1/10", "CONTINUATION on a stream the client has reset",
         lambda p: [get(p, end=False), reset(1), more(p.long_fields(1))],
         stream_error(CLOSED, PROTOCOL)),
    Rule("http2/5.1/11", "DATA on a stream that is over",
         over_then(lambda p: [data()], stream_error(CLOSED))),
    Rule("http2/5.1/12", "HEADERS on a stream that is over", twice_the_same_head()),
    Rule("http2/5.1/13", "CONTINUATION on a stream that is over",
         over_then(lambda p: [more(p.long_fields(1))], connection_error(CLOSED, PROTOCOL))),
    Rule("http2/5.1.1/1", "a client's stream with an even number",
         lambda p: [get(p, 2)], connection_error(PROTOCOL)),
    Rule("http2/5.1.1/2", "a new stream with a lower number than the last",
         lambda p: [get(p, 5), get(p, 3)], connection_error(PROTOCOL)),
    Rule("http2/5.1.2/1", "one stream more than the server allows",
         one_too_many, stream_error(PROTOCOL, REFUSED)),
    Rule("http2/5.3.1/1", "HEADERS that depend on their own stream",
         lambda p: [headers(dependency(1) + p.encode(p.fields()), flags=WITH_PRIORITY)],
         stream_error(PROTOCOL)),
    Rule("http2/5.3.1/2", "PRIORITY that depends on its own stream",
         lambda p: [priority(1, on=1)], stream_error(PROTOCOL)),
    Rule("http2/5.4.1/1", "after an error the connection is closed",
         lambda p: [ping(stream=3)], closes),
    Rule("http2/5.4.1/2", "before it is closed there is a GOAWAY (strict)",
         lambda p: [ping(stream=3)], says_goaway),
    Rule("http2/5.5/1", "an extension frame is ignored",
         lambda p: [UNKNOWN, ping()], pinged()),
    Rule("http2/5.5/2", "an extension frame inside a header block",
         lambda p: [get(p, whole=False), UNKNOWN], connection_error(PROTOCOL)),
]

KINDS = [
    Rule("http2/6.1/1", "DATA on stream 0", lambda p: [data(0)], connection_error(PROTOCOL)),
    Rule("http2/6.1/2", "DATA on a stream that is not open",
         lambda p: [post(p, end=True), data()], stream_error(CLOSED)),
    Rule("http2/6.1/3", "DATA with more padding than payload",
         lambda p: [post(p, extra=[("content-length", "4")]),
                    frame(0, 0x9, 1, b"\x06Test")], connection_error(PROTOCOL)),
    Rule("http2/6.2/1", "HEADERS without END_HEADERS, then PRIORITY",
         lambda p: _block_broken_by(p, lambda _: priority()), connection_error(PROTOCOL)),
    Rule("http2/6.2/2", "HEADERS without END_HEADERS, then HEADERS of another stream",
         lambda p: _block_broken_by(p, lambda _: get(p, 3)), connection_error(PROTOCOL)),
    Rule("http2/6.2/3", "HEADERS on stream 0", lambda p: [get(p, 0)], connection_error(PROTOCOL)),
    Rule("http2/6.2/4", "HEADERS with more padding than payload",
         padded_head, stream_error(PROTOCOL)),
    Rule("http2/6.3/1", "PRIORITY on stream 0",
         lambda p: [priority(0)], connection_error(PROTOCOL)),
    Rule("http2/6.3/2", "PRIORITY of another length than 5",
         lambda p: [get(p), frame(PRIORITY, 0, 1, b"\x80\0\0\x01")], stream_error(SIZE)),
    Rule("http2/6.4/1", "RST_STREAM on stream 0",
         lambda p: [reset(0)], connection_error(PROTOCOL)),
    Rule("http2/6.4/2", "RST_STREAM on an idle stream",
         lambda p: [reset(1)], connection_error(PROTOCOL)),
    Rule("http2/6.4/3", "RST_STREAM of another length than 4",
         lambda p: [get(p), frame(RST_STREAM, 0, 1, bytes(3))], stream_error(SIZE)),
    Rule("http2/6.5/1", "an acknowledgement of SETTINGS with a payload",
         lambda p: [frame(SETTINGS, ACK, 0, b"\0")], connection_error(SIZE)),
    Rule("http2/6.5/2", "SETTINGS on a stream",
         lambda p: [frame(SETTINGS, 0, 1, struct.pack(">HI", 3, 100))],
         connection_error(PROTOCOL)),
    Rule("http2/6.5/3", "SETTINGS of a length that is no multiple of 6",
         lambda p: [frame(SETTINGS, 0, 0, b"\0\x03\0")], stream_error(PROTOCOL, SIZE)),
    Rule("http2/6.5.2/1", "ENABLE_PUSH that is neither 0 nor 1",
         lambda p: [settings(push=2)], connection_error(PROTOCOL)),
    Rule("http2/6.5.2/2", "INITIAL_WINDOW_SIZE above 2^31-1",
         lambda p: [settings(window=1 << 31)], connection_error(FLOW)),
    Rule("http2/6.5.2/3", "MAX_FRAME_SIZE below 2^14",
         lambda p: [settings(frame=16383)], connection_error(PROTOCOL)),
    Rule("http2/6.5.2/4", "MAX_FRAME_SIZE above 2^24-1",
         lambda p: [settings(frame=1 << 24)], connection_error(PROTOCOL)),
    Rule("http2/6.5.2/5", "a setting that is not known is ignored",
         lambda p: [frame(SETTINGS, 0, 0, struct.pack(">HI", 0xff, 1)), ping()], pinged()),
    Rule("http2/6.5.3/1", "of two values for one setting the last one holds",
         window_rule(1, [frame(SETTINGS, 0, 0, struct.pack(">HIHI", 4, 100, 4, 1))],
                     acknowledged, [get], one_byte)),
    Rule("http2/6.5.3/2", "SETTINGS are acknowledged",
         lambda p: [settings(push=0)], acknowledged),
    Rule("http2/6.7/1", "a PING comes back with its bytes",
         lambda p: [ping(b"h2spec\0\0")], pinged(b"h2spec\0\0")),
    Rule("http2/6.7/2", "a PING that is an answer is not answered",
         lambda p: [ping(b"invalid\0", flags=ACK), ping(b"h2spec\0\0")], pinged(b"h2spec\0\0")),
    Rule("http2/6.7/3", "PING on a stream", lambda p: [ping(stream=1)],
         connection_error(PROTOCOL)),
    Rule("http2/6.7/4", "PING of another length than 8",
         lambda p: [frame(PING, 0, 0, bytes(6))], connection_error(SIZE)),
    Rule("http2/6.8/1", "GOAWAY on a stream",
         lambda p: [frame(GOAWAY, 0, 1, bytes(8))], connection_error(PROTOCOL)),
    Rule("http2/6.9/1", "the connection's window opened by 0",
         lambda p: [window_update(0, 0)], connection_error(PROTOCOL)),
    Rule("http2/6.9/2", "a stream's window opened by 0",
         lambda p: [get(p, end=False), window_update(1, 0)], stream_error(PROTOCOL)),
    Rule("http2/6.9/3", "WINDOW_UPDATE of another length than 4",
         lambda p: [frame(WINDOW_UPDATE, 0, 0, b"\0\0\x01")], connection_error(SIZE)),
    Rule("http2/6.9.1/1", "a window of one byte lets one byte out",
         window_rule(1, [settings(window=1)], acknowledged, [get], one_byte)),
    Rule("http2/6.9.1/2", "the connection's window opened beyond 2^31-1",
         lambda p: [window_update(0, MOST), window_update(0, MOST)], goaway_for_flow),
    Rule("http2/6.9.1/3", "a stream's window opened beyond 2^31-1",
         lambda p: [get(p, end=False), window_update(1, MOST), window_update(1, MOST)],
         reset_for_flow),
    Rule("http2/6.9.2/1", "a new initial window changes streams that are open",
         window_rule(1, [settings(window=0)], acknowledged, [get, settings(window=1)], one_byte)),
    Rule("http2/6.9.2/2", "a window may become negative, and is remembered so",
         window_rule(5, [settings(window=3)], acknowledged, [get], has_data, [settings(window=2)],
                     acknowledged, [window_update(1, 2)], one_byte)),
    Rule("http2/6.9.2/3", "a new initial window above 2^31-1",
         lambda p: [settings(window=1 << 31)], connection_error(FLOW)),
    Rule("http2/6.10/1", "several CONTINUATION frames are taken",
         lambda p: [get(p, whole=False), more(p.long_fields(1), whole=False),
                    more(p.long_fields(1))], answered),
    Rule("http2/6.10/2", "CONTINUATION without END_HEADERS, then DATA",
         lambda p: [post(p, whole=False), more(p.long_fields(1), whole=False), data()],
         connection_error(PROTOCOL)),
    Rule("http2/6.10/3", "CONTINUATION on stream 0",
         lambda p: [get(p, whole=False), more(p.long_fields(1), 0)], connection_error(PROTOCOL)),
    Rule("http2/6.10/4", "CONTINUATION after HEADERS with END_HEADERS",
         lambda p: [get(p), more(p.long_fields(1))], connection_error(PROTOCOL)),
    Rule("http2/6.10/5", "CONTINUATION after CONTINUATION with END_HEADERS",
         lambda p: [get(p, whole=False), more(p.long_fields(1)), more(p.long_fields(1))],
         connection_error(PROTOCOL)),
    Rule("http2/6.10/6", "CONTINUATION after DATA",
         lambda p: [post(p, whole=False), data(), more(p.long_fields(1), whole=False),
                    more(p.long_fields(1), 0)], connection_error(PROTOCOL)),
]

MESSAGES = [
    Rule("http2/7/1", "GOAWAY with an unknown code means nothing special",
         lambda p: [frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0xff)), ping(b"h2spec\0\0")],
         pinged_or_ended(b"h2spec\0\0")),
    Rule("http2/7/2", "RST_STREAM with an unknown code means nothing special",
         lambda p: [post(p), reset(1, 0xff), ping()], pinged()),
    Rule("http2/8.1/1", "a second HEADERS frame that does not end the stream",
         lambda p: [post(p), data(end=False), headers(p.encode([("x-test", "ok")]), end=False)],
         stream_error(PROTOCOL)),
    Rule("http2/8.1.2/1", "a field name in upper case",
         lambda p: [headers(p.encode(p.fields()) + p.encode([("X-TEST", "ok")]))],
         stream_error(PROTOCOL)),
    Rule("http2/8.1.2.1/1", "an unknown pseudo field",
         with_field((":test", "ok")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.1/2", "a pseudo field of responses",
         with_field((":status", "200")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.1/3", "a pseudo field in trailers",
         lambda p: [post(p), data(end=False),
                    headers(p.encode([(":method", "POST")]), end=False)], stream_error(PROTOCOL)),
    Rule("http2/8.1.2.1/4", "a pseudo field after others",
         lambda p: [headers(p.encode([("x-test", "ok")] + p.fields()))], stream_error(PROTOCOL)),
    Rule("http2/8.1.2.2/1", "a field of the connection",
         with_field(("connection", "keep-alive")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.2/2", "TE with another value than trailers",
         with_field(("trailers", "test"), ("te", "trailers, deflate")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/1", "an empty :path",
         lambda p: [headers(p.encode(p.fields(path="")))], stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/2", "no :method",
         without_field(":method", ":scheme"), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/3", "no :scheme", without_field(":scheme"), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/4", "no :path", without_field(":path"), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/5", "two of :method",
         with_field((":method", "GET")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/6", "two of :scheme",
         lambda p: [headers(p.encode(p.fields(extra=[(":scheme", p.scheme)])))],
         stream_error(PROTOCOL)),
    Rule("http2/8.1.2.3/7", "two of :path", with_field((":path", "/")), stream_error(PROTOCOL)),
    Rule("http2/8.1.2.6/1", "content-length that is not the length of DATA",
         lambda p: [post(p, extra=[("content-length", "1")]), data()], stream_error(PROTOCOL)),
    Rule("http2/8.1.2.6/2", "content-length that is not the length of several DATA",
         lambda p: [post(p, extra=[("content-length", "1")]), data(end=False), data()],
         stream_error(PROTOCOL)),
    Rule("http2/8.2/1", "a client that pushes",
         lambda p: [frame(PUSH_PROMISE, END_HEADERS, 1,
                          struct.pack(">I", 3) + p.encode(p.fields()))],
         connection_error(PROTOCOL)),
]

RULES = PRE + FRAMES + STREAMS + KINDS + MESSAGES
