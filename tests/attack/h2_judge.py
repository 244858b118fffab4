"""An outside judge of one HTTP/2 connection. It greets, sends what a rule says, one write per
frame, and looks at what comes back in order of arrival, two seconds of silence being too long.

A connection that ends counts as ended only if it ends cleanly: by FIN, over TLS after close_notify.
A reset is a failure, and so is a GOAWAY with another code than the rule allows. What a rule sends
comes in four ways, and all must do: *apart*, one write after the other; *torn*, each frame's header
in a write of its own; *together*, in one write; *late*, each write only when the answers to those
before it have come."""

import dataclasses
import select
import ssl
import struct
import time
import typing

import h2_wire as wire
from h2_wire import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING,
                     PRIORITY, RST_STREAM, SETTINGS, Client, frame)

PROTOCOL, FLOW, CLOSED, SIZE, REFUSED, COMPRESSION = 1, 3, 5, 6, 7, 9
PADDED, WITH_PRIORITY = 0x8, 0x20
WAYS = ("apart", "torn", "together", "late")
FRAME_HEADER = 9
PATIENCE = 2.0
LONG = "x" * 4000  # of a field that is large, but not too large


@dataclasses.dataclass(frozen=True)
class Rule:
    """`name` is suite/section/number, as in the list of cases that HTTP/2 servers are held to."""
    name: str
    says: str
    sends: typing.Callable  # of the peer: a list of frames; or it does all by itself
    then: typing.Callable = None  # the verdict, of the peer
    greets: bool = True


class Peer(Client):
    def __init__(self, server, way="apart"):
        super().__init__(server, greet=False, ack=False)
        self.server, self.way, self.cursor, self.end = server, way, 0, None
        self.scheme = "https" if isinstance(self.s, ssl.SSLSocket) else "http"
        self.announced = {}

    # -- sending

    def greet(self):
        """Both SETTINGS are out and acknowledged when this returns."""
        self.send(wire.PREFACE)
        self.send(wire.settings(window=65535))
        ours = theirs = False
        while not (ours and theirs):
            event = self.next()
            assert not isinstance(event, str), f"no greeting: {event}"
            if event.type != SETTINGS:
                continue
            if "ACK" in event.flags:
                ours = True
            else:
                theirs = True
                self.announced.update(event.settings)
                self.send(frame(SETTINGS, ACK, 0))
        return self

    def write(self, *frames):
        if self.way == "together":
            self.send(b"".join(frames))
            return
        for one in frames:
            if self.way == "torn":  # a server may end the connection before the rest is there
                self.send(one[:FRAME_HEADER])
                one = one[FRAME_HEADER:]
            self.send(one)
            if self.way == "late":
                self.read_until(lambda: self.closed, 0.03)

    def fields(self, method="GET", path="/", extra=(), without=()):
        common = [(":method", method), (":scheme", self.scheme), (":path", path),
                  (":authority", self.authority)]
        return [f for f in common if f[0] not in without] + list(extra)

    def encode(self, fields):
        return self.encoder.encode(fields)

    def long_fields(self, count):
        return self.encode([(f"x-dummy{i}", LONG) for i in range(count)])

    # -- what came

    def read_some(self):
        try:
            piece = self.s.recv(1 << 16)
            how = f"an end inside a frame: {self.rest[:20]}" if self.rest else "a clean end"
        except (ConnectionResetError, BrokenPipeError, ssl.SSLError) as broken:
            piece, how = b"", f"a broken end: {broken}"
        if not piece:
            self.closed, self.end = True, self.end or how
            return
        self.take(piece)

    def next(self, seconds=PATIENCE):
        """The next frame; or a sentence, if there is none."""
        end = time.monotonic() + seconds
        while self.cursor == len(self.frames):
            left = end - time.monotonic()
            if self.end:
                return self.end
            if left <= 0:
                return "silence"
            if self.readable_now() or select.select([self.s], [], [], left)[0]:
                self.read_some()
        self.cursor += 1
        return self.frames[self.cursor - 1]

    def first(self, kind):
        """The next frame of that kind; a connection that ends before it is a failure."""
        while True:
            event = self.next()
            if isinstance(event, str) or event.type == kind:
                assert not isinstance(event, str), f"{event}, no frame of type {kind}"
                return event

    def assert_ends(self):
        while not isinstance(event := self.next(), str):
            pass
        assert event == "a clean end", f"{event} instead of a clean end"


# -- frames

def data(stream=1, end=True, body=b"test"):
    return frame(DATA, END_STREAM if end else 0, stream, body)


def headers(block, stream=1, end=True, whole=True, flags=0):
    flags |= (END_STREAM if end else 0) | (END_HEADERS if whole else 0)
    return frame(HEADERS, flags, stream, block)


def get(p, stream=1, end=True, whole=True):
    return headers(p.encode(p.fields()), stream, end, whole)


def post(p, end=False, whole=True, extra=()):
    return headers(p.encode(p.fields("POST", extra=extra)), 1, end, whole)


def more(block, stream=1, whole=True):
    return frame(CONTINUATION, END_HEADERS if whole else 0, stream, block)


def dependency(on, weight=255, exclusive=False):
    return struct.pack(">IB", on | (exclusive << 31), weight)


def priority(stream=1, on=0, weight=255, exclusive=False):
    return frame(PRIORITY, 0, stream, dependency(on, weight, exclusive))


def ping(opaque=bytes(8), flags=0, stream=0):
    return frame(PING, flags, stream, opaque)


# -- verdicts

def _error(p, kinds, codes):
    """GOAWAY (or RST_STREAM, for a stream) with one of the codes, or a clean end."""
    while True:
        event = p.next()
        if isinstance(event, str):
            assert event == "a clean end", f"{event} instead of an error"
            return
        if event.type == GOAWAY or event.type in kinds:
            wrong = event.error_code not in codes
            assert not (wrong and event.type == GOAWAY), f"GOAWAY with code {event.error_code}"
            if not wrong:
                break
    if event.type == GOAWAY:
        p.assert_ends()


def connection_error(*codes):
    return lambda p: _error(p, (), codes)


def stream_error(*codes):
    return lambda p: _error(p, (RST_STREAM,), codes)


def answered(p):
    """The first head that comes is of stream 1, and a good one."""
    event = p.first(HEADERS)
    assert event.stream_id == 1, event
    status = dict(p.decoder.decode(event.data)).get(":status")
    assert status == "200", status


def pinged(opaque=bytes(8)):
    def verdict(p):
        event = p.first(PING)
        assert "ACK" in event.flags and event.opaque_data == opaque, event
    return verdict


def pinged_or_ended(opaque):
    def verdict(p):
        while not isinstance(event := p.next(), str):
            if event.type == PING:
                assert "ACK" in event.flags and event.opaque_data == opaque, event
                return
        assert event == "a clean end", event
    return verdict


def acknowledged(p):
    event = p.first(SETTINGS)
    assert "ACK" in event.flags, event


def has_data(p):
    p.first(DATA)


def one_byte(p):
    event = p.first(DATA)
    assert event.stream_id == 1 and len(event.data) == 1, event


def stream_over(p):
    """The answer is whole: its last frame said so, or a reset without error did."""
    while True:
        event = p.next()
        assert not isinstance(event, str), f"{event}, no end of the stream"
        if event.type in (DATA, HEADERS) and "END_STREAM" in event.flags:
            return
        if event.type == RST_STREAM and event.error_code == 0:
            return
