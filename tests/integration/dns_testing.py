"""A DNS server on loopback, UDP and TCP, whose one name has the addresses that a test sets."""

import socket
import socketserver
import struct
import threading

NXDOMAIN = None


class NameServer:
    """`addresses`: what an A query is answered with; NXDOMAIN: that."""

    def __init__(self, addresses, ttl=1):
        self.addresses = addresses
        self.ttl = ttl
        self.asked = 0
        own = self

        class Datagram(socketserver.BaseRequestHandler):
            def handle(self):
                query, sock = self.request
                answer = own.answer(query)
                sock.sendto(answer if len(answer) <= 512 else own.truncated(query),
                            self.client_address)

        class Connection(socketserver.StreamRequestHandler):
            def handle(self):
                while size := self.rfile.read(2):
                    answer = own.answer(self.rfile.read(struct.unpack("!H", size)[0]))
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)

        class Listener(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.tcp = Listener(("127.0.0.1", 0), Connection)
        self.port = self.tcp.server_address[1]
        self.udp = socketserver.ThreadingUDPServer(("127.0.0.1", self.port), Datagram)
        self.udp.daemon_threads = True
        for server in (self.udp, self.tcp):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    @staticmethod
    def question(query):
        end = query.index(b"\0", 12) + 5
        return query[12:end], struct.unpack("!H", query[end - 4:end - 2])[0]

    def answer(self, query):
        self.asked += 1
        question, kind = self.question(query)
        addresses = self.addresses
        if addresses is NXDOMAIN:
            return query[:2] + struct.pack("!HHHHH", 0x8183, 1, 0, 0, 0) + question
        records = b""
        if kind == 1:
            for address in addresses:
                records += struct.pack("!HHHIH", 0xC00C, 1, 1, self.ttl, 4)
                records += socket.inet_aton(address)
        count = len(addresses) if kind == 1 else 0
        return query[:2] + struct.pack("!HHHHH", 0x8180, 1, count, 0, 0) + question + records

    def truncated(self, query):
        question, _ = self.question(query)
        return query[:2] + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + question

    def end(self):
        for server in (self.udp, self.tcp):
            server.shutdown()
            server.server_close()
