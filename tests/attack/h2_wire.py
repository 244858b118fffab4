"""HTTP/2 spoken by hand: frames from hyperframe, header blocks from hpack, so that the judge of our
codec shares nothing with it. Sends what it is told, legal or not; reads only when asked to."""

import contextlib
import select
import ssl
import struct
import time

import hpack
from hyperframe.frame import Frame, SettingsFrame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED = 0, 1, 3, 5
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 6, 7, 8, 11

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE = 0, 1, 2, 3, 4, 5
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
END_STREAM = ACK = 0x1
END_HEADERS = 0x4


def frame(kind, flags, stream, payload=b""):
    """Any frame, well-formed or not."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    ids = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "list": 6}
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", ids[k], v) for k, v in values.items()))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def window_update(stream, by):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


class Client:
    """One connection. Header blocks never use the dynamic table unless a test asks for it, so that
    they can be repeated without the encoder's knowledge."""

    def __init__(self, server, first_settings=None, ack=True, receive_buffer=None, greet=True):
        self.s = server.connect(receive_buffer=receive_buffer)
        self.ack, self.rest, self.next_id = ack, b"", 1
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.frames, self.closed = [], False
        self.authority = f"127.0.0.1:{server.port}"
        if greet:
            # The connection's window is wide open: a test that wants it closed closes streams'.
            self.send(PREFACE + settings(**(first_settings or {})) + window_update(0, 1 << 30))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, data):
        """True unless the server has closed."""
        try:
            self.s.sendall(data)
            return True
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            self.closed = True
            return False

    # -- requests

    def block(self, path="/", method="GET", extra=(), leave_out=()):
        fields = [(":method", method), (":scheme", "http"), (":path", path),
                  (":authority", self.authority)]
        fields = [f for f in fields if f[0] not in leave_out] + list(extra)
        return b"".join(literal(name, value) for name, value in fields)

    def new_id(self):
        self.next_id += 2
        return self.next_id - 2

    def headers(self, path="/", method="GET", end=True, extra=(), stream=None, leave_out=()):
        """The bytes of a whole HEADERS frame and its stream."""
        stream = stream or self.new_id()
        flags = END_HEADERS | (END_STREAM if end else 0)
        return stream, frame(HEADERS, flags, stream, self.block(path, method, extra, leave_out))

    def request(self, path="/", method="GET", end=True, extra=()):
        stream, data = self.headers(path, method, end, extra)
        self.send(data)
        return stream

    def get(self, path="/", seconds=5.0):
        """Asks and waits: (status, body), or (None, code) when reset, (None, None) when closed."""
        return self.response(self.request(path), seconds)

    def response(self, stream, seconds=5.0):
        def over():
            return any(f.stream_id == stream and
                       ("END_STREAM" in f.flags or f.type == RST_STREAM) for f in self.frames)
        self.read_until(over, seconds)
        status, body = None, b""
        for f in [f for f in self.frames if f.stream_id == stream]:
            if f.type == HEADERS and status is None:
                found = dict(self.decoder.decode(f.data)).get(":status")
                status = int(found) if found and int(found) >= 200 else None
            elif f.type == DATA:
                body += f.data
            elif f.type == RST_STREAM and status is None:
                return None, f.error_code
        return status, body

    # -- reading

    def read_until(self, what, seconds=5.0):
        """Reads frames until `what()` holds, the server closes, or time is up: whether it held."""
        end = time.monotonic() + seconds
        while not what():
            left = end - time.monotonic()
            if left <= 0 or self.closed:
                return False
            if self.readable_now() or select.select([self.s], [], [], left)[0]:
                self.read_some()
        return True

    def readable_now(self):
        """TLS may hold bytes that the socket does not announce."""
        return isinstance(self.s, ssl.SSLSocket) and self.s.pending() > 0

    def read_some(self):
        try:
            piece = self.s.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            piece = b""
        if not piece:
            self.closed = True
            return
        self.take(piece)

    def take(self, piece):
        """Bytes from the server, as frames."""
        self.rest += piece
        while len(self.rest) >= 9:
            parsed, length = Frame.parse_frame_header(memoryview(self.rest[:9]))
            if len(self.rest) < 9 + length:
                return
            parsed.parse_body(memoryview(self.rest[9:9 + length]))
            self.rest = self.rest[9 + length:]
            self.frames.append(parsed)
            if self.ack and isinstance(parsed, SettingsFrame) and "ACK" not in parsed.flags:
                self.send(frame(SETTINGS, ACK, 0))

    def settle(self):
        """Both sides' settings are in force: what follows is not the start of a connection."""
        held = self.read_until(lambda: sum(f.type == SETTINGS for f in self.frames) >= 2)
        assert held, "no SETTINGS and ACK from the server"
        return self

    def flood(self, data, times=1, read=True, seconds=20.0):
        """Sends `data` so often, reading meanwhile or not. Returns when all is sent, or the server
        has closed, or nothing moves any more."""
        chunk = data * max(1, min(times, (1 << 16) // max(1, len(data))))
        left = len(data) * times
        end = time.monotonic() + seconds
        at = 0
        self.s.setblocking(False)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while left > 0 and not self.closed and time.monotonic() < end:
                can_read, can_write, _ = select.select([self.s] if read else [], [self.s], [], 1.0)
                if can_read:
                    self.read_some()
                    self.s.setblocking(False)
                elif not can_write and not read:
                    break
                if can_write:
                    sent = self.s.send(chunk[at:at + min(left, len(chunk))])
                    left, at = left - sent, (at + sent) % len(chunk)
        if left > 0 and read:
            self.closed = self.closed or self.read_until(lambda: False, 0.2) or self.closed
        self.s.setblocking(True)
        self.s.settimeout(10)
        return left == 0

    def ended(self, seconds=5.0):
        """Waits for the end: the code of the last GOAWAY, or None if there was none; fails the
        caller's test by an exception when the connection stays open."""
        self.s.setblocking(True)
        if not self.read_until(lambda: self.closed, seconds):
            raise AssertionError(f"still open; got {self.frames[-3:]}")
        return self.goaway()

    def goaway(self):
        codes = [f.error_code for f in self.frames if f.type == GOAWAY]
        return codes[-1] if codes else None

    def count(self, kind, **fields):
        return sum(f.type == kind and all(getattr(f, k) == v for k, v in fields.items())
                   for f in self.frames)

    def alive(self, seconds=5.0):
        """A PING comes back."""
        before = self.count(PING)
        self.send(frame(PING, 0, 0, b"are you?"))
        return self.read_until(lambda: self.count(PING) > before, seconds) and not self.closed


def integer(value, prefix_bits, first=0):
    """HPACK's integer."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    out = bytearray([first | limit])
    value -= limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + bytes([value]))


def text(value):
    value = value.encode("latin-1") if isinstance(value, str) else value
    return integer(len(value), 7) + value


def literal(name, value):
    """A field that leaves no trace in any table."""
    return b"\x00" + text(name) + text(value)


def indexed(index):
    return integer(index, 7, 0x80)


def remembered(name, value):
    """A field that both tables keep, as the newest: index 62."""
    return b"\x40" + text(name) + text(value)
