#!/usr/bin/python3
"""The HTTP/2 attacks over a real socket, one class per kind, and what must not be taken for one.
Frames and header blocks are made by h2_wire, which shares nothing with the server's codec."""

import struct
import time

import attack
import h2_wire as wire
from attack import AttackTest
from catalog import against
from h2_wire import Client, frame, indexed, literal, remembered, reset, settings, window_update

CALM = (wire.ENHANCE_YOUR_CALM, wire.PROTOCOL_ERROR)


class H2AttackTest(AttackTest):
    def attacked(self, *options):
        return self.start(*options)

    def assert_glitches(self, server, kind, at_least=1):
        found = server.stats()["http2_glitches"][kind]
        self.assertGreaterEqual(found, at_least, kind)

    def assert_ended(self, server, why, at_least=1):
        found = server.stats()["http2_ended"]
        self.assertGreaterEqual(found[why], at_least, f"{why}: {found}")

    def assert_flood_ends(self, server, data, times, glitch, request=False):
        """A peer that reads all we answer, and sends `data` until it is thrown out."""
        with self.attack(server):
            with Client(server).settle() as c:
                if request:
                    c.get("/")
                c.flood(data, times)
                self.assertIn(c.ended(), CALM)
        self.assert_glitches(server, glitch, 100)
        # Told to leave at three quarters of the score; closed then, or at the whole of it.
        self.assertGreaterEqual(server.stats()["http2_goaways"], 1)

    def assert_deaf_flood_is_bounded(self, server, data, times):
        """A peer that never reads: what waits for it stays small, whatever it sends."""
        with self.attack(server):
            with Client(server, ack=False, receive_buffer=4096) as c:
                c.flood(data, times, read=False, seconds=3)
                self.assertLessEqual(server.stats()["write_buffers"]["used"], 9)


