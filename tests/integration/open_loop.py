"""An open-loop client of HTTP/1.1: requests leave at planned times, whatever became of earlier
ones, each with an id of its own; every answer is checked against the id that asked for it."""

import asyncio
import collections
import itertools
import threading
import time

Outcome = collections.namedtuple("Outcome", "item method sent_at seconds status reason fault")
NOT_ANSWERED = 0


class _Connection(asyncio.Protocol):
    def __init__(self, client):
        self.client = client
        self.input = b""
        self.item = None
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        self.client.connections.discard(self)
        if self.item is not None:
            self.done(NOT_ANSWERED, "", "connection closed without an answer")

    def ask(self, item, method, body):
        self.item, self.method, self.sent_at = item, method, time.monotonic()
        length = f"content-length: {len(body)}\r\n" if body else ""
        self.transport.write(f"{method} /item?{item} HTTP/1.1\r\nhost: t\r\n{length}\r\n".encode()
                             + body)

    def data_received(self, data):
        self.input += data
        if self.item is None:
            return self.client.surprises.append(data)
        end = self.input.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = self.input[:end].decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        size = int(fields.get("content-length", 0))
        if len(self.input) < end + 4 + size:
            return
        body, self.input = self.input[end + 4:end + 4 + size], self.input[end + 4 + size:]
        status = int(lines[0].split(" ")[1])
        fault = ""
        if status == 200 and body != str(self.item).encode():
            fault = f"the answer of another request: {body[:40]}"
        if self.input:
            self.client.surprises.append(self.input)
        self.done(status, fields.get("x-weir-reason", ""), fault)
        if fields.get("connection") == "close":
            self.transport.close()
        elif not self.transport.is_closing():
            self.client.idle.append(self)

    def done(self, status, reason, fault):
        item, self.item = self.item, None
        self.client.note(Outcome(item, self.method, self.sent_at, time.monotonic() - self.sent_at,
                                 status, reason, fault))


class OpenLoop:
    """`rates`: method -> requests a second. Runs in a thread of its own from start() to stop();
    `patience`: how long stop() waits for the last answers."""

    def __init__(self, port, rates, patience=15.0, first_item=0):
        self.port = port
        self.rates = rates
        self.patience = patience
        self.outcomes = {}
        self.surprises = []  # bytes that nobody asked for
        self.idle = []
        self.connections = set()
        self.asked = 0
        self._items = itertools.count(first_item)
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping = True
        self._thread.join(self.patience + 10)
        return list(self.outcomes.values())

    def note(self, outcome):
        if outcome.item in self.outcomes:
            self.surprises.append(f"second answer to {outcome.item}")
        self.outcomes[outcome.item] = outcome

    async def _run(self):
        await asyncio.gather(*(self._plan(method, rate) for method, rate in self.rates.items()))
        end = time.monotonic() + self.patience
        while len(self.outcomes) < self.asked and time.monotonic() < end:
            await asyncio.sleep(0.02)
        for one in list(self.connections):
            if one.item is not None:
                one.done(NOT_ANSWERED, "", f"no answer within {self.patience} s")
            one.transport.close()

    async def _plan(self, method, rate):
        body = b"b" * 200 if method == "POST" else b""
        due = time.monotonic()
        while not self._stopping:
            due += 1 / rate
            await asyncio.sleep(max(0, due - time.monotonic()))
            item, self.asked = next(self._items), self.asked + 1
            self._send(item, method, body)

    def _send(self, item, method, body):
        while self.idle:
            one = self.idle.pop()
            if not one.transport.is_closing():
                return one.ask(item, method, body)
        asyncio.get_running_loop().create_task(self._send_on_new(item, method, body))

    async def _send_on_new(self, item, method, body):
        began = time.monotonic()
        try:
            _, one = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(self), "127.0.0.1", self.port)
        except OSError as error:
            return self.note(Outcome(item, method, began, 0, NOT_ANSWERED, "", str(error)))
        self.connections.add(one)
        one.ask(item, method, body)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
