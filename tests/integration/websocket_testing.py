"""WebSocket peers made of sockets alone: a service that answers each message with its SHA-256, and
clients of both protocols. Strict: what RFC 6455 forbids is an error here."""

import base64
import contextlib
import hashlib
import os
import socket
import struct
import threading

import h2.config
import h2.connection
import h2.events

FIXED = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode, payload, mask=None, fin=True):
    head = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if mask is not None else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", len(payload))
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", len(payload))
    return head + (mask + masked(payload, mask) if mask is not None else payload)


def masked(payload, mask):
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class Frames:
    """Takes bytes, gives whole frames: (opcode, payload). `from_client`: they must be masked."""

    def __init__(self, from_client):
        self.from_client = from_client
        self.bytes = bytearray()

    def feed(self, data):
        self.bytes += data
        at, found = 0, []
        while True:
            one = self._one(at)
            if one is None:
                break
            at, opcode, payload = one
            found.append((opcode, payload))
        del self.bytes[:at]
        return found

    def _one(self, at):
        have = len(self.bytes) - at
        if have < 2:
            return None
        first, second = self.bytes[at], self.bytes[at + 1]
        if first & 0x70:
            raise AssertionError("a reserved bit is set")
        if bool(second & 0x80) != self.from_client:
            raise AssertionError("masked by the wrong side")
        size, head = second & 0x7f, 2
        if size > 125:
            width = 2 if size == 126 else 8
            if have < 2 + width:
                return None
            size = int.from_bytes(self.bytes[at + 2:at + 2 + width], "big")
            head += width
        mask_at = at + head
        head += 4 if self.from_client else 0
        if have < head + size:
            return None
        payload = bytes(self.bytes[at + head:at + head + size])
        if self.from_client:
            payload = masked(payload, bytes(self.bytes[mask_at:mask_at + 4]))
        return at + head + size, first & 15, payload


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key + FIXED).digest()).decode()


def read_head(wire):
    text = b""
    while b"\r\n\r\n" not in text:
        more = wire.recv(65536)
        if not more:
            break
        text += more
    head, _, rest = text.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = [tuple(line.split(": ", 1)) for line in lines[1:] if ": " in line]
    return lines[0], {name.lower(): value for name, value in fields}, rest


class Service:
    """Answers every message with its SHA-256, in order; /refuse with 403, /old with 426. Other
    requests get `page`."""

    def __init__(self, page="no"):
        self.page = page.encode()
        self.heads = []
        self.requests = 0
        self.closes = []  # payloads of Close frames that it received
        self.left = []    # how each tunnel ended: "close", "end" or "reset"
        self.wires = set()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                wire, _ = self.listening.accept()
            except OSError:
                return
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wires.add(wire)
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        try:
            while self._answer(wire):
                pass
        except ConnectionError:
            self.left.append("reset")
        finally:
            self.wires.discard(wire)
            wire.close()

    def _answer(self, wire):
        line, fields, rest = read_head(wire)
        if not line:
            return False
        self.requests += 1
        self.heads.append((line, fields))
        path = line.split(" ")[1]
        if "upgrade" not in fields or path in ("/refuse", "/old"):
            if rest:
                raise AssertionError(f"bytes behind a request: {rest!r}")
            refusals = {"/refuse": "403 Forbidden", "/old": "426 Upgrade Required"}
            status = refusals.get(path, "200 OK")
            wire.sendall(f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\n"
                         f"content-length: {len(self.page)}\r\n\r\n".encode() + self.page)
            return True
        wire.sendall(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\nSec-WebSocket-Accept: " +
                      accept_of(fields["sec-websocket-key"].encode()) + "\r\n\r\n").encode())
        self._talk(wire, rest)
        return False

    def _talk(self, wire, data):
        frames = Frames(from_client=True)
        while True:
            answers = []
            for opcode, payload in frames.feed(data):
                if opcode == CLOSE:
                    self.closes.append(payload)
                    self.left.append("close")
                    with contextlib.suppress(ConnectionError):  # it need not wait for the answer
                        wire.sendall(b"".join(answers) + frame(CLOSE, payload[:2]))
                    return
                if opcode == PING:
                    answers.append(frame(PONG, payload))
                elif opcode in (TEXT, BINARY):
                    answers.append(frame(BINARY, hashlib.sha256(payload).digest() +
                                         payload[:4096]))
            if answers:
                wire.sendall(b"".join(answers))
            data = wire.recv(65536)
            if not data:
                self.left.append("end")
                return

    def end(self):
        self.listening.close()
        for wire in list(self.wires):
            wire.close()


