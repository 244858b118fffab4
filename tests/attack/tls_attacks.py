"""Attacks on TLS: floods of handshakes that never end, keys changed without end."""

import contextlib
import socket
import ssl
import subprocess
import sys
import time

import attack
from attack import AttackTest
from catalog import against


def client_hello():
    """A whole ClientHello, as OpenSSL writes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


class TlsAttack(AttackTest):
    tight = 80 << 20  # OpenSSL may have 52 KB for each connection, and some floods are many

    def start_tls(self, *options, connections=128):
        sizes = () if "--handshake-slots" in options else ("--handshake-slots", 16)
        return self.start("--tls-port", 0, "--max-connections", connections, *sizes, *options)

    @staticmethod
    def connect(server):
        s = socket.create_connection(("127.0.0.1", server.tls_port), timeout=10)
        return s

    def assert_served(self, server):
        client = server.client()
        client.request("GET", "/")
        self.assertEqual(client.getresponse().read()[:5], b"Hello")
        client.close()


@against(22)
class Handshakes(TlsAttack):
    def test_half_a_client_hello_costs_a_stage_and_nothing_more(self):
        server = self.start_tls("--handshake-timeout-ms", 2000, "--stall-grace-ms", 60000,
                                connections=512)
        self.assert_served(server)
        before, count = server.stats(), 400
        memory = server.memory_bytes()
        with self.attack(server):
            half = client_hello()[:200]
            sockets = [self.connect(server) for _ in range(count)]
            for s in sockets:
                s.sendall(half)
            self.until(lambda: server.stats()["connections"]["used"] >= count)
            now = server.stats()
            each = (server.memory_bytes() - memory) / count
            print(f"  half a ClientHello: {each / 1024:.1f} kB each", file=sys.stderr)
            # 2 KB for the bytes; a connection's own place, which it needs in any case, comes to it.
            self.assertLess(each, 2048 + 4096)
            self.assertLess(now["tls_memory_bytes"] - before["tls_memory_bytes"], 1 << 20,
                            "a TLS object for half a greeting")
            self.until(lambda: server.stats()["closed"]["handshake_timeout"] >= count)
            for s in sockets:
                self.assert_closed(s)
                s.close()
            self.assertGreaterEqual(server.stats()["handshakes"]["timeout"], count)

    def test_newcomers_get_in_though_half_greetings_took_every_place(self):
        server = self.start_tls("--handshake-timeout-ms", 60000)
        with self.attack(server):
            half = client_hello()[:200]
            sockets = [self.connect(server) for _ in range(200)]
            for s in sockets:
                with contextlib.suppress(OSError):  # turned away
                    s.sendall(half)

            def newcomer_is_served():
                with contextlib.suppress(OSError):
                    self.assert_served(server)
                    return True
                return False
            self.until(newcomer_is_served)
            self.assertGreaterEqual(sum(newcomer_is_served() for _ in range(40)), 38)
            for s in sockets:
                s.close()
        self.assertGreaterEqual(server.stats()["closed"]["idle_pressure"], 20)

    def test_silent_handshakes_hold_their_slots_until_the_deadline_only(self):
        slots = 16
        server = self.start_tls("--handshake-slots", slots, "--handshake-timeout-ms", 1500,
                                connections=512)
        with self.attack(server):
            hello = client_hello()
            sockets = [self.connect(server) for _ in range(300)]
            for s in sockets:
                s.sendall(hello)
            self.until(lambda: server.stats()["handshake_slots"]["used"] >= slots - 2)
            now = server.stats()
            self.assertLessEqual(now["handshake_slots"]["peak"], slots)
            self.assertGreater(now["handshakes_waiting"], 100)
            self.until(lambda: server.stats()["closed"]["handshake_timeout"] >= 300)
            now = server.stats()
            self.assertGreater(now["handshakes"]["no_slot"], 100)
            self.assertEqual(now["handshakes"]["no_slot"], now["refused"]["handshake"])
            for s in sockets:
                s.close()
            self.assert_served(server)

    def test_handshakes_that_are_broken_off_leave_nothing(self):
        server = self.start_tls("--handshake-slots", 8)
        with self.attack(server):
            hello = client_hello()
            for _ in range(600):
                s = self.connect(server)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.sendall(hello)
                s.close()
            self.until(lambda: server.stats()["connections"]["used"] <= 3)
            handshakes = server.stats()["handshakes"]
            self.assertGreater(handshakes["aborted"], 100)
            self.assertLessEqual(server.stats()["handshake_slots"]["peak"], 8)

    def test_garbage_and_cleartext_get_their_answers(self):
        server = self.start_tls()
        with self.attack(server):
            for _ in range(100):
                s = self.connect(server)
                s.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                self.assertIn(b"speaks TLS", self.answer_of(s))
                s.close()
                s = self.connect(server)
                s.sendall(b"\x16\x03\x01\x00\x40\x01" + bytes(63))
                self.assertEqual(self.answer_of(s)[:1], b"\x15", "an alert")
                s.close()
            self.until(lambda: server.stats()["handshakes"]["not_tls"] == 100)
            self.assertEqual(server.stats()["handshakes"]["failed"], 100)
            self.assertGreaterEqual(server.stats()["closed"]["not_tls"], 100)


@against(23)
class Keys(TlsAttack):
    def s_client(self, server, *options):
        child = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.tls_port}", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        return child

    def type(self, child, letter, times, pause):
        """Commands for s_client: one per write, slowly enough to be read one by one."""
        with contextlib.suppress(BrokenPipeError):
            for _ in range(times):
                child.stdin.write(letter + b"\n")
                child.stdin.flush()
                time.sleep(pause)

    def test_renegotiation_is_refused(self):
        server = self.start_tls()
        with self.attack(server):
            full = server.stats()["handshakes"]["full"]
            child = self.s_client(server, "-tls1_2")
            self.until(lambda: server.stats()["handshakes"]["full"] > full)
            self.type(child, b"R", 1, 0.2)
            self.until(lambda: child.poll() is not None)
            child.stdin.close()
            self.assertIn(b"no renegotiation", child.stdout.read())
            self.until(lambda: server.stats()["connections"]["used"] <= 2)

    def test_ten_key_updates_live_and_a_storm_is_closed(self):
        server = self.start_tls()
        with self.attack(server):
            full = server.stats()["handshakes"]["full"]
            child = self.s_client(server, "-tls1_3")
            self.until(lambda: server.stats()["handshakes"]["full"] > full)
            self.type(child, b"K", 10, 0.02)
            self.assertEqual(server.stats()["key_updates_exceeded"], 0)
            self.assertIsNone(child.poll())
            self.type(child, b"k", 600, 0.002)
            self.until(lambda: server.stats()["key_updates_exceeded"] == 1)
            self.assertEqual(server.stats()["closed"]["tls"], 1)
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            self.assert_served(server)


if __name__ == "__main__":
    attack.raise_open_files()
    attack.main(sys.argv)
