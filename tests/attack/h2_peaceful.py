"""What looks like an HTTP/2 attack and is none: it must be served to its end."""

import time

import attack
import h2_wire as wire
from catalog import against
from h2_attacks import H2AttackTest
from h2_wire import Client, frame, reset


@against()
class Peaceful(H2AttackTest):
    """What looks like an attack and is none: everybody lives."""

    def test_a_browser_that_cancels_a_hundred_streams(self):
        server = self.attacked()
        with Client(server).settle() as c:
            streams = [c.request("/slow/300") for _ in range(100)]
            for stream in streams:
                c.send(reset(stream))
            self.assertEqual(c.get("/")[0], 200)
            self.assertIsNone(c.goaway())

    def test_a_client_that_resets_after_each_reply_five_thousand_times(self):
        server = self.attacked()
        with Client(server).settle() as c:
            for _ in range(5000):
                stream = c.request("/")
                self.assertEqual(c.response(stream)[0], 200)
                self.assertTrue(c.send(reset(stream)))
                c.frames.clear()
            self.assertTrue(c.alive())
            self.assertIsNone(c.goaway())

    def test_a_legal_continuation_sent_byte_by_byte(self):
        server = self.attacked()
        with Client(server).settle() as c:
            block, stream = c.block(), c.new_id()
            c.send(frame(wire.HEADERS, wire.END_STREAM, stream, block[:20]))
            for byte in frame(wire.CONTINUATION, wire.END_HEADERS, stream, block[20:]):
                c.send(bytes([byte]))
                time.sleep(0.001)
            self.assertEqual(c.response(stream)[0], 200)

    def test_ten_thousand_requests_on_one_connection(self):
        server = self.attacked()
        with Client(server).settle() as c:
            for _ in range(200):
                first = c.next_id
                c.send(b"".join(c.headers("/")[1] for _ in range(50)))
                last = c.next_id - 2
                self.assertTrue(c.read_until(lambda: sum(
                    f.type == wire.DATA and "END_STREAM" in f.flags for f in c.frames) >= 50, 10))
                self.assertFalse(c.count(wire.RST_STREAM), (first, last))
                c.frames.clear()
            self.assertIsNone(c.goaway())


if __name__ == "__main__":
    import sys
    attack.raise_open_files()
    attack.main(sys.argv)
