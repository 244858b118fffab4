#!/usr/bin/python3
"""The HTTP/1 attacks, with raw sockets: slow heads, slow bodies, slow readers, floods of
connections, ambiguous framing, 100-continue in every order, refused upgrades, pipelined floods."""

import contextlib
import random
import re
import select
import sys
import threading
import time

import attack
from attack import AttackTest
from catalog import against

GET = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n"


def drip(sockets, byte, seconds, answer_ends=True):
    """A few bytes to each, some five times a second, until all have been closed, or answered if
    that ends it: the answers, and who is left."""
    alive, told = set(sockets), []
    rng = random.Random(attack.SEED)
    end = time.monotonic() + seconds
    while alive and time.monotonic() < end:
        for s in list(alive):  # a byte now and then must not move the deadline
            try:
                s.sendall(byte * rng.randint(1, 5))
            except OSError:
                alive.discard(s)
        pause = time.monotonic() + rng.uniform(0.05, 0.35)
        while alive and (left := pause - time.monotonic()) > 0:
            for s in select.select(list(alive), [], [], left)[0]:
                answer = b""
                with contextlib.suppress(OSError):
                    answer = s.recv(4096)
                if answer:
                    told.append(answer)
                if not answer or answer_ends:
                    alive.discard(s)
    return told, alive


@against(18)
class SlowHeads(AttackTest):
    def test_slowloris_gets_408_at_the_absolute_deadline_and_its_slot_is_freed(self):
        server = self.start("--header-timeout-ms", 1000, "--max-connections", 256)
        with self.attack(server):
            drips = [server.connect() for _ in range(100)]
            start = time.monotonic()
            for s in drips:
                s.sendall(b"GET / HTTP/1.1\r\n")
            told, alive = drip(drips, b"x", 5)
            self.assertFalse(alive, "some are still open")
            self.assertLess(time.monotonic() - start, 3.0)
            self.assertTrue(told)  # a reset may overtake it: they never stop sending
            for answer in told:
                self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
            for s in drips:
                s.close()
        self.assertGreaterEqual(server.stats()["closed"]["header_timeout"], 100)

    def check_that_newcomers_get_in_beside(self, half):
        server = self.start("--header-timeout-ms", 60000, "--max-connections", 128)
        with self.attack(server):
            drips = [server.connect() for _ in range(200)]
            for s in drips:
                with contextlib.suppress(OSError):  # turned away
                    s.sendall(half)

            def newcomer_is_served():
                with server.connect() as s:
                    s.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
                    return self.answer_of(s).startswith(b"HTTP/1.1 200 ")
            self.until(newcomer_is_served)
            self.assertGreaterEqual(sum(newcomer_is_served() for _ in range(40)), 38)
            for s in drips:
                s.close()
        stats = server.stats()
        self.assertGreaterEqual(stats["closed"]["idle_pressure"], 20)
        self.assertEqual(stats["closed"]["header_timeout"], 0)

    def test_newcomers_get_in_though_half_heads_took_every_place(self):
        self.check_that_newcomers_get_in_beside(b"GET / HTTP/1.1\r\n")

    def test_newcomers_get_in_though_half_prefaces_took_every_place(self):
        self.check_that_newcomers_get_in_beside(b"PRI * HTTP/2.0\r\n")

    def test_a_slow_head_is_told_408(self):
        server = self.start("--header-timeout-ms", 300)
        with self.attack(server):
            s = server.connect()
            s.sendall(b"GET / HTTP/1.1\r\nhost:")
            self.assertTrue(self.answer_of(s).startswith(b"HTTP/1.1 408 "))
            s.close()
        stats = server.stats()
        self.assertEqual(stats["closed"]["header_timeout"], 1)
        self.assertEqual(stats["responses_4xx"], 1)


