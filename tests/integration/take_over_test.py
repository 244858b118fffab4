"""A new process takes over the listening sockets of a running one under load: no request fails.

  python3 take_over_test.py [REQUESTS_PER_SECOND]
"""

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import unittest

from processes import SIGTERM, WEIR, Process, Weir, get, wait_until
from take_over_testing import (GrpcCalls, GrpcStreams, Http2Load, SlowReaders, SlowWriters,
                               TakeOverTest, start_open_loop)
from tls_test import Certificates

RATE = 200  # of HTTP/1.1 and HTTP/2 together
STAY = 0.5  # seconds of that load, at least, between two take-overs
CROWD = 4  # slow clients of each kind
HELLO = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
    control.settimeout(20)
    control.connect(sys.argv[1])
    try:
        control.send(b"weir\\0\\1\\1")
        data, descriptors, _, _ = socket.recv_fds(control, 65536, 64)
    except (BrokenPipeError, ConnectionResetError):
        data, descriptors = b"", []
    print(len(data), len(descriptors))
"""


class UnderLoad(TakeOverTest):
    def test_three_take_overs_in_a_row_fail_no_request(self):
        """Also with another number of loops, and with other options, each time."""
        first = self.first(loops=2)
        port = first.port
        http1 = start_open_loop(port, RATE * 0.6)
        http2 = self.started(Http2Load(port, 4, RATE * 0.4))
        workers = [kind(port, CROWD).start()
                   for kind in (SlowReaders, SlowWriters, GrpcCalls, GrpcStreams)]
        wait_until(lambda: first.stats()["requests"]["answered"] > RATE * STAY)
        second = self.next_of(first, loops=1)
        wait_until(lambda: second.stats()["requests"]["answered"] > RATE * STAY)
        third = self.next_of(second, loops=3, server="listen_backlog = 512")
        wait_until(lambda: third.stats()["requests"]["answered"] > RATE * STAY)
        fourth = self.next_of(third, loops=2)
        wait_until(lambda: fourth.stats()["requests"]["answered"] > RATE * STAY)
        for old in (first, second, third):
            self.assertEqual(old.wait(40), 0)
            self.assertIn("weir: drained", old.lines)
        summary = self.assert_no_failure(http1, http2, workers)
        self.assertGreater(summary["sessions"], 4, "GOAWAY has moved the sessions")
        self.assertEqual(fourth.balance(), 0)


class WithoutLoad(TakeOverTest):
    def command(self, config):
        path = os.path.join(self.folder, "new.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        return [WEIR, "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", path]

    def failing(self, config, *arguments):
        """Runs a new process that does not succeed; what it says."""
        return subprocess.run([*self.command(config), *arguments], capture_output=True, text=True,
                              timeout=30, check=False)

    def slow_to_start(self):
        """With a source that does not answer, a process needs three seconds until it is ready."""
        silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        return self.config() + f"""