class ControlFloods(H2AttackTest):
    PING = frame(wire.PING, 0, 0, b"12345678")
    PRIORITY = frame(wire.PRIORITY, 0, 1, struct.pack(">IB", 3, 10))
    SETTINGS = settings(window=65535)

    @against(2)
    def test_ping_flood_is_ended_though_the_peer_reads(self):
        self.assert_flood_ends(self.attacked(), self.PING, 100000, "ping_flood")

    @against(2)
    def test_ping_flood_to_a_deaf_peer_holds_no_more_than_the_queue(self):
        self.assert_deaf_flood_is_bounded(self.attacked(), self.PING, 200000)

    @against(3)
    def test_priority_churn_is_ended(self):
        self.assert_flood_ends(self.attacked(), self.PRIORITY, 100000, "priority_flood")

    @against(5)
    def test_settings_flood_is_ended_though_the_peer_reads(self):
        self.assert_flood_ends(self.attacked(), self.SETTINGS, 100000, "settings_flood")

    @against(5)
    def test_settings_flood_to_a_deaf_peer_holds_no_more_than_the_queue(self):
        self.assert_deaf_flood_is_bounded(self.attacked(), self.SETTINGS, 100000)

    @against(16)
    def test_window_update_flood_is_ended(self):
        self.assert_flood_ends(self.attacked(), window_update(0, 1), 100000,
                               "window_update_flood")

    @against(8)
    def test_unknown_frames_without_end_are_ended(self):
        self.assert_flood_ends(self.attacked(), frame(0xbb, 0, 0, b"x"), 100000, "unknown_frame")

    @against(5)
    def test_a_settings_frame_with_too_many_entries_is_an_error(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(frame(wire.SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * 33))
                self.assertIn(c.ended(), CALM)
        self.assert_ended(server, "settings")

    @against(14)
    def test_header_table_flips_leave_memory_where_it_was(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for size in (0, 1 << 20, 4096, 0, 65536):
                    c.send(settings(table=size))
                    self.assertEqual(c.get("/")[0], 200)
                c.flood(settings(table=0) + settings(table=1 << 30), 50000)
                self.assertIn(c.ended(), CALM)


class Resets(H2AttackTest):
    @against(9)
    def test_rapid_reset_is_ended_and_never_takes_more_streams_than_allowed(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for _ in range(20000):
                    stream, data = c.headers("/slow/1000")
                    if not c.send(data + reset(stream)):
                        break
                c.read_until(lambda: c.closed, 5)
                self.assertTrue(c.closed)
            self.assertLessEqual(server.stats()["streams"]["peak"], 100 + 8)
        self.assert_glitches(server, "early_reset", 100)

    @against(4)
    def test_streams_beyond_the_limit_are_refused_and_counted(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for _ in range(400):
                    if not c.send(c.headers("/slow/1500")[1]):
                        break
                c.read_until(lambda: c.count(wire.RST_STREAM) >= 300, 3)
                self.assertGreaterEqual(
                    c.count(wire.RST_STREAM, error_code=wire.REFUSED_STREAM), 250)
        self.assert_glitches(server, "refused_stream", 250)

    @against(4)
    def test_resets_for_a_deaf_peer_are_no_more_than_the_queue(self):
        server = self.attacked()
        malformed = literal("x", "y")  # a head without :method: each stream must be reset
        with self.attack(server):
            with Client(server, ack=False, receive_buffer=4096) as c:
                c.s.settimeout(1.0)
                for first in range(1, 60001, 32):  # many at once, so that they are read at once
                    heads = [frame(wire.HEADERS, 0x5, stream, malformed)
                             for stream in range(first, first + 32, 2)]
                    try:
                        if not c.send(b"".join(heads)):
                            break
                    except TimeoutError:
                        break
        self.assert_glitches(server, "malformed_message", 10)
        self.assertGreaterEqual(server.stats()["http2_outbound_frames_peak"], 8)

    @against(15)
    def test_windows_opened_byte_by_byte_do_not_keep_their_streams(self):
        server = self.attacked("--write-timeout-ms", 1000, "--write-min-rate", 1000)
        with self.attack(server):
            with Client(server, {"window": 0}).settle() as c:
                streams = [c.request("/bytes/100000") for _ in range(40)]
                end = time.monotonic() + 8
                while not c.closed and time.monotonic() < end:
                    c.send(b"".join(window_update(s, 1) for s in streams))
                    if c.read_until(lambda: c.count(wire.RST_STREAM) >= 40, 0.2):
                        break
                self.assertTrue(c.closed or c.count(wire.RST_STREAM) >= 40)
        self.assertGreaterEqual(server.stats()["http2_aborted"]["write_timeout"], 40)

    @against(17)
    def test_unacknowledged_settings_refused_streams_and_a_deaf_peer(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server, ack=False, receive_buffer=4096) as c:
                for _ in range(30000):
                    try:
                        c.s.settimeout(1.0)
                        if not c.send(c.headers("/slow/2000")[1]):
                            break
                    except TimeoutError:
                        break
                stats = server.stats()
                self.assertLessEqual(stats["streams"]["peak"], 110)
            self.until(lambda: server.stats()["streams"]["used"] <= 1, 5)

    @against(17)
    def test_settings_that_are_never_acknowledged_end_the_connection(self):
        server = self.attacked("--settings-ack-timeout-ms", 500)
        with self.attack(server):
            with Client(server, ack=False) as c:
                self.assertEqual(c.ended(), 4)  # SETTINGS_TIMEOUT
        self.assert_ended(server, "settings_timeout")


@against(11)
class MadeYouReset(H2AttackTest):
    """Each makes the server itself reset streams it has begun to work on."""

    def made(self, spoil, glitch, method="GET", end=True):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for _ in range(5000):
                    stream, data = c.headers("/slow/500", method, end)
                    if not c.send(data + spoil(stream)):
                        break
                c.read_until(lambda: c.closed, 5)
                self.assertTrue(c.closed, "it could go on")
            self.assertLessEqual(server.stats()["streams"]["peak"], 108)
        if glitch:
            self.assert_glitches(server, glitch, 100)

    def test_window_update_by_zero(self):
        self.made(lambda s: window_update(s, 0), "window_update_zero")

    def test_window_update_overflow(self):
        self.made(lambda s: window_update(s, 0x7fffffff) * 2, "window_overflow")

    def test_priority_of_a_wrong_length(self):
        self.made(lambda s: frame(wire.PRIORITY, 0, s, b"1234"), "bad_priority")

    def test_priority_on_itself(self):
        self.made(lambda s: frame(wire.PRIORITY, 0, s, struct.pack(">IB", s, 1)),
                  "self_dependency")

    def test_headers_after_the_end(self):
        # A connection error, as the standard says: the first one ends it.
        self.made(lambda s: frame(wire.HEADERS, 5, s, literal("x", "y")), None)

    def test_data_after_the_end(self):
        self.made(lambda s: frame(wire.DATA, 0, s, b"more"), None)

    def test_more_data_than_content_length_said(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for _ in range(3000):
                    stream, data = c.headers("/echo", "POST", False, [("content-length", "1")])
                    if not c.send(data + frame(wire.DATA, 1, stream, b"22")):
                        break
                c.read_until(lambda: c.closed, 5)
                self.assertTrue(c.closed)
        self.assert_glitches(server, "content_length_mismatch", 100)


class HeaderBlocks(H2AttackTest):
    @against(10)
    def test_continuation_flood_is_cut_off(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(frame(wire.HEADERS, wire.END_STREAM, 1, c.block()))
                c.flood(frame(wire.CONTINUATION, 0, 1, literal("a" * 10, "b" * 900)), 100000)
                self.assertIn(c.ended(), CALM)
        self.assert_ended(server, "header_block")

    @against(8, 10)
    def test_empty_continuations_are_cut_off(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(frame(wire.HEADERS, wire.END_STREAM, 1, c.block()))
                c.flood(frame(wire.CONTINUATION, 0, 1), 100000)
                self.assertIn(c.ended(), CALM)

    @against(10)
    def test_a_block_that_never_ends_meets_its_deadline(self):
        server = self.attacked("--header-timeout-ms", 500)
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(frame(wire.HEADERS, wire.END_STREAM, 1, c.block()))
                start = time.monotonic()
                c.ended()
                self.assertLess(time.monotonic() - start, 3)
        self.assert_ended(server, "header_timeout")

    @against(18)
    def test_a_head_that_drips_meets_the_same_deadline(self):
        server = self.attacked("--header-timeout-ms", 700)
        with self.attack(server):
            with Client(server).settle() as c:
                data = c.headers()[1]
                start = time.monotonic()
                for byte in data:
                    if not c.send(bytes([byte])) or time.monotonic() - start > 3:
                        break
                    c.read_until(lambda: c.closed, 0.1)
                c.ended()

    @against(18)
    def test_a_preface_that_drips_meets_the_deadline(self):
        server = self.attacked("--header-timeout-ms", 500)
        with self.attack(server):
            with Client(server, greet=False) as c:
                for i in range(len(wire.PREFACE) - 1):
                    if not c.send(wire.PREFACE[i:i + 1]):
                        break
                    c.read_until(lambda: c.closed, 0.1)
                self.assertTrue(c.closed)

    @against(12)
    def test_hpack_bomb_is_refused_and_the_next_request_is_served(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                bomb = c.block() + remembered("bomb", "x" * 4000) + indexed(62) * 12000
                stream = c.new_id()
                c.send(frame(wire.HEADERS, 0x5, stream, bomb))
                status, code = c.response(stream)
                self.assertTrue(status == 431 or code in CALM, (status, code))
                self.assertEqual(c.get("/")[0], 200)
        self.assert_glitches(server, "headers_too_large")

    @against(13)
    def test_cookie_crumbs_count_each(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                stream = c.new_id()
                c.send(frame(wire.HEADERS, 0x5, stream,
                             c.block() + remembered("cookie", "a") + indexed(62) * 4000))
                status, code = c.response(stream)
                self.assertTrue(status == 431 or code in CALM, (status, code))
                self.assertEqual(c.get("/")[0], 200)

    @against(13)
    def test_bombs_held_by_closed_windows_stay_within_the_ceiling_and_are_let_go(self):
        server = self.attacked("--write-timeout-ms", 1000, "--write-min-rate", 1000,
                               "--streams", 512)
        with self.attack(server):
            clients = [Client(server, {"window": 0}).settle() for _ in range(4)]
            for c in clients:
                for _ in range(95):
                    # As many and as large fields as are allowed, each two bytes on the wire.
                    big = remembered("x-big", "y" * 100) + indexed(62) * 80
                    if not c.send(frame(wire.HEADERS, 0x5, c.new_id(), c.block() + big)):
                        break
            self.until(lambda: server.stats()["streams"]["used"] <= 1, 8)
            for c in clients:
                c.s.close()

    @against(6)
    def test_empty_names_are_malformed(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                for _ in range(3000):
                    stream = c.new_id()
                    if not c.send(frame(wire.HEADERS, 0x5, stream, c.block() + b"\x00\x00\x00")):
                        break
                c.read_until(lambda: c.closed, 5)
                self.assertTrue(c.closed)
        self.assert_glitches(server, "malformed_message", 100)

    @against(12)
    def test_a_block_that_does_not_decode_ends_the_connection(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(frame(wire.HEADERS, 0x5, c.new_id(), indexed(200)))
                self.assertEqual(c.ended(), 9)  # COMPRESSION_ERROR
        self.assert_ended(server, "compression")


class Bodies(H2AttackTest):
    @against(8)
    def test_empty_data_frames_are_ended(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                stream = c.request("/echo", "POST", end=False)
                c.flood(frame(wire.DATA, 0, stream), 100000)
                self.assertIn(c.ended(), CALM)
        self.assert_glitches(server, "empty_frame", 50)

    @against()
    def test_one_empty_frame_that_ends_the_body_is_fine(self):
        server = self.attacked()
        with Client(server).settle() as c:
            stream = c.request("/echo", "POST", end=False)
            c.send(frame(wire.DATA, 0, stream, b"hello") + frame(wire.DATA, 1, stream))
            self.assertEqual(c.response(stream), (200, b"hello"))

    @against(19)
    def test_slow_bodies_are_cut_off_by_the_minimum_rate(self):
        server = self.attacked("--body-timeout-ms", 700, "--body-min-rate", 1000,
                               "--body-leases", 64, "--arenas", 32)
        with self.attack(server):
            with Client(server).settle() as c:
                streams = [c.request("/arena", "POST", end=False) for _ in range(20)]
                start = time.monotonic()
                while time.monotonic() - start < 6 and not c.closed:
                    if not c.send(b"".join(frame(wire.DATA, 0, s, b"y") for s in streams)):
                        break
                    if c.read_until(lambda: c.count(wire.RST_STREAM) >= 20, 0.2):
                        break
                self.assertTrue(c.closed or c.count(wire.RST_STREAM) >= 20)
            self.until(lambda: server.stats()["arenas"]["used"] == 0, 2)
        self.assertGreaterEqual(server.stats()["http2_aborted"]["body_timeout"], 20)

    @against(7)
    def test_data_beyond_the_window_is_an_error_and_takes_no_memory(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                stream = c.request("/slow/2000", "POST", end=False)
                c.flood(frame(wire.DATA, 0, stream, b"z" * 16000), 100)
                c.read_until(lambda: c.closed or c.count(wire.RST_STREAM) > 0, 3)
                self.assertTrue(c.closed or c.count(wire.RST_STREAM) > 0)

    @against(19)
    def test_bodies_beyond_all_leases_are_refused_and_others_go_on(self):
        server = self.attacked("--body-leases", 16)
        with self.attack(server):
            clients = [Client(server).settle() for _ in range(4)]
            for c in clients:
                for _ in range(50):
                    c.request("/slow/1000", "POST", end=False)
            self.until(lambda: server.stats()["refused"]["body_lease"] >= 4 * 50 - 16)
            self.assertLessEqual(server.stats()["body_leases"]["peak"], 16)
            for c in clients:
                c.s.close()


class Readers(H2AttackTest):
    SLOW = ("--write-timeout-ms", 1000, "--write-min-rate", 1000)

    @against(1)
    def test_data_dribble_is_ended(self):
        server = self.attacked(*self.SLOW)
        with self.attack(server):
            with Client(server, {"window": 1}).settle() as c:
                streams = [c.request("/bytes/1000000") for _ in range(90)]
                end = time.monotonic() + 8
                while not c.closed and time.monotonic() < end:
                    c.send(b"".join(window_update(s, 1) for s in streams))
                    if c.read_until(lambda: c.count(wire.RST_STREAM) >= 90, 0.1):
                        break
                self.assertTrue(c.closed or c.count(wire.RST_STREAM) >= 90)

    @against(15)
    def test_a_closed_window_frees_its_stream_in_time(self):
        server = self.attacked(*self.SLOW)
        with self.attack(server):
            with Client(server, {"window": 0}).settle() as c:
                for _ in range(50):
                    c.request("/bytes/100000")
                self.until(lambda: server.stats()["streams"]["used"] <= 1, 6)
                self.assertTrue(c.closed or c.alive() or c.goaway() is not None)

    @against(7)
    def test_open_windows_and_a_socket_that_is_not_read(self):
        server = self.attacked(*self.SLOW, "--write-buffers", 128)
        with self.attack(server):
            with Client(server, {"window": 0x7fffffff}, receive_buffer=4096) as c:
                for _ in range(50):
                    c.request("/bytes/50000000")
                self.until(lambda: server.stats()["streams"]["used"] <= 1, 8)
                self.assertLessEqual(server.stats()["write_buffers"]["peak"], 24)


class Strange(H2AttackTest):
    """Requests that would mean something else to an HTTP/1 server behind us."""

    BAD = {
        "newline in a value": [("x", "a\r\nb: c")],
        "zero in a value": [("x", "a\0b")],
        "upper case name": [("X-Upper", "a")],
        "colon in a name": [("a:b", "c")],
        "space in a name": [("a b", "c")],
        "newline in a name": [("a\nb", "c")],
        "connection": [("connection", "keep-alive")],
        "transfer-encoding": [("transfer-encoding", "chunked")],
        "te": [("te", "gzip")],
        "upgrade": [("upgrade", "h2c")],
        "second path": [(":path", "/other")],
        "late pseudo": [("a", "b"), (":authority", "late")],
        "unknown pseudo": [(":unknown", "x")],
        "bad length": [("content-length", "+5")],
        "two lengths": [("content-length", "0"), ("content-length", "1")],
    }

    @against(25)
    def test_malformed_requests_are_reset_and_the_connection_lives(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                before = server.stats()["http2_requests"]
                for name, extra in self.BAD.items():
                    with self.subTest(name):
                        status, code = c.response(c.request("/", extra=extra))
                        self.assertTrue(status == 400 or code == wire.PROTOCOL_ERROR,
                                        (name, status, code))
                for missing in (":method", ":scheme", ":path"):
                    stream, data = c.headers(leave_out=(missing,))
                    c.send(data)
                    status, code = c.response(stream)
                    self.assertTrue(status == 400 or code == wire.PROTOCOL_ERROR, missing)
                for path in ("", "no-slash", "/with space"):
                    status, code = c.response(c.request(path))
                    self.assertTrue(status == 400 or code == wire.PROTOCOL_ERROR, path)
                self.assertEqual(server.stats()["http2_requests"], before, "a handler saw one")
                self.assertEqual(c.get("/")[0], 200)
        self.assert_glitches(server, "malformed_message", len(self.BAD))

    @against(27)
    def test_connect_and_upgrade_are_not_tunnels(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                stream, data = c.headers(method="CONNECT", leave_out=(":scheme", ":path"))
                c.send(data)
                status, code = c.response(stream)
                self.assertTrue(status in (400, 404, 405, 501) or code is not None, (status, code))
                self.assertEqual(c.get("/")[0], 200)
        self.assertEqual(server.stats()["tunnels"], 0)

    @against(26)
    def test_expect_is_answered_before_the_body(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                stream = c.request("/arena", "POST", False, [("expect", "100-continue")])
                self.assertTrue(c.read_until(lambda: c.count(wire.HEADERS) >= 1, 3))
                self.assertEqual(server.stats()["arenas"]["used"], 0, "held by one who only asks")
                c.send(frame(wire.DATA, 1, stream, b"hello"))
                self.assertEqual(c.response(stream), (200, b"hello"))
        self.assertEqual(server.stats()["responses_1xx"], 1)

    @against(28)
    def test_a_thousand_requests_in_one_flight_are_all_answered_or_refused(self):
        server = self.attacked()
        with self.attack(server):
            with Client(server).settle() as c:
                c.send(b"".join(c.headers("/")[1] for _ in range(1000)))
                def all_over():
                    return len({f.stream_id for f in c.frames if f.stream_id and
                                ("END_STREAM" in f.flags or f.type == wire.RST_STREAM)}) >= 1000
                self.assertTrue(c.read_until(all_over, 10))


class Floods(H2AttackTest):
    @against(21)
    def test_idle_http2_connections_make_room_for_newcomers(self):
        server = self.start("--max-connections", 64, "--http2-sessions", 64, "--loops", 1)
        with self.attack(server):
            flood = [Client(server) for _ in range(300)]

            def turned_away():
                stats = server.stats()
                return stats["closed"]["idle_pressure"] + sum(
                    stats["refused"][r] for r in ("connections", "pressure", "pressure_share"))
            self.until(lambda: turned_away() >= 300 - 64)
            self.assertLessEqual(server.stats()["connections"]["peak"], 64)
            for c in flood:
                c.s.close()


if __name__ == "__main__":
    import sys
    attack.raise_open_files()
    attack.main(sys.argv)