@against(19)
class SlowBodies(AttackTest):
    def test_a_head_without_its_body_holds_no_arena_and_is_told_408(self):
        server = self.start("--body-timeout-ms", 1000, "--body-min-rate", 1000, "--arenas", 4,
                            "--arena-size", 65536)
        with self.attack(server):
            heads = [server.connect() for _ in range(50)]
            for s in heads:
                s.sendall(b"POST /arena HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n")
            with server.connect() as s:  # one whose body comes, meanwhile
                s.sendall(b"POST /arena HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello")
                self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 200 "))
            self.assertLessEqual(server.stats()["arenas"]["peak"], 1)
            for s in heads:
                self.assertTrue(self.answer_of(s).startswith(b"HTTP/1.1 408 "))
                s.close()
        self.assertGreaterEqual(server.stats()["closed"]["body_timeout"], 50)

    def test_rudy_is_cut_off_by_the_minimum_rate_and_holds_no_arena(self):
        server = self.start("--body-timeout-ms", 1000, "--body-min-rate", 1000)
        with self.attack(server):
            slow = [server.connect() for _ in range(50)]
            for s in slow:
                s.sendall(b"POST /echo HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\n")
            self.assertFalse(drip(slow, b"y", 6, answer_ends=False)[1], "some are still open")
            for s in slow:
                s.close()
        self.assertGreaterEqual(server.stats()["closed"]["body_timeout"], 50)


@against(20)
class SlowReaders(AttackTest):
    def test_a_client_that_does_not_read_is_closed_and_does_not_drain_the_write_pool(self):
        server = self.start("--write-timeout-ms", 1000, "--write-min-rate", 1000,
                            "--write-buffers", 128, "--max-connections", 64)
        with self.attack(server):
            slow = [server.connect(receive_buffer=4096) for _ in range(20)]
            for s in slow:
                s.sendall(b"GET /bytes/50000000 HTTP/1.1\r\nhost: t\r\n\r\n")
            self.until(lambda: sum(server.stats()["closed"][r] for r in
                                   ("write_timeout", "backpressure")) >= 20, 8)
            stats = server.stats()
            # The more is out, the smaller each one's share: the pool cannot be drained.
            self.assertEqual(stats["write_buffers"]["exhausted"], 0)
            self.assertLess(stats["write_buffers"]["peak"], 128 * 0.6)
            for s in slow:
                s.close()


