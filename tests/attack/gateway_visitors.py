"""A well-behaved client of the gateway: so many requests a second are due, whatever became of those
before; a third of them over new plain connections, a third over new TLS connections, a third over
one HTTP/2 connection. Runs as a process of its own, and prints what became of them as JSON."""

import asyncio
import contextlib
import json
import ssl
import sys
import time

import hpack

import h2_wire

PATIENCE = 2.0
RATE = 40  # requests a second, of all kinds together
GET = b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n"


async def ask_once(port, context=None):
    """The status of one GET over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(GET)
        line = await reader.readline()
        await reader.read()
        return int(line.split()[1]) if line else 0
    finally:
        writer.close()
        with contextlib.suppress(Exception):
            await writer.wait_closed()


class Http2:
    """One kept connection by prior knowledge; opened again when the server has closed it."""

    def __init__(self, port):
        self.port, self.writer = port, None
        self.lock = asyncio.Lock()
        self.waiting, self.statuses = {}, {}

    async def open(self):
        async with self.lock:
            if self.writer is not None:
                return
            reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.next_id, self.decoder = 1, hpack.Decoder()
            self.writer.write(h2_wire.PREFACE + h2_wire.settings() +
                              h2_wire.window_update(0, 1 << 30))
            self.task = asyncio.create_task(self.read(reader))

    async def read(self, reader):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(9)
                kind, flags = head[3], head[4]
                stream = int.from_bytes(head[5:9], "big") & 0x7FFFFFFF
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                self.take(kind, flags, stream, payload)
        self.close()

    def take(self, kind, flags, stream, payload):
        if kind == h2_wire.SETTINGS and not flags & h2_wire.ACK:
            self.writer.write(h2_wire.frame(h2_wire.SETTINGS, h2_wire.ACK, 0))
        elif kind == h2_wire.HEADERS:
            status = int(dict(self.decoder.decode(payload)).get(":status", 0))
            self.statuses.setdefault(stream, status)
        elif kind == h2_wire.GOAWAY:
            return self.close()
        over = kind == h2_wire.RST_STREAM or (
            kind in (h2_wire.HEADERS, h2_wire.DATA) and flags & h2_wire.END_STREAM)
        if over and stream in self.waiting:
            self.waiting.pop(stream).set_result(self.statuses.pop(stream, 0))
        return None

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None
        for future in self.waiting.values():
            if not future.done():
                future.set_result(0)
        self.waiting.clear()

    async def ask(self):
        await self.open()
        stream, self.next_id = self.next_id, self.next_id + 2
        fields = ((":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "t"))
        block = b"".join(h2_wire.literal(name, value) for name, value in fields)
        future = self.waiting[stream] = asyncio.get_running_loop().create_future()
        flags = h2_wire.END_HEADERS | h2_wire.END_STREAM
        self.writer.write(h2_wire.frame(h2_wire.HEADERS, flags, stream, block))
        return await future


async def visit(port, tls_port, seconds, http2=True):
    context = ssl._create_unverified_context()  # its certificate was made just now
    kept = Http2(port)
    kinds = {"plain": lambda: ask_once(port), "tls": lambda: ask_once(tls_port, context),
             "h2": kept.ask}
    if not http2:
        del kinds["h2"]
    rows = []

    async def one(name, due):
        try:
            status = await asyncio.wait_for(kinds[name](), PATIENCE)
        except (OSError, ValueError, IndexError, asyncio.TimeoutError, AttributeError,
                asyncio.IncompleteReadError, ssl.SSLError) as error:
            status = type(error).__name__
        rows.append((name, status, time.monotonic() - due))

    tasks, start, names = [], time.monotonic(), list(kinds)
    for i in range(int(seconds * RATE)):
        due = start + i / RATE
        await asyncio.sleep(max(0, due - time.monotonic()))
        tasks.append(asyncio.create_task(one(names[i % len(names)], due)))
    await asyncio.gather(*tasks)
    return rows


def summary(rows):
    found = {"due": len(rows), "answered": sum(status == 200 for _, status, _ in rows), "bad": {}}
    for name, status, _ in rows:
        if status != 200:
            key = f"{name} {status}"
            found["bad"][key] = found["bad"].get(key, 0) + 1
    times = sorted(took for _, _, took in rows)
    found["p50_ms"] = round(1000 * times[len(times) // 2], 1)
    found["p99_ms"] = round(1000 * times[min(len(times) - 1, int(len(times) * 0.99))], 1)
    return found


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    print(json.dumps(summary(asyncio.run(visit(**wanted)))))
