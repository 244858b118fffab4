"""Backends that are killed, paused, slow, rogue or gone: an answer with a reason within the
deadline, and recovery without a restart."""

import signal
import socket
import threading
import time
import unittest

from processes import Origin, ProcessTest, Weir, can_connect, free_port, get, wait_until

QUICK = """
connect_timeout_ms = 300
first_byte_timeout_ms = 400
overall_timeout_ms = 2000
"""


class Rogue:
    """Reads a request, then says what it was told to, and closes."""

    def __init__(self, says):
        self.says = says
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    connection.recv(65536)
                    connection.sendall(self.says)
                except OSError:
                    pass

    def end(self):
        self.listener.close()


class BrokenBackends(ProcessTest):
    def gateway_to(self, *ports):
        return self.started(Weir(config=self.app_config(ports, upstream=QUICK)))

    def answer_within(self, seconds, port, **options):
        began = time.monotonic()
        answer = get(port, **options)
        self.assertLess(time.monotonic() - began, seconds)
        return answer

    def test_killed_and_started_again(self):
        origin = Origin(service_ms=1)
        gateway = self.gateway_to(origin.port)
        self.assertEqual(get(gateway.port).status, 200)
        origin.end()
        gone = self.answer_within(3, gateway.port)
        self.assertIn(gone.status, (502, 503))
        self.assertIn(gone.reason, ("connect_refused", "closed_early"))
        origin = self.started(Origin(service_ms=1, port=origin.port))
        wait_until(lambda: get(gateway.port).status == 200)
        self.assertEqual(gateway.balance(), 0)

    def test_killed_while_it_works(self):
        origin = self.started(Origin(service_ms=2000))
        gateway = self.gateway_to(origin.port)
        answers = []
        asking = threading.Thread(target=lambda: answers.append(get(gateway.port)))
        asking.start()
        wait_until(lambda: gateway.upstream()["in_flight"] == 1)
        origin.child.kill()
        asking.join(10)
        # A GET is sent again; nobody listens, so it is held and then refused.
        self.assertEqual(answers[0].status, 503)
        self.assertIn(answers[0].reason, ("connect_refused", "no_endpoint"))

    def test_paused_and_woken(self):
        origin = self.started(Origin(service_ms=1))
        gateway = self.gateway_to(origin.port)
        self.assertEqual(get(gateway.port).status, 200)
        origin.signal(signal.SIGSTOP)
        stopped = self.answer_within(3, gateway.port)
        self.assertEqual(stopped.status, 504)
        self.assertEqual(stopped.reason, "first_byte_timeout")
        origin.signal(signal.SIGCONT)
        wait_until(lambda: get(gateway.port).status == 200)
        self.assertEqual(gateway.upstream()["in_flight"], 0)

    def test_slower_than_our_patience(self):
        origin = self.started(Origin(service_ms=1000))
        gateway = self.gateway_to(origin.port)
        slow = self.answer_within(3, gateway.port)
        self.assertEqual((slow.status, slow.reason), (504, "first_byte_timeout"))

    def test_garbage_and_worse(self):
        for says, reason in ((b"\x16\x03\x01\x02\x00" * 20, "bad_response"),
                             (b"SSH-2.0-OpenSSH_9.2\r\n", "bad_response"),
                             (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "bad_response"),
                             (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20000, "bad_response"),
                             (b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "bad_response"),
                             (b"HTTP/1.1 200", "truncated"),
                             (b"", "closed_early")):
            with self.subTest(says[:30]):
                rogue = self.started(Rogue(says))
                gateway = self.gateway_to(rogue.port)
                answer = self.answer_within(3, gateway.port)
                self.assertEqual((answer.status, answer.reason), (502, reason))
                self.assertEqual(gateway.balance(), 0)

    def test_one_of_three_is_gone_and_nobody_notices(self):
        origins = [self.started(Origin(service_ms=1)) for _ in range(3)]
        gateway = self.gateway_to(*[origin.port for origin in origins])
        origins[1].child.kill()
        origins[1].child.wait()
        for _ in range(60):
            self.assertEqual(get(gateway.port).status, 200)

    def test_all_gone_then_one_comes_back(self):
        ports = [free_port() for _ in range(3)]
        gateway = self.gateway_to(*ports)
        for _ in range(5):
            gone = self.answer_within(3, gateway.port)
            # Held until the bound, then the reason: refused by itself, or none to ask.
            self.assertEqual(gone.status, 503)
            self.assertIn(gone.reason, ("connect_refused", "no_endpoint"))
            self.assertIn("retry-after", gone.headers)
        self.started(Origin(service_ms=1, port=ports[2]))
        wait_until(lambda: get(gateway.port).status == 200)
        for _ in range(20):
            self.assertEqual(get(gateway.port).status, 200)

    def test_a_deadline_of_a_peer_is_kept(self):
        origin = self.started(Origin(service_ms=1000))
        gateway = self.started(Weir(config=self.app_config(
            [origin.port], '[trust]\npeers = ["127.0.0.1"]\n')))
        answer = self.answer_within(0.9, gateway.port, headers={"x-weir-deadline-ms": "150"})
        self.assertEqual(answer.status, 504)


if __name__ == "__main__":
    unittest.main()