class Http1Socket:
    """A WebSocket over HTTP/1.1."""

    def __init__(self, port, path="/chat", extra="", early=b""):
        self.wire = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16))
        self.wire.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\n"
                          f"Upgrade: websocket\r\nSec-WebSocket-Key: {key.decode()}\r\n"
                          f"Sec-WebSocket-Version: 13\r\n{extra}\r\n".encode() + early)
        line, self.fields, rest = read_head(self.wire)
        self.status = int(line.split(" ")[1]) if line else 0
        self.frames = Frames(from_client=False)
        self.ready = []
        if self.status == 101:
            assert self.fields["sec-websocket-accept"] == accept_of(key)
            self.ready = self.frames.feed(rest)
        else:
            self.rest = rest

    def send(self, data):
        self.wire.sendall(data)

    def receive(self):
        """Frames that came; none at the end."""
        while not self.ready:
            data = self.wire.recv(65536)
            if not data:
                return []
            self.ready = self.frames.feed(data)
        found, self.ready = self.ready, []
        return found

    def end_output(self):
        self.wire.shutdown(socket.SHUT_WR)

    def close(self):
        self.wire.close()


class Http2Socket:
    """A WebSocket over HTTP/2, by extended CONNECT, with python3-h2 as the codec."""

    def __init__(self, port, path="/chat", protocol="websocket"):
        self.wire = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Condition()
        # This version of the library knows no :protocol.
        self.peer = h2.connection.H2Connection(h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False))
        self.peer.initiate_connection()
        self.frames = Frames(from_client=False)
        self.status, self.fields, self.ended, self.reset = 0, {}, False, None
        self.offered = None
        self.ready = []
        self.body = b""
        self._flush()
        while self.offered is None:
            self._read()
        self.stream = self.peer.get_next_available_stream_id()
        self.peer.send_headers(self.stream, [
            (":method", "CONNECT"), (":protocol", protocol), (":scheme", "http"),
            (":path", path), (":authority", "t"), ("sec-websocket-version", "13"),
            ("origin", "http://t")])
        self._flush()
        while not self.status and self.reset is None:
            self._read()

    def _flush(self):
        data = self.peer.data_to_send()
        if data:
            self.wire.sendall(data)

    def _read(self):
        data = self.wire.recv(65536)
        with self.lock:
            if not data:
                self.ended = True
                self.reset = self.reset if self.reset is not None else -1
            else:
                for event in self.peer.receive_data(data):
                    self._note(event)
                self._flush()
            self.lock.notify_all()
        return bool(data)

    def _note(self, event):
        if isinstance(event, h2.events.RemoteSettingsChanged):
            enabled = event.changed_settings.get(8)
            self.offered = enabled.new_value if enabled else 0
        elif isinstance(event, h2.events.ResponseReceived):
            fields = {name.decode() if isinstance(name, bytes) else name:
                      value.decode() if isinstance(value, bytes) else value
                      for name, value in event.headers}
            self.status, self.fields = int(fields[":status"]), fields
        elif isinstance(event, h2.events.DataReceived):
            self.peer.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if self.status == 200:
                self.ready += self.frames.feed(event.data)
            else:
                self.body += event.data
        elif isinstance(event, h2.events.StreamEnded):
            self.ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.ended, self.reset = True, event.error_code

    def send(self, data):
        """Within the windows; another thread may read meanwhile."""
        while data:
            with self.lock:
                room = min(self.peer.local_flow_control_window(self.stream),
                           self.peer.max_outbound_frame_size, len(data))
                if room == 0:
                    self.lock.wait(30)
                    continue
                self.peer.send_data(self.stream, data[:room])
                self._flush()
            data = data[room:]

    def receive(self):
        while not self.ready and not self.ended:
            self._read()
        found, self.ready = self.ready, []
        return found

    def end_output(self):
        with self.lock:
            self.peer.end_stream(self.stream)
            self._flush()

    def close(self):
        self.wire.close()
