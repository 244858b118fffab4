"""WebSocket through the gateway, from clients of HTTP/1.1 and HTTP/2, and answers that last: event
streams, long polling. `websocket_test.py [messages [seconds [Class.test]]]`."""

import contextlib
import hashlib
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import h2.events

import http2_apps_test
from matrix_peers import Http2Peer
from processes import SIGTERM, ProcessTest, Weir, wait_until
from tls_test import Certificates
from websocket_testing import (BINARY, CLOSE, PING, PONG, TEXT, Http1Socket, Http2Socket, Service,
                               frame)

MESSAGES = 2000
SECONDS = 4.0
GOING_AWAY = struct.pack(">H", 1001) + b"going away"


def payloads(count, seed):
    """Mostly small, some of every form of length, a few of several buffers."""
    chance = random.Random(seed)
    for index in range(count):
        size = chance.choice((0, 1, 5, 20, 60, 125, 126, 200, 1000))
        if index % 100 == 99:
            size = chance.choice((65535, 65536, 200_000))
        yield index.to_bytes(8, "big") + chance.randbytes(size)


def converse(test, client, count, seed):
    """Sends all messages without waiting for answers; every answer must be that of its message."""
    def send():
        chance = random.Random(seed)
        batch = b""
        for payload in payloads(count, seed):
            batch += frame(BINARY, payload, chance.randbytes(4))
            if len(batch) > chance.choice((1, 1000, 50_000)):
                client.send(batch)
                batch = b""
        client.send(batch)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    expected = payloads(count, seed)
    got = 0
    while got < count:
        frames = client.receive()
        test.assertTrue(frames, f"ended after {got} of {count} messages")
        for opcode, payload in frames:
            sent = next(expected)
            test.assertEqual(opcode, BINARY)
            test.assertEqual(payload, hashlib.sha256(sent).digest() + sent[:4096])
            got += 1
    sender.join(30)
    test.assertFalse(sender.is_alive())


def say_goodbye(test, client):
    client.send(frame(CLOSE, struct.pack(">H", 1000), b"\1\2\3\4"))
    test.assertEqual(client.receive(), [(CLOSE, struct.pack(">H", 1000))])
    test.assertEqual(client.receive(), [], "the service closes, and so does the gateway")


