"""What any HTTP/2 server must accept, 44 rules, and what no HPACK decoder may, 8. See h2_judge."""

import struct

from h2_judge import (COMPRESSION, PADDED, WITH_PRIORITY, Rule, acknowledged, answered,
                      connection_error, data, dependency, get, has_data, headers, more, ping,
                      pinged, pinged_or_ended, post, priority, stream_over)
from h2_rules import GREETING, first_is_settings
from h2_wire import (DATA, END_STREAM, GOAWAY, SETTINGS, frame, integer, reset, settings,
                     window_update)

AGENT = b"\x0auser-agent\x06h2spec"
AGENT_HUFFMAN = b"\x87\xb5\x05\xb1\x61\xcc\x5a\x93\x84\x9c\x48\xac\xa4"
TEST = b"\x06x-test\x06h2spec"
TEST_HUFFMAN = b"\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4"
INDEXED, PLAIN, NEVER = b"\x40", b"\x00", b"\x10"


def closed_by_window(*frames):
    """The server cannot finish: the stream's window is closed, then a byte wide."""
    return lambda p: [settings(window=0), get(p), *frames, window_update(1, 1)]


def over_then_priority(p):
    p.write(get(p))
    stream_over(p)
    p.write(priority(), ping())
    pinged()(p)


def split(*at):
    """A header block in pieces: HEADERS, then CONTINUATION."""
    def frames(p):
        block = p.encode(p.fields())
        cuts = [0, *at, len(block)]
        pieces = [block[a:b] for a, b in zip(cuts, cuts[1:])]
        return [headers(pieces[0], whole=False),
                *(more(piece, whole=False) for piece in pieces[1:-1]), more(pieces[-1])]
    return frames


def padded(p):
    return [headers(b"\x08" + p.encode(p.fields()) + bytes(8), flags=PADDED)]


def prioritised(p):
    return [headers(dependency(0) + p.encode(p.fields()), flags=WITH_PRIORITY)]


def behind(representation):
    return lambda p: [headers(p.encode(p.fields()) + representation)]


def small_table(p):
    p.encoder.header_table_size = 128  # the encoder says so at the front of the next block
    return [get(p)]


def accepts(name, says, sends):
    return Rule(name, says, sends, answered)


def breaks(name, says, representation, front=False):
    def sends(p):
        block = p.encode(p.fields())
        return [headers(representation + block if front else block + representation)]
    return Rule(name, says, sends, connection_error(COMPRESSION))


def six_settings():
    values = ((1, 4096), (2, 1), (3, 100), (4, 65535), (5, 16384), (6, 100))
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *v) for v in values))