@against(21)
class Floods(AttackTest):
    def test_a_connection_flood_never_spins_and_newcomers_get_in_by_closing_idle_ones(self):
        server = self.start("--max-connections", 128, "--loops", 1)
        with self.attack(server) as bystander:
            flood = [server.connect() for _ in range(1000)]

            def turned_away():
                stats = server.stats()
                return stats["closed"]["idle_pressure"] + sum(
                    stats["refused"][r] for r in ("connections", "pressure", "pressure_share"))
            self.until(lambda: turned_away() >= 1000 - 128)
            self.assert_not_busy(server, bystander)
            self.assertLessEqual(server.stats()["connections"]["peak"], 128)
            for s in flood:
                s.close()

    def test_one_source_cannot_take_every_place(self):
        server = self.start("--max-connections", 256, "--connections-per-source", 20)
        with self.attack(server):
            flood = [server.connect() for _ in range(17)]  # beside the bystander and /stats
            for s in flood:
                s.sendall(b"GET / HTTP/1.1\r\nhost:")
            self.until(lambda: server.stats()["read_regions"]["used"] >= 17)
            beyond = [server.connect() for _ in range(100)]
            answers = [self.answer_of(s) for s in beyond]
            for s in flood + beyond:
                s.close()
            refused = server.stats()["refused"]["source"]
            self.assertLessEqual(server.stats()["connections"]["peak"], 20)
        self.assertGreaterEqual(refused, 98)
        self.assertGreaterEqual(sum(a.startswith(b"HTTP/1.1 503 ") for a in answers), 90)

    def test_running_out_of_descriptors_pauses_and_recovers(self):
        server = self.start("--max-connections", 256, "--loops", 1, open_files=64)
        with self.attack(server) as bystander:
            flood = [server.connect() for _ in range(200)]
            for s in flood:
                s.sendall(b"GET / HTTP/1.1\r\nhost:")  # none of them is idle
            # It spins on EMFILE if it does. Whoever asks for its numbers must wait outside.
            self.assert_not_busy(server, bystander)
            for s in flood:
                s.close()
            self.until(lambda: server.stats()["refused"]["no_fds"] > 0, 5)

    @against(28)
    def test_ten_thousand_pipelined_requests_are_served_one_by_one_in_flat_memory(self):
        server = self.start("--max-connections", 64)
        with self.attack(server):
            s = server.connect(timeout=30)
            s.sendall(GET)
            s.recv(4096)
            memory = server.memory_bytes()
            count = 10000
            sender = threading.Thread(target=s.sendall, args=(GET * count,), daemon=True)
            sender.start()
            answers, rest = 0, b""
            while answers < count:
                piece = s.recv(1 << 20)
                self.assertTrue(piece, f"closed after {answers}")
                rest += piece
                found = rest.count(b"HTTP/1.1 200")
                answers += found
                rest = rest[rest.rfind(b"HTTP/1.1 200") + 12:] if found else rest[-12:]
            sender.join()
            stats = server.stats()
            self.assertLessEqual(stats["read_regions"]["peak"], 8)
            self.assertGreaterEqual(stats["responses_2xx"], count)
            self.assertLess(server.memory_bytes() - memory, 1 << 20, "memory is not flat")
            s.close()


@against(24)
class Ambiguity(AttackTest):
    VECTORS = {
        "cl_te": b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 4\r\ntransfer-encoding: chunked"
                 b"\r\n\r\n0\r\n\r\n",
        "cl_twice": b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\n"
                    b"abcde",
        "cl_signed": b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: +4\r\n\r\nabcd",
        "te_twice": b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked, chunked\r\n\r\n"
                    b"0\r\n\r\n",
        "bare_lf": b"GET / HTTP/1.1\nhost: t\n\n",
        "obs_fold": b"GET / HTTP/1.1\r\nhost: t\r\na: b\r\n c\r\n\r\n",
        "space_colon": b"GET / HTTP/1.1\r\nhost : t\r\n\r\n",
        "nul": b"GET / HTTP/1.1\r\nhost: t\r\na: \0\r\n\r\n",
        "te_in_10": b"POST / HTTP/1.0\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunk_size": b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
                      b"0x5\r\nhello\r\n0\r\n\r\n",
        "two_hosts": b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    }

    def test_ambiguous_framing_is_refused_and_what_follows_is_never_a_request(self):
        server = self.start()
        with self.attack(server):
            for name, vector in self.VECTORS.items():
                with self.subTest(name):
                    before = server.stats()
                    s = server.connect()
                    s.sendall(vector + b"GET /smuggled HTTP/1.1\r\nhost: t\r\n\r\n")
                    answer = self.answer_of(s)
                    s.close()
                    self.assertRegex(answer, rb"^HTTP/1\.1 (400|501) ", name)
                    self.assertEqual(answer.count(b"HTTP/1.1 "), 1, name)
                    after = server.stats()
                    # One refusal, and no answer to /smuggled, which would be a 404 of its own.
                    errors = sum(after[r] - before[r] for r in ("responses_4xx", "responses_5xx"))
                    self.assertEqual(errors, 1, name)
                    self.until(lambda n=before["closed"]["parse_error"]:
                               server.stats()["closed"]["parse_error"] == n + 1)


