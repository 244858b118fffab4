"""Those who attack the gateway: a table of what one hostile connection does. Each comes again and
again, with rates, sizes and pauses drawn from a seed, so that no bound can be tuned to one number.
Runs as a process of its own: `gateway_attackers.py '{"attack": …}'`."""

import asyncio
import contextlib
import json
import random
import resource
import ssl
import struct
import sys
import time

import h2_wire

GONE = (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError)


class Hostile:
    """One hostile client: where it goes, where it comes from, and what it draws."""

    def __init__(self, wanted, rng, source):
        self.port, self.tls_port, self.admin = wanted["port"], wanted["tls_port"], wanted["admin"]
        self.http2_port = wanted["http2_port"]
        self.rng, self.source = rng, source
        self.writer = self.reader = None

    async def connect(self, port):
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(self.source, 0), limit=1 << 12)

    async def send(self, data):
        self.writer.write(data)
        await asyncio.wait_for(self.writer.drain(), 10)

    async def held(self, low=2.0, high=9.0):
        """Holds the connection until the other side ends it, or for a time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.until_closed(), self.rng.uniform(low, high))

    async def until_closed(self):
        while await self.reader.read(1 << 12):
            pass

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()


def client_hello():
    """A whole ClientHello, as OpenSSL writes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl._create_unverified_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


# -- handshakes

async def hello_then_nothing(one):
    await one.connect(one.tls_port)
    await one.send(client_hello())
    await one.held()


async def hello_in_pieces(one):
    """The hello comes in pieces, then bytes of a handshake that never continues."""
    await one.connect(one.tls_port)
    hello = client_hello()
    cut = one.rng.randrange(1, len(hello))
    await one.send(hello[:cut])
    await asyncio.sleep(one.rng.uniform(0, 1.5))
    await one.send(hello[cut:])
    for _ in range(one.rng.randrange(1, 20)):  # the header of a record, then its bytes one by one
        await one.send(b"\x16")
        await asyncio.sleep(one.rng.uniform(0.05, 0.5))


# -- heads and bodies

async def slow_head(one):
    await one.connect(one.port)
    await one.send(b"GET / HTTP/1.1\r\nhost: t\r\n")
    for _ in range(one.rng.randrange(2, 20)):
        await one.send(b"x-%d: y\r\n" % one.rng.randrange(99))
        await asyncio.sleep(one.rng.uniform(0.1, 0.9))


async def upload(one, rate, length):
    await one.connect(one.port)
    await one.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n" % length)
    end = time.monotonic() + one.rng.uniform(4, 12)
    while time.monotonic() < end and not one.reader.at_eof():
        pause = one.rng.uniform(0.05, 0.4)
        await one.send(b"x" * max(1, int(rate * pause)))
        await asyncio.sleep(pause)
        if one.reader._buffer:  # it was answered, so it lost its place
            return


async def slow_upload(one):
    """Just above the rate below which an upload ends when others wait: 4 KB/s by default."""
    await upload(one, one.rng.uniform(4200, 16000), 10_000_000)


async def half_request(one):
    """A part of the body, then nothing; a new one as soon as it is cut."""
    await one.connect(one.port)
    size = one.rng.randrange(1, 5000)
    await one.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n" % (size + 100) +
                   b"x" * one.rng.randrange(size))
    await one.held(0.3, 4.0)


async def expect_nothing(one):
    await one.connect(one.port)
    await one.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n"
                   b"expect: 100-continue\r\n\r\n")
    await one.held(0.3, 6.0)


# -- HTTP/2

REQUEST = b"".join(h2_wire.literal(name, value) for name, value in (
    (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "t")))


def get_frame(stream, block=REQUEST):
    flags = h2_wire.END_HEADERS | h2_wire.END_STREAM
    return h2_wire.frame(h2_wire.HEADERS, flags, stream, block)


async def greet(one, **settings):
    await one.connect(one.http2_port)
    await one.send(h2_wire.PREFACE + h2_wire.settings(**settings) +
                   h2_wire.frame(h2_wire.SETTINGS, h2_wire.ACK, 0))


async def closed_windows(one):
    await greet(one, window=0)
    await one.send(b"".join(get_frame(2 * i + 1) for i in range(one.rng.randrange(50, 101))))
    await one.held()


async def one_byte_windows(one):
    await greet(one, window=1)
    count = one.rng.randrange(50, 101)
    await one.send(b"".join(get_frame(2 * i + 1) for i in range(count)))
    end = time.monotonic() + one.rng.uniform(2, 9)
    while time.monotonic() < end:
        await one.send(h2_wire.window_update(2 * one.rng.randrange(count) + 1, 1))
        await asyncio.sleep(one.rng.uniform(0.05, 0.3))


async def header_bomb(one):
    """One large field in the table, referred to again and again, on many streams."""
    await greet(one, window=0)
    first = REQUEST + h2_wire.remembered("x-bomb", "b" * one.rng.randrange(1000, 3500))
    await one.send(get_frame(1, first))
    again = REQUEST + h2_wire.indexed(62) * one.rng.randrange(2, 12)
    await one.send(b"".join(get_frame(2 * i + 3, again) for i in range(99)))
    await one.held()


async def rapid_reset(one):
    await greet(one)
    reader = asyncio.create_task(one.until_closed())
    try:
        for i in range(one.rng.randrange(200, 2000)):
            if reader.done():
                return
            stream = 2 * i + 1
            await one.send(get_frame(stream) + h2_wire.frame(
                h2_wire.RST_STREAM, 0, stream, struct.pack(">I", h2_wire.CANCEL)))
            if one.rng.random() < 0.05:
                await asyncio.sleep(one.rng.uniform(0, 0.02))
    finally:
        reader.cancel()


# -- the admin endpoint

async def deaf_operator(one):
    """Asks for a large page and does not read it."""
    await one.connect(one.admin)
    one.writer.transport.pause_reading()
    page = one.rng.choice([b"/stats", b"/metrics", b"/config"])
    ask = b"GET " + page + b" HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % one.admin
    await one.send(ask * one.rng.randrange(1, 60))
    await asyncio.sleep(one.rng.uniform(1, 9))


ATTACKS = {attack.__name__: attack for attack in (
    hello_then_nothing, hello_in_pieces, slow_head, slow_upload, half_request, expect_nothing,
    closed_windows, one_byte_windows, header_bomb, rapid_reset, deaf_operator)}


async def again_and_again(wanted, number, end):
    rng = random.Random(f"{wanted['seed']} {wanted['attack']} {number}")
    names = list(ATTACKS) if wanted["attack"] == "all" else [wanted["attack"]]
    attack = ATTACKS[names[number % len(names)]]
    source = "127.0.0.66"  # 127.0.0.1 is the well-behaved client's
    if wanted["sources"] == "many":
        source = f"127.{rng.randrange(1, 255)}.{rng.randrange(256)}.{rng.randrange(256)}"
    await asyncio.sleep(rng.uniform(0, 0.3))
    while time.monotonic() < end:
        one = Hostile(wanted, rng, source)
        with contextlib.suppress(*GONE):
            await asyncio.wait_for(attack(one), max(0.01, end - time.monotonic()))
        one.close()
        await asyncio.sleep(rng.choice([0, 0, rng.uniform(0, 0.2), rng.uniform(0, 2)]))


async def main(wanted):
    end = time.monotonic() + wanted["seconds"]
    await asyncio.gather(*(again_and_again(wanted, i, end) for i in range(wanted["connections"])))


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(json.loads(sys.argv[1])))