GENERIC = [
    Rule("generic/1/1", "the client's preface is accepted",
         lambda p: GREETING, first_is_settings, greets=False),
    Rule("generic/2/1", "PRIORITY on an idle stream",
         lambda p: [priority(), ping()], pinged()),
    Rule("generic/2/2", "WINDOW_UPDATE on a half-closed stream", closed_by_window(), has_data),
    Rule("generic/2/3", "PRIORITY on a half-closed stream",
         closed_by_window(priority()), has_data),
    Rule("generic/2/4", "RST_STREAM on a half-closed stream",
         lambda p: [get(p), reset(1), ping()], pinged()),
    Rule("generic/2/5", "PRIORITY on a stream that is over", over_then_priority),
    accepts("generic/3.1/1", "DATA", lambda p: [post(p), data()]),
    accepts("generic/3.1/2", "several DATA", lambda p: [post(p), data(end=False), data()]),
    accepts("generic/3.1/3", "DATA with padding",
            lambda p: [post(p), frame(DATA, END_STREAM | PADDED, 1, b"\x05test" + bytes(5))]),
    accepts("generic/3.2/1", "HEADERS", lambda p: [get(p)]),
    accepts("generic/3.2/2", "HEADERS with padding", padded),
    accepts("generic/3.2/3", "HEADERS with priority", prioritised),
    accepts("generic/3.3/1", "PRIORITY of weight 1", lambda p: [priority(weight=0), get(p)]),
    accepts("generic/3.3/2", "PRIORITY of weight 256", lambda p: [priority(), get(p)]),
    accepts("generic/3.3/3", "PRIORITY that depends on another stream",
            lambda p: [priority(3, on=1, weight=0), get(p)]),
    accepts("generic/3.3/4", "PRIORITY that is exclusive",
            lambda p: [priority(weight=0, exclusive=True), get(p)]),
    accepts("generic/3.3/5", "PRIORITY for an idle stream, then HEADERS of a lower one",
            lambda p: [priority(3), get(p)]),
    Rule("generic/3.4/1", "RST_STREAM",
         lambda p: [get(p, end=False), reset(1), ping()], pinged()),
    Rule("generic/3.5/1", "SETTINGS", lambda p: [six_settings()], acknowledged),
    Rule("generic/3.7/1", "PING", lambda p: [ping(b"h2spec\0\0")], pinged(b"h2spec\0\0")),
    Rule("generic/3.8/1", "GOAWAY",
         lambda p: [frame(GOAWAY, 0, 0, bytes(8) + b"h2spec"), ping(b"h2spec\0\0")],
         pinged_or_ended(b"h2spec\0\0")),
    Rule("generic/3.9/1", "WINDOW_UPDATE of the connection",
         lambda p: [window_update(0, 1), ping()], pinged()),
    accepts("generic/3.9/2", "WINDOW_UPDATE of a stream",
            lambda p: [get(p), window_update(1, 1)]),
    accepts("generic/3.10/1", "CONTINUATION", split(5)),
    accepts("generic/3.10/2", "several CONTINUATION", split(5, 10)),
    accepts("generic/4/1", "GET", lambda p: [get(p)]),
    accepts("generic/4/2", "HEAD", lambda p: [headers(p.encode(p.fields("HEAD")))]),
    accepts("generic/4/3", "POST", lambda p: [post(p), data()]),
    accepts("generic/4/4", "POST with trailers",
            lambda p: [post(p, extra=[("trailer", "x-test")]), data(end=False),
                       headers(p.encode([("x-test", "ok")]))]),
    accepts("generic/5/1", "an indexed field", behind(b"\xba")),
    accepts("generic/5/2", "a field to be indexed, known name", behind(INDEXED + AGENT_HUFFMAN)),
    accepts("generic/5/3", "the same without Huffman", behind(INDEXED + AGENT)),
    accepts("generic/5/4", "a field to be indexed, new name", behind(INDEXED + TEST)),
    accepts("generic/5/5", "the same with Huffman", behind(INDEXED + TEST_HUFFMAN)),
    accepts("generic/5/6", "a field not to be indexed, known name", behind(PLAIN + AGENT)),
    accepts("generic/5/7", "the same with Huffman", behind(PLAIN + AGENT_HUFFMAN)),
    accepts("generic/5/8", "a field not to be indexed, new name", behind(PLAIN + TEST)),
    accepts("generic/5/9", "the same with Huffman", behind(PLAIN + TEST_HUFFMAN)),
    accepts("generic/5/10", "a field never to be indexed, known name", behind(NEVER + AGENT)),
    accepts("generic/5/11", "the same with Huffman", behind(NEVER + AGENT_HUFFMAN)),
    accepts("generic/5/12", "a field never to be indexed, new name", behind(NEVER + TEST)),
    accepts("generic/5/13", "the same with Huffman", behind(NEVER + TEST_HUFFMAN)),
    accepts("generic/5/14", "a smaller dynamic table", small_table),
    accepts("generic/5/15", "two changes of the table at once",
            lambda p: [headers(integer(128, 5, 0x20) + integer(4096, 5, 0x20) +
                               p.encode(p.fields()))]),
]

HPACK = [
    breaks("hpack/2.3.3/1", "an index beyond both tables", b"\xc6"),
    breaks("hpack/2.3.3/2", "the index of a name beyond both tables", b"\x7f\x07\x00"),
    breaks("hpack/4.2/1", "a change of the table at the end of a block", b"\x21"),
    breaks("hpack/5.2/1", "Huffman padding longer than 7 bits",
           b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff"),
    breaks("hpack/5.2/2", "Huffman padding of zeros",
           b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90"),
    breaks("hpack/5.2/3", "Huffman with EOS",
           b"\x00\x85\xf2\xb2\x4a\x84\xff\x87\x49\x51\xff\xff\xff\xfa\x7f"),
    breaks("hpack/6.1/1", "index 0", b"\x80"),
    Rule("hpack/6.3/1", "a larger table than SETTINGS allow",
         lambda p: [headers(integer(p.announced.get(1, 4096) + 1, 5, 0x20) +
                            p.encode(p.fields()))], connection_error(COMPRESSION)),
]

RULES = GENERIC + HPACK
