"""A thread-per-request server under more requests than it can do: everybody gets an answer."""

import re
import socket
import sys
import unittest

from example_process import Example

PROGRAM = sys.argv.pop(1)
LIMIT = 4
CROWD = 60


def ask(port, milliseconds):
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(f"GET /{milliseconds} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    return connection


def answer(connection):
    data = b""
    while piece := connection.recv(4096):
        data += piece
    connection.close()
    head, _, body = data.decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


class BlockingServer(unittest.TestCase):
    def test_everybody_is_answered_and_the_counts_agree(self):
        with Example(PROGRAM, str(LIMIT)) as server:
            self.assertEqual(answer(ask(server.port, 1))[0], 200)
            crowd = [ask(server.port, 300) for _ in range(CROWD)]
            answers = [answer(connection) for connection in crowd]
            served = [a for a in answers if a[0] == 200]
            refused = [a for a in answers if a[0] == 503]
            self.assertEqual(len(served) + len(refused), CROWD)
            self.assertGreaterEqual(len(served), LIMIT)
            self.assertGreater(len(refused), 0)
            for _, head, _ in refused:
                self.assertIn("x-weir-reason: overload", head)
                self.assertGreaterEqual(int(re.search(r"retry-after: (\d+)", head)[1]), 1)
            for _, _, body in served:
                self.assertEqual(body, "done\n")
            self.assertEqual(answer(ask(server.port, 1))[0], 200)  # and it is well afterwards
            self.assertEqual(server.end(),
                             {"admitted": len(served) + 2, "refused": len(refused)})

    def test_whoever_waits_a_little_is_served(self):
        with Example(PROGRAM, "1") as server:
            # The second finds no room, waits less than its 50 ms, and is served: on a machine so
            # busy that it is not, it is told so, and the next pair tries.
            for _ in range(50):
                pair = [ask(server.port, 15), ask(server.port, 1)]
                if [answer(c)[0] for c in pair] == [200, 200]:
                    break
            else:
                self.fail("nobody who waited was ever served")
            server.end()

    def test_a_client_that_vanishes_costs_nothing(self):
        with Example(PROGRAM, "1") as server:
            for _ in range(20):
                ask(server.port, 5).close()
            for _ in range(50):
                if answer(ask(server.port, 1))[0] == 200:
                    break
            else:
                self.fail("the server did not come back")
            server.end()


if __name__ == "__main__":
    unittest.main()
