"""`weir probe`, as a container or an orchestrator runs it: the exit status is the answer, and it
comes in bounded time whatever the other side does."""

import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from processes import SIGTERM, WEIR, Process, ProcessTest, Weir, free_port

TO = ("--to", "127.0.0.1:1")  # nobody asks it for anything


def probe(*arguments, **options):
    return subprocess.run([WEIR, "probe", *arguments], capture_output=True, text=True, timeout=20,
                          **options)


class Probe(ProcessTest):
    def gateway(self, **options):
        return self.started(Weir(*TO, **options))

    def test_a_gateway_that_is_well(self):
        port = self.gateway().admin
        for place in (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/",
                      str(port), f":{port}", f"localhost:{port}"):
            for arguments in ((), ("--ready",)):
                with self.subTest(place=place, arguments=arguments):
                    done = probe("--admin", place, *arguments)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = probe(env={**os.environ, "WEIR_ADMIN_LISTEN": f"127.0.0.1:{port}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory(prefix="weir-probe-") as folder:
            path = os.path.join(folder, "admin.sock")
            gateway = self.started(
                Process(WEIR, "run", *TO, "--listen", "127.0.0.1:0", "--admin", f"unix:{path}"))
            gateway.line_with("^weir: ready")
            done = probe("--admin", f"unix:{path}", "--ready")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_draining_gateway_runs_but_is_not_ready(self):
        gateway = self.gateway(env={"WEIR_ADMIN_DRAIN_DELAY_MS": "60000"})
        gateway.signal(SIGTERM)
        gateway.line_with("drain")
        place = ("--admin", f"127.0.0.1:{gateway.admin}")
        self.assertEqual(probe(*place).returncode, 0)
        done = probe(*place, "--ready")
        self.assertEqual(done.returncode, 1)
        self.assertIn(": 503 ", done.stderr)

    def test_nobody_there(self):
        done = probe("--admin", f"127.0.0.1:{free_port()}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no gateway answers at", done.stderr)

    def test_wrong_options(self):
        for arguments in (("--admin", "nonsense"), ("--timeout-ms", "0"), ("--bogus",)):
            with self.subTest(arguments):
                self.assertEqual(probe(*arguments).returncode, 2)

    def test_one_who_accepts_and_is_silent(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            done = probe("--admin", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout-ms", "50")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no answer within --timeout-ms", done.stderr)

    def test_one_who_answers_a_byte_at_a_time(self):
        """Each byte is progress; the probe as a whole has an end all the same."""
        end = threading.Event()

        def drip(server):
            with server.accept()[0] as peer:
                while not end.wait(0.005):
                    try:
                        peer.sendall(b"x")
                    except OSError:
                        return
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=drip, args=(server,))
            thread.start()
            self.addCleanup(thread.join)
            self.addCleanup(end.set)
            before = time.monotonic()
            done = probe("--admin", f"127.0.0.1:{server.getsockname()[1]}", "--timeout-ms", "100")
            self.assertEqual(done.returncode, 1)
            self.assertLess(time.monotonic() - before, 10)


if __name__ == "__main__":
    unittest.main()