[[upstream]]
name = "late"
endpoints = ["dns:nobody.invalid:80"]
[dns]
servers = ["127.0.0.1:{silent.getsockname()[1]}"]
"""

    def test_a_new_process_that_fails_leaves_the_old_one_serving(self):
        old = self.first()
        done = self.failing(self.config(extra="[admision]\nmax_concurrent = 5"), "--take-over")
        self.assertEqual(done.returncode, 2)
        self.assertIn("admision", done.stderr)
        done = self.failing(self.config(server="memory_max = \"1MiB\""), "--take-over")
        self.assertEqual(done.returncode, 1)
        self.assertIn("server.memory_max", done.stderr)
        old.line_with(r"did not take over: it ended before it was ready; this process serves on")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = self.failing(self.config(), "--take-over", "--listen",
                                f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("already in use", done.stderr)
        self.assertEqual(get(old.port, "/item?1").body, b"1")
        new = self.next_of(old)
        self.assertEqual(get(new.port, "/item?2").body, b"2")

    def test_a_new_process_that_is_killed_leaves_the_old_one_serving(self):
        old = self.first()
        for _ in range(3):
            new = self.started(Process(*self.command(self.slow_to_start()), "--take-over"))
            new.line_with("taking over 2 listening sockets")
            new.signal(signal.SIGKILL)
            new.wait()
        for i in range(20):
            self.assertEqual(get(old.port, f"/item?{i}").body, str(i).encode())
        wait_until(lambda: sum("this process serves on" in line for line in old.lines) == 3)

    def test_the_old_one_that_is_killed_meanwhile_is_replaced(self):
        old = self.first()
        new = self.started(Process(*self.command(self.slow_to_start()), "--take-over"))
        new.line_with("taking over 2 listening sockets")
        old.signal(signal.SIGKILL)
        with socket.create_connection(("127.0.0.1", old.port), timeout=20) as waiting:
            waiting.sendall(b"GET /item?7 HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            answer = b""
            while piece := waiting.recv(4096):
                answer += piece
        self.assertTrue(answer.endswith(b"7"), answer)
        new.line_with(r"ended during the take-over")

    def test_a_process_of_another_user_gets_nothing(self):
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        old = self.first()
        os.chmod(self.folder, 0o755)
        os.chmod(self.socket, 0o666)  # so that only the gateway itself can refuse

        def answered(**user):
            """How many bytes and descriptors a process of this user gets for its hello."""
            done = subprocess.run([sys.executable, "-c", HELLO, self.socket], capture_output=True,
                                  text=True, timeout=30, check=True, **user)
            return tuple(map(int, done.stdout.split()))

        self.assertEqual(answered(user=65534, group=65534, extra_groups=[]), (0, 0))
        old.line_with(r"a process of user 65534 asked for a take-over and was not answered")
        size, descriptors = answered()
        self.assertGreater(size, 0, "the same question by our own user")
        self.assertEqual(descriptors, 3)
        old.line_with(r"did not take over: it ended before it was ready; this process serves on")
        self.assertEqual(get(old.port, "/item?5").body, b"5")

    def test_with_nobody_there_it_starts_as_usual(self):
        gateway = self.started(Weir("--take-over", config=self.config()))
        gateway.line_with(rf"nobody serves {self.socket}: starting without a take-over")
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o600)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        again = self.started(Weir("--take-over", config=self.config()))
        again.line_with(r"starting without a take-over")

    def test_without_the_option_or_with_another_process_there_the_remedy_is_said(self):
        self.first()
        done = self.failing(self.config().replace(f'take_over_socket = "{self.socket}"', ""),
                            "--take-over")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--take-over needs admin.take_over_socket", done.stderr)
        done = self.failing(self.config())
        self.assertEqual(done.returncode, 1)
        self.assertIn("another process serves it", done.stderr)
        self.assertIn("--take-over", done.stderr)

    def test_garbage_at_the_socket_changes_nothing(self):
        gateway = self.first()
        crowd = []
        for i in range(50):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.setblocking(False)
            try:
                one.connect(self.socket)
                one.send(os.urandom(1 + i * 20))
            except OSError:
                pass  # too many at once, or closed already
            crowd.append(one)
        self.assertEqual(get(gateway.port, "/item?1").body, b"1")
        for one in crowd:
            one.close()
        new = self.next_of(gateway)
        self.assertEqual(get(new.port, "/item?2").body, b"2")

    def test_idle_connections_get_one_more_answer_from_the_old_process(self):
        old = self.first()
        used = http.client.HTTPConnection("127.0.0.1", old.port, timeout=20)
        used.request("GET", "/item?1")
        self.assertEqual(used.getresponse().read(), b"1")
        fresh = http.client.HTTPConnection("127.0.0.1", old.port, timeout=20)
        fresh.connect()
        wait_until(lambda: old.metric("weir_connections_open") >= 2)
        new = self.next_of(old)
        for connection in (used, fresh):
            connection.request("GET", "/item?2")
            response = connection.getresponse()
            self.assertEqual((response.status, response.read()), (200, b"2"))
            self.assertEqual(response.headers["connection"], "close")
            connection.close()
        self.assertEqual(old.wait(40), 0)
        self.assertEqual(new.stats()["requests"]["received"], 0)

    def test_a_signal_to_the_old_one_while_it_drains(self):
        old = self.first()
        with socket.create_connection(("127.0.0.1", old.port), timeout=20):  # idle, for its grace
            wait_until(lambda: old.metric("weir_connections_open") > 0)
            self.next_of(old)
            old.signal(SIGTERM)
            old.line_with(r"draining already; the same signal again ends at once")
            old.signal(SIGTERM)
            self.assertEqual(old.wait(), 0)


class UnixSockets(TakeOverTest):
    def test_a_unix_listener_is_taken_over_with_its_file(self):
        path = os.path.join(self.folder, "web.sock")
        old = self.first("--listen", f"unix:{path}")
        before = os.stat(path).st_ino
        self.next_of(old, "--listen", f"unix:{path}")
        self.assertEqual(os.stat(path).st_ino, before)
        self.assertEqual(old.wait(40), 0)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(path)
            client.sendall(b"GET /item?9 HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            answer = b""
            while piece := client.recv(4096):
                answer += piece
        self.assertTrue(answer.endswith(b"9"), answer)


class Tls(TakeOverTest):
    def test_sessions_of_the_old_process_resume_at_the_new_one(self):
        certificate, key = Certificates(self.folder).make("server", "/CN=localhost")
        arguments = ("--tls-cert", certificate, "--tls-key", key, "--tls-listen", "127.0.0.1:0")
        old = self.first(*arguments)
        port = old.line_with(r"listening with TLS on .*:(\d+)")[1]
        session = os.path.join(self.folder, "session")

        def connect(*how):
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}",
                                   "-tls1_2", *how], input="", capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return "Reused" if "Reused, TLS" in done.stdout else "New"
        self.assertEqual(connect("-sess_out", session), "New")
        self.next_of(old, *arguments)
        self.assertEqual(connect("-sess_in", session), "Reused")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        RATE, STAY, CROWD = int(sys.argv.pop(1)), 4, 12
        sys.argv.append("UnderLoad")
    unittest.main()