class WebSocket(ProcessTest):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.end)

    def gateway(self, extra="", upstream="", **more):
        return self.started(Weir(config=self.app_config([self.service.port], extra, upstream),
                                 **more))

    def ended(self, weir, by):
        series = f'weir_tunnels_ended_total{{upstream="app",ended_by="{by}"}}'
        return weir.metric(series)

    def test_messages_over_http1(self):
        weir = self.gateway()
        client = Http1Socket(weir.port)
        self.assertEqual(client.status, 101)
        self.assertEqual(weir.metric('weir_tunnels_open{upstream="app"}'), 1)
        converse(self, client, MESSAGES, seed=1)
        say_goodbye(self, client)
        client.close()
        wait_until(lambda: weir.metric('weir_tunnels_open{upstream="app"}') == 0)
        self.assertEqual(weir.balance(), 0)

    def test_messages_over_http2(self):
        weir = self.gateway()
        client = Http2Socket(weir.port)
        self.assertEqual((client.offered, client.status), (1, 200))
        self.assertNotIn("sec-websocket-accept", client.fields)
        line, fields = self.service.heads[0]
        self.assertEqual(line, "GET /chat HTTP/1.1")
        self.assertEqual(fields["upgrade"], "websocket")
        self.assertEqual(fields["origin"], "http://t")
        converse(self, client, MESSAGES, seed=2)
        say_goodbye(self, client)
        self.assertIsNone(client.reset)
        client.close()
        self.assertEqual(weir.balance(), 0)

    def test_many_at_once_over_both(self):
        weir = self.gateway()
        clients = [(Http1Socket, Http2Socket)[i % 2](weir.port) for i in range(12)]
        failures = []

        def talk(client, seed):
            try:
                converse(self, client, max(50, MESSAGES // 20), seed)
                say_goodbye(self, client)
            except AssertionError as error:
                failures.append(error)
            client.close()
        threads = [threading.Thread(target=talk, args=(client, i), daemon=True)
                   for i, client in enumerate(clients)]
        self.assertEqual(weir.metric('weir_tunnels_open{upstream="app"}'), 12)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            self.assertFalse(thread.is_alive())
        self.assertEqual(failures, [])
        self.assertEqual(weir.metric('weir_tunnels_opened_total{upstream="app"}'), 12)
        self.assertEqual(weir.balance(), 0)

    def test_node_as_a_client(self):
        weir = self.gateway()
        script = """
            // Debian's package of ws: its own Node has no WebSocket.
            const { WebSocket } = require('/usr/share/nodejs/ws');
            const { webcrypto } = require('node:crypto');
            const socket = new WebSocket(process.argv[1]);
            socket.binaryType = 'arraybuffer';
            const sizes = [0, 1, 125, 126, 65535, 65536, 300000];
            let got = 0;
            socket.onopen = () => sizes.forEach((n) => socket.send(new Uint8Array(n).fill(7)));
            socket.onmessage = async ({ data }) => {
              const sent = new Uint8Array(sizes[got++]).fill(7);
              const hash = new Uint8Array(await webcrypto.subtle.digest('SHA-256', sent));
              if (Buffer.compare(Buffer.from(data, 0, 32), Buffer.from(hash))) process.exit(3);
              if (got === sizes.length) socket.close(1000, 'done');
            };
            socket.onclose = ({ code }) => { console.log(got, code); process.exit(0); };
            socket.onerror = () => process.exit(4);
        """
        done = subprocess.run(["node", "-e", script, "--",
                               f"ws://127.0.0.1:{weir.port}/chat"],
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "7 1000"), done.stderr)

    def test_node_as_an_http2_client(self):
        weir = self.gateway()
        script = """
            const http2 = require('node:http2');
            const session = http2.connect(process.argv[1]);
            session.once('remoteSettings', (settings) => {
              if (!settings.enableConnectProtocol) process.exit(3);
              const stream = session.request({ ':method': 'CONNECT', ':protocol': 'websocket',
                ':path': '/chat', 'sec-websocket-version': '13' });
              stream.on('response', (head) => {
                if (head[':status'] !== 200) process.exit(4);
                stream.write(Buffer.from('8185000000006869212121', 'hex'));
              });
              let seen = Buffer.alloc(0);
              stream.on('data', (data) => {
                seen = Buffer.concat([seen, data]);
                if (seen.length >= 39) stream.end();
              });
              stream.on('end', () => { console.log(seen.toString('hex')); session.close(); });
            });
        """
        done = subprocess.run(["node", "-e", script, "--", f"http://127.0.0.1:{weir.port}"],
                              capture_output=True, text=True, timeout=30, check=False)
        answer = frame(BINARY, hashlib.sha256(b"hi!!!").digest() + b"hi!!!").hex()
        self.assertEqual((done.returncode, done.stdout.strip()), (0, answer), done.stderr)

    def test_control_frames_pass(self):
        weir = self.gateway()
        for client in (Http1Socket(weir.port), Http2Socket(weir.port)):
            client.send(frame(PING, b"are you there", b"abcd"))
            self.assertEqual(client.receive(), [(PONG, b"are you there")])
            client.send(frame(TEXT, b"split ", b"abcd", fin=False)[:3])
            client.send(frame(TEXT, b"split ", b"abcd", fin=False)[3:])
            self.assertEqual(client.receive()[0][1][32:], b"split ")
            client.close()

    def test_a_refused_upgrade_leaves_http(self):
        weir = self.gateway()
        follow = b"GET /second HTTP/1.1\r\nHost: t\r\n\r\n"
        for path, status in (("/refuse", 403), ("/old", 426)):
            before = self.service.requests
            client = Http1Socket(weir.port, path, "", follow)
            self.assertEqual(client.status, status)
            body = client.rest
            while body.count(b"HTTP/1.1 200 OK") < 1 or not body.endswith(b"no"):
                more = client.wire.recv(65536)
                self.assertTrue(more)
                body += more
            client.close()
            self.assertEqual(self.service.requests, before + 2, "two requests, one after the other")
            self.assertEqual(self.service.heads[-1][0], "GET /second HTTP/1.1")
            self.assertNotIn("upgrade", self.service.heads[-1][1])
        refused = Http2Socket(weir.port, "/refuse")
        self.assertEqual(refused.status, 403)
        refused.close()
        unknown = Http2Socket(weir.port, protocol="connect-udp")
        self.assertEqual((unknown.status, unknown.fields["x-weir-reason"]),
                         (501, "protocol_not_offered"))
        unknown.close()
        self.assertEqual(weir.metric('weir_tunnels_opened_total{upstream="app"}'), 0)

    def test_the_end_of_one_side_is_the_end_of_the_other(self):
        weir = self.gateway()
        for kind in (Http1Socket, Http2Socket):
            client = kind(weir.port)
            client.end_output()
            self.assertEqual(client.receive(), [])
            client.close()
        wait_until(lambda: self.service.left.count("end") == 2)
        gone = Http2Socket(weir.port)
        gone.peer.reset_stream(gone.stream, 8)
        gone._flush()
        wait_until(lambda: len(self.service.left) == 3)
        gone.close()
        for kind in (Http1Socket, Http2Socket):
            client = kind(weir.port)
            for wire in list(self.service.wires):
                wire.shutdown(socket.SHUT_RDWR)
            self.assertEqual(client.receive(), [])
            client.close()
        wait_until(lambda: self.ended(weir, "client") == 3 and self.ended(weir, "upstream") == 2)
        self.assertEqual(weir.balance(), 0)

    def test_bounds(self):
        weir = self.gateway("[server]\ntunnels_max = 2\ntunnel_idle_timeout_ms = 1500\n"
                            "body_timeout_ms = 300\nwrite_timeout_ms = 300\nidle_timeout_ms = 300",
                            "inactivity_timeout_ms = 300\nfirst_byte_timeout_ms = 5000")
        began = time.monotonic()
        clients = [Http1Socket(weir.port), Http2Socket(weir.port)]
        third = Http1Socket(weir.port)
        self.assertEqual((third.status, third.fields["x-weir-reason"]), (503, "no_tunnel"))
        third.close()
        for client in clients:  # the timeouts of bodies and of the upstream do not end them
            self.assertEqual(client.receive(), [])
        self.assertGreaterEqual(time.monotonic() - began, 1.4)
        self.assertEqual(self.ended(weir, "idle"), 2)
        for client in clients:
            client.close()
        again = Http1Socket(weir.port)
        self.assertEqual(again.status, 101)
        again.close()

    def test_the_log_has_one_line_at_the_end(self):
        weir = self.gateway('[admin]\naccess_log = "all"')
        client = Http2Socket(weir.port)
        client.send(frame(TEXT, b"hello", b"abcd"))
        client.receive()
        say_goodbye(self, client)
        client.close()
        line = wait_until(lambda: [json.loads(text) for text in list(weir.output)
                                   if "tunnel_ended_by" in text])[0]
        self.assertEqual((line["status"], line["tunnel_ended_by"], line["method"],
                          line["protocol"]), (200, "upstream", "GET", "h2"))
        self.assertGreater(line["bytes_out"], 5)

    def test_a_drain_says_goodbye_to_both_sides(self):
        weir = self.gateway()
        clients = [Http1Socket(weir.port), Http2Socket(weir.port)]
        inside = Http1Socket(weir.port)  # in the middle of a frame of its own
        inside.send(frame(BINARY, b"x" * 1000, b"abcd")[:500])
        for client in clients:
            converse(self, client, 20, seed=5)
        weir.signal(SIGTERM)
        for client in (*clients, inside):
            self.assertEqual(client.receive(), [(CLOSE, GOING_AWAY)])
        inside.send(frame(BINARY, b"x" * 1000, b"abcd")[500:])
        for client in (clients[0], inside):  # the service may have ended the other one already
            client.send(frame(CLOSE, GOING_AWAY[:2], b"abcd"))
        for client in (*clients, inside):
            self.assertEqual(client.receive(), [])
            client.close()
        self.assertEqual(weir.wait(), 0)
        wait_until(lambda: len(self.service.left) == 3)
        self.assertEqual(self.service.closes, [GOING_AWAY] * 3)

    def test_a_drain_does_not_wait_for_ever(self):
        weir = self.gateway("[admin]\ndrain_timeout_ms = 1000")
        client = Http1Socket(weir.port)
        weir.signal(SIGTERM)
        self.assertEqual(client.receive(), [(CLOSE, GOING_AWAY)])  # and no answer
        self.assertEqual(client.receive(), [])
        self.assertEqual(weir.wait(), 0)
        client.close()


class InABrowser(ProcessTest):
    """Chromium opens a WebSocket by extended CONNECT, because its page came over HTTP/2."""

    browse = http2_apps_test.Chromium.browse
    PAGE = """<!doctype html><script>
        const socket = new WebSocket(`wss://${location.host}/chat`);
        socket.binaryType = 'arraybuffer';
        const message = (i) => new TextEncoder().encode(String(i).repeat(1 + i % 50));
        const tell = (what) => fetch(`/report?${what}`);
        const answers = [];
        socket.onopen = () => { for (let i = 0; i < COUNT; ++i) socket.send(message(i)); };
        socket.onmessage = async ({ data }) => {
          answers.push(data);
          if (answers.length < COUNT) return;
          for (let i = 0; i < COUNT; ++i) {
            const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', message(i)));
            const got = new Uint8Array(answers[i], 0, 32);
            if (got.some((byte, at) => byte !== sum[at])) return tell(`wrong=${i}`);
          }
          socket.close(1000, 'done');
        };
        socket.onclose = ({ code }) => tell(`got=${answers.length}&code=${code}`);
        </script>"""

    def test_messages(self):
        count = MESSAGES
        service = Service(self.PAGE.replace("COUNT", str(count)))
        self.addCleanup(service.end)
        folder = tempfile.TemporaryDirectory(prefix="weir-socket-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.certificate, key = Certificates(self.folder).make("server", "/CN=localhost")
        weir = self.started(Weir(config=self.app_config([service.port], f"""
[tls]
listen = ["127.0.0.1:0"]
certificate = "{self.certificate}"
private_key = "{key}"
[admin]
access_log = "all"
""")))
        port = weir.line_with(r"listening with TLS on .*:(\d+)")[1]
        browser = self.browse(f"https://127.0.0.1:{port}/")

        def report():
            lines = [line.split(" ")[1] for line, _ in list(service.heads)]
            return [path for path in lines if path.startswith("/report")]
        wait_until(lambda: report() or browser.child.poll() is not None,
                   60 + count / 200)
        self.assertEqual(report(), [f"/report?got={count}&code=1000"], browser.lines)
        line = wait_until(lambda: [json.loads(text) for text in list(weir.output)
                                   if "tunnel_ended_by" in text])[0]
        self.assertEqual((line["protocol"], line["path"], line["status"]), ("h2", "/chat", 200))
        browser.end()


class Events:
    """Sends an event every 0.8 s; /poll answers after `hold` seconds."""

    def __init__(self, seconds, hold=1.5):
        self.seconds, self.hold = seconds, hold
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                wire, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        with wire:
            if b"/poll" in wire.recv(65536):
                time.sleep(self.hold)
                wire.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n"
                             b"news")
                return
            wire.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                         b"connection: close\r\n\r\n")
            end = time.monotonic() + self.seconds
            number = 0
            while time.monotonic() < end:
                wire.sendall(f"data: {number}\n\n".encode())
                number += 1
                time.sleep(0.8)
            wire.sendall(b"data: end\n\n")

    def end(self):
        self.listening.close()


