#!/usr/bin/python3
"""The most memory a server ever held (as the kernel saw it: every resident page, of code too),
beside the ceiling it printed before it served anybody."""

import sys

import attack
from attack import AttackTest
from catalog import against

KILO, MEGA = 1 << 10, 1 << 20


@against()  # not an attack, but the measure of all
class Ceiling(AttackTest):
    def show(self, server, ceiling):
        peak = server.peak_bytes()
        print(f"  {self.id().split('.')[-1]}: {peak >> 10} kB of {ceiling >> 10} kB",
              file=sys.stderr)
        return peak

    def test_what_is_fixed_fits_its_addends(self):
        """With next to no pools, code, libraries, allocator, loops and stacks are all there is."""
        for loops in (1, 8):
            with self.subTest(loops=loops):
                server = self.start("--loops", loops, "--max-connections", 16, "--write-buffers",
                                    16, "--http2", 0, "--arenas", 1, "--arena-size", 4096,
                                    "--pending", 1)
                ceiling = server.stats()["ceiling_bytes"]
                for _ in range(200):
                    server.stats()  # a connection, a request and a small allocation each
                peak = self.show(server, ceiling)
                self.assertLessEqual(peak, ceiling)
                self.assertGreater(peak, ceiling / 10, "an addend that nothing comes near")

    def test_everything_full_at_once(self):
        """Every kind of holder as full as clients can make it, at the same time."""
        arena = 4 * MEGA
        server = self.start("--loops", 2, "--max-connections", 512, "--write-buffers", 512,
                            "--http2", 0,
                            "--arenas", 16, "--arena-size", arena, "--send-buffer", 32 * KILO,
                            "--header-timeout-ms", 30000, "--body-timeout-ms", 30000,
                            "--write-timeout-ms", 30000, "--idle-timeout-ms", 30000)
        ceiling = server.stats()["ceiling_bytes"]
        held = []
        for _ in range(230):  # heads that end one byte short of the bound
            s = server.connect()
            s.sendall(b"GET / HTTP/1.1\r\nhost: t\r\na: " + b"x" * 16000)
            held.append(s)
        for _ in range(170):  # clients that do not read
            s = server.connect(receive_buffer=4096)
            s.sendall(b"GET /bytes/100000000 HTTP/1.1\r\nhost: t\r\n\r\n")
            held.append(s)
        self.until(lambda: server.stats()["write_buffers"]["used"] >= 170)
        fillers = [server.connect() for _ in range(16)]
        for s in fillers:  # bodies that want a little more
            s.sendall(b"POST /queue HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n" % arena)
        for s in fillers:
            s.settimeout(20)
            try:
                s.sendall(b"y" * (arena - 64 * KILO))
            except OSError:
                pass  # refused: the reserve is not for everybody

        looks = []  # it takes in what was sent, and then grows no more; nobody else is let in now

        def full():
            looks.append(server.peak_bytes())
            return len(looks) > 20 and looks[-1] == looks[-20]
        self.until(full)
        peak = self.show(server, ceiling)
        self.assertLessEqual(peak, ceiling)
        self.assertGreater(peak, ceiling / 2, "nothing was filled")
        for s in held + fillers:
            s.close()
        self.until(lambda: server.stats()["connections"]["used"] <= 1)
        stats = server.stats()
        for pool in ("write_buffers", "arenas", "pending_streams", "backpressure"):
            self.assertEqual(stats[pool]["used"], 0, pool)


if __name__ == "__main__":
    attack.raise_open_files()
    attack.main(sys.argv)