@against(26)
class Expect(AttackTest):
    HEAD = b"POST /arena HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"

    def test_100_is_sent_before_the_body_and_the_connection_stays_usable(self):
        server = self.start()
        with self.attack(server):
            s = server.connect()
            s.sendall(self.HEAD)
            self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 100 "))
            s.sendall(b"hello")
            self.assertIn(b"hello", s.recv(4096))
            s.sendall(GET)
            self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 200"))
            s.close()
        self.assertEqual(server.stats()["responses_1xx"], 1)

    def test_a_body_that_does_not_wait_for_100_is_read_as_the_body(self):
        server = self.start()
        with self.attack(server):
            s = server.connect()
            s.sendall(self.HEAD + b"hello" + GET)
            got = b""
            while got.count(b"HTTP/1.1 200") < 2:
                got += s.recv(4096)
            self.assertIn(b"hello", got)
            s.close()
        self.assertLessEqual(server.stats()["responses_1xx"], 1)
        self.assertEqual(server.stats()["closed"]["parse_error"], 0)

    def test_a_final_answer_before_the_body_leaves_no_bytes_to_be_misread(self):
        server = self.start()
        with self.attack(server):
            s = server.connect()
            body = b"GET /smuggled HTTP/1.1\r\nh: t\r\n\r\n"  # looks like a request
            s.sendall(b"POST /echo HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\n"
                      b"content-length: %d\r\n\r\n" % len(body))
            first = s.recv(4096)  # /echo answers at once, without waiting for the body
            self.assertTrue(first.startswith(b"HTTP/1.1 200 "))
            self.assertIn(b"connection: close\r\n", first)
            try:
                s.sendall(body + GET)
                rest = first + self.answer_of(s)
            except OSError:
                rest = first
            self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d{3} ", rest)), 1)
            s.close()
        stats = server.stats()
        self.assertEqual(stats["responses_1xx"], 0, "nobody was invited")
        self.assertEqual(stats["responses_4xx"], 0, "the body was taken for a request")

    def test_one_who_is_invited_and_never_comes_is_cut_off_and_holds_no_arena(self):
        server = self.start("--body-timeout-ms", 1000, "--body-min-rate", 1000, "--arenas", 4)
        with self.attack(server):
            waiting = [server.connect() for _ in range(50)]
            for s in waiting:
                s.sendall(self.HEAD)
            for s in waiting:
                self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 100 "))
            self.assertEqual(server.stats()["arenas"]["used"], 0)
            for s in waiting:
                self.assertTrue(self.answer_of(s).startswith(b"HTTP/1.1 408 "))
                s.close()
        stats = server.stats()
        self.assertEqual(stats["responses_1xx"], 50)
        self.assertGreaterEqual(stats["closed"]["body_timeout"], 50)

    def test_an_unknown_expectation_is_417(self):
        server = self.start()
        with self.attack(server):
            s = server.connect()
            s.sendall(b"POST /arena HTTP/1.1\r\nhost: t\r\nexpect: more\r\n"
                      b"content-length: 1\r\n\r\na")
            self.assertTrue(self.answer_of(s).startswith(b"HTTP/1.1 417 "))
            s.close()
        stats = server.stats()
        self.assertEqual((stats["responses_1xx"], stats["responses_4xx"]), (0, 1))


@against(27)
class Upgrade(AttackTest):
    def test_a_refused_upgrade_leaves_the_framing_intact(self):
        server = self.start()
        with self.attack(server):
            s = server.connect()
            s.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\n"
                      b"upgrade: websocket\r\n\r\n" +
                      GET)
            got = b""
            while got.count(b"HTTP/1.1 200") < 2:
                piece = s.recv(4096)
                self.assertTrue(piece)
                got += piece
            self.assertNotIn(b" 101 ", got)
            stats = server.stats()
            self.assertEqual(stats["tunnels"], 0)
            self.assertEqual(stats["responses_1xx"], 0)
            self.assertEqual(stats["closed"]["parse_error"], 0)
            s.close()


if __name__ == "__main__":
    attack.raise_open_files()
    attack.main(sys.argv)
