"""A replica of a service: one process, HTTP/1.1, which writes the id of every request that it has
read completely into a journal. The journal survives kill -9, so a test can count afterwards how
often each request was processed.

  python3 replica.py --port 8080 --journal FILE [--host 127.0.0.1[,127.0.0.2…]] [--delay-ms 2]
                     [--certificate FILE --key FILE]

A request is `GET /item?ID` or `POST /item?ID`; the answer's body is the ID. `POST /manner?NAME`
changes how the next requests are answered:

  good      as they should be
  reset     half of the answer, then a reset
  refuse    a reset before the first byte of the answer
  drip      the head at once, the body byte by byte
  garbage   something that is not HTTP
  slow:MS   after MS milliseconds
  lag:MS    every 25th after MS milliseconds

SIGTERM ends it gracefully: it stops to listen, closes idle connections, announces the end in
answers under way (`connection: close`), and leaves when the last one is sent.
"""

import argparse
import asyncio
import os
import signal
import socket
import ssl
import struct
import sys

DRIP_SECONDS = 0.02
LAG_EVERY = 25


class Replica:
    def __init__(self, options):
        self.delay = options.delay_ms / 1000
        self.journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.manner = "good"
        self.leaving = False
        self.open = set()
        self.count = 0

    def note(self, method, item):
        os.write(self.journal, f"{method} {item}\n".encode())

    def leave(self, server):
        self.leaving = True
        server.close()
        for one in list(self.open):
            one.close_if_idle()


class Exchange(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self, replica):
        self.replica = replica
        self.input = b""
        self.busy = False
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replica.open.add(self)

    def connection_lost(self, _):
        self.replica.open.discard(self)

    def close_if_idle(self):
        if not self.busy and not self.input:
            self.transport.close()

    def data_received(self, data):
        self.input += data
        if not self.busy:
            self.next_request()

    def next_request(self):
        end = self.input.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.input[:end].decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:])
        size = int(fields.get("content-length", 0))
        if len(self.input) < end + 4 + size:
            return
        self.input = self.input[end + 4 + size:]
        method, target, _ = head[0].split(" ")
        path, _, query = target.partition("?")
        if path == "/manner":
            self.replica.manner = query
            return self.answer(query)
        self.busy = True
        self.replica.note(method, query)
        manner, _, milliseconds = self.replica.manner.partition(":")
        self.replica.count += 1
        if manner == "lag" and self.replica.count % LAG_EVERY:
            milliseconds = ""
        delay = int(milliseconds) / 1000 if milliseconds else self.replica.delay
        act = getattr(self, "answer_" + manner, self.answer)
        asyncio.get_running_loop().call_later(delay, act, query)

    def answer(self, item):
        if self.transport.is_closing():
            return
        ending = "connection: close\r\n" if self.replica.leaving else ""
        self.transport.write(f"HTTP/1.1 200 OK\r\n{ending}content-length: {len(item)}\r\n\r\n{item}"
                             .encode())
        self.busy = False
        if ending:
            return self.transport.close()
        if self.input:
            self.next_request()

    def abort(self):
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def answer_refuse(self, _):
        self.abort()

    def answer_reset(self, item):
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + item.encode())
        self.abort()

    def answer_garbage(self, _):
        self.transport.write(b"\x16\x03\x01\x02\x00 this is not HTTP\r\n\r\n")

    def answer_drip(self, item):
        self.transport.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(item)}\r\n\r\n".encode())
        self.drip(item.encode())

    def drip(self, rest):
        if self.transport.is_closing():
            return
        self.transport.write(rest[:1])
        if len(rest) > 1:
            asyncio.get_running_loop().call_later(DRIP_SECONDS, self.drip, rest[1:])
            return
        self.busy = False
        if self.input:
            self.next_request()


async def serve(options):
    replica = Replica(options)
    loop = asyncio.get_running_loop()
    tls = None
    if options.certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.certificate, options.key)
    server = await loop.create_server(lambda: Exchange(replica), options.host.split(","),
                                      options.port, backlog=1024, reuse_address=True, ssl=tls)
    loop.add_signal_handler(signal.SIGTERM, replica.leave, server)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    while not replica.leaving or replica.open:
        await asyncio.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--delay-ms", type=float, default=2)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
