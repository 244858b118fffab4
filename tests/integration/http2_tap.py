"""Stands between an HTTP/2 client and a server, in cleartext, changes nothing, and notes the header
blocks of both directions with the time at which each was here."""

import contextlib
import socket
import threading
import time

import hpack
from hyperframe.frame import Frame, HeadersFrame

PREFACE_BYTES = 24


class _Direction:
    """Finds header blocks in what flows in one direction of one connection."""

    def __init__(self, skip, note):
        self.skip, self.note = skip, note
        self.input = b""
        self.decoder = hpack.Decoder()

    def feed(self, data):
        self.input += data
        at = min(self.skip, len(self.input))
        self.skip -= at
        while len(self.input) - at >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self.input[at:at + 9]))
            if len(self.input) - at - 9 < length:
                break
            if isinstance(frame, HeadersFrame):
                frame.parse_body(memoryview(self.input[at + 9:at + 9 + length]))
                assert "END_HEADERS" in frame.flags, "a small head is one frame"
                self.note(frame.stream_id, dict(self.decoder.decode(frame.data)))
            at += 9 + length
        self.input = self.input[at:]


class Tap:
    def __init__(self, target):
        self.target = target
        self.asked, self.answered = [], []  # (time, stream, fields)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.wires = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.wires += [client, server]
            for source, sink, skip, heads in ((client, server, PREFACE_BYTES, self.asked),
                                              (server, client, 0, self.answered)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass, args=(source, sink, skip, heads),
                                 daemon=True).start()

    @staticmethod
    def _pass(source, sink, skip, heads):
        direction = _Direction(skip, lambda stream, fields: heads.append(
            (time.monotonic(), stream, fields)))
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                direction.feed(data)  # before it goes on: nobody acts on it earlier
                sink.sendall(data)
        for wire in (source, sink):
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def end(self):
        self.listening.close()
        for wire in self.wires:
            wire.close()