class Http2Events(Events):
    """The same over HTTP/2, one stream on each connection."""

    def _serve(self, wire):
        peer = Http2Peer(wire, client=False)
        stream = None
        with wire, contextlib.suppress(OSError):
            while stream is None:
                events = peer.events()
                if events is None:
                    return  # a connection that was kept for later
                for event in events:
                    if isinstance(event, h2.events.StreamEnded):
                        stream = event.stream_id
            peer.codec.send_headers(stream, [(":status", "200"),
                                             ("content-type", "text/event-stream")])
            end = time.monotonic() + self.seconds
            number = 0
            while time.monotonic() < end:
                peer.codec.send_data(stream, f"data: {number}\n\n".encode())
                peer.flush()
                number += 1
                time.sleep(0.8)
            peer.codec.send_data(stream, b"data: end\n\n", end_stream=True)
            peer.flush()
            while peer.events() is not None:
                pass


class LongAnswers(ProcessTest):
    LIMITS = ("[server]\nbody_timeout_ms = 1000\nwrite_timeout_ms = 1000\nidle_timeout_ms = 1000\n"
              "header_timeout_ms = 1000")

    def setUp(self):
        self.events = Events(SECONDS)
        self.addCleanup(self.events.end)
        self.weir = self.started(Weir(config=self.app_config(
            [self.events.port], self.LIMITS,
            "inactivity_timeout_ms = 1000\nfirst_byte_timeout_ms = 1000\n"
            '[[route]]\npath = "/poll"\nupstream = "app"\nstream = true')))

    def expected(self, text):
        numbers = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        self.assertEqual(numbers[-1], "end")
        self.assertEqual(numbers[:-1], [str(i) for i in range(len(numbers) - 1)])
        return len(numbers)

    def test_events_every_800_ms_with_timeouts_of_a_second(self):
        url = f"http://127.0.0.1:{self.weir.port}/events"
        curl = subprocess.Popen(["curl", "-sN", "--http2-prior-knowledge", url],
                                stdout=subprocess.PIPE, text=True)
        self.addCleanup(curl.stdout.close)
        connection = http.client.HTTPConnection("127.0.0.1", self.weir.port, timeout=30)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        first = answer.read1(4096)
        self.assertTrue(first.startswith(b"data: 0\n\n"), "events are not collected")
        text = first + answer.read()
        connection.close()
        self.expected(text.decode())
        over_http2, _ = curl.communicate(timeout=60 + SECONDS)
        self.assertEqual(curl.returncode, 0)
        self.expected(over_http2)
        self.assertEqual(self.weir.balance(), 0)

    def test_events_from_an_upstream_of_http2(self):
        events = Http2Events(SECONDS)
        self.addCleanup(events.end)
        weir = self.started(Weir(config=self.app_config(
            [events.port], self.LIMITS,
            'protocol = "http2"\ninactivity_timeout_ms = 1000\nfirst_byte_timeout_ms = 10000')))
        asking = [subprocess.Popen(["curl", "-sN", protocol, f"http://127.0.0.1:{weir.port}/e"],
                                   stdout=subprocess.PIPE, text=True)
                  for protocol in ("--http1.1", "--http2-prior-knowledge")]
        for curl in asking:
            text, _ = curl.communicate(timeout=60 + SECONDS)
            self.assertEqual(curl.returncode, 0)
            self.assertGreater(self.expected(text), SECONDS)
        self.assertEqual(weir.balance(), 0)

    def test_long_polling_outlasts_the_idle_timeouts(self):
        url = f"http://127.0.0.1:{self.weir.port}/poll"
        for protocol in ("--http1.1", "--http2-prior-knowledge"):
            done = subprocess.run(["curl", "-s", protocol, url], capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "news"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        MESSAGES = int(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop(1))
    os.environ.setdefault("NODE_NO_WARNINGS", "1")
    unittest.main(verbosity=2)
