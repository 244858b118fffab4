"""Started by a service manager: sockets that are passed on (LISTEN_FDS), and what it is told
(NOTIFY_SOCKET). A small launcher does what systemd does."""

import os
import socket
import sys
import tempfile
import unittest

from processes import SIGHUP, SIGTERM, WEIR, Origin, Process, ProcessTest, get

# Moves the descriptors to 3, 4, … and becomes the command, so that LISTEN_PID is its own.
LAUNCHER = """
import os, sys
count, names = int(sys.argv[1]), sys.argv[2]
high = [os.dup2(int(fd), 500 + i) for i, fd in enumerate(sys.argv[3:3 + count])]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count), LISTEN_FDNAMES=names)
os.execv(sys.argv[3 + count], sys.argv[3 + count:])
"""


def listening():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen(64)
    return one


class Activated(Process):
    """`weir run` with sockets that somebody else has bound."""

    def __init__(self, sockets, names, *arguments, **options):
        fds = [one.fileno() for one in sockets]
        super().__init__(sys.executable, "-c", LAUNCHER, str(len(fds)), ":".join(names),
                         *map(str, fds), WEIR, "run", *arguments, pass_fds=fds, **options)


class SocketActivation(ProcessTest):
    def setUp(self):
        self.origin = self.started(Origin(workers=8, service_ms=1))
        self.to = ("--to", f"127.0.0.1:{self.origin.port}")

    def listener(self):
        one = listening()
        self.addCleanup(one.close)
        return one, one.getsockname()[1]

    def test_sockets_are_matched_by_address(self):
        web, port = self.listener()
        admin, admin_port = self.listener()
        gateway = self.started(Activated([admin, web], ["x", "y"], *self.to, "--listen",
                                         f"127.0.0.1:{port}", "--admin",
                                         f"127.0.0.1:{admin_port}"))
        gateway.line_with("^weir: ready")
        self.assertEqual(get(port).status, 200)
        self.assertEqual(get(admin_port, "/healthz").status, 200)

    def test_sockets_are_matched_by_name(self):
        web, port = self.listener()
        admin, admin_port = self.listener()
        gateway = self.started(Activated([web, admin], ["listen", "admin"], *self.to))
        gateway.line_with(rf"^weir: listening on 127.0.0.1:{port}$")
        gateway.line_with(rf"^weir: admin on 127.0.0.1:{admin_port}$")
        gateway.line_with("^weir: ready")
        self.assertEqual(get(port).status, 200)
        self.assertEqual(get(admin_port, "/healthz").status, 200)

    def test_a_socket_without_an_address_is_named_with_the_remedy(self):
        web, port = self.listener()
        gateway = self.started(Activated([web], ["weir.socket"], *self.to, "--listen",
                                         "127.0.0.1:0", "--admin", "none"))
        self.assertEqual(gateway.wait(), 1)
        self.assertRegex("\n".join(gateway.lines),
                         rf"the service manager passed 127.0.0.1:{port}, which no address of "
                         r"listen.addresses, .*: add it there, or .*FileDescriptorName=")

    def test_a_socket_that_does_not_listen_is_named(self):
        with socket.socket() as idle:
            gateway = self.started(Activated([idle], ["listen"], *self.to, "--admin", "none"))
            self.assertEqual(gateway.wait(), 1)
            self.assertIn("is not a stream socket that listens: use ListenStream=",
                          "\n".join(gateway.lines))

    def test_clients_wait_through_a_restart(self):
        """The service manager keeps the socket: who connects meanwhile is served by the next."""
        web, port = self.listener()
        with socket.create_connection(("127.0.0.1", port), timeout=20) as early:
            early.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            first = self.started(Activated([web], ["listen"], *self.to, "--admin", "none"))
            self.assertIn(b"200 OK", early.recv(4096))
        first.signal(SIGTERM)
        self.assertEqual(first.wait(), 0)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as between:
            between.sendall(b"GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            self.started(Activated([web], ["listen"], *self.to, "--admin", "none"))
            self.assertIn(b"200 OK", between.recv(4096))

    def test_variables_for_another_process_are_ignored(self):
        env = {**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "1"}
        gateway = self.started(Process(WEIR, "run", *self.to, "--listen", "127.0.0.1:0", "--admin",
                                       "none", env=env))
        gateway.line_with("^weir: ready")


class Notices(ProcessTest):
    def setUp(self):
        self.origin = self.started(Origin(workers=8, service_ms=1))
        self.folder = tempfile.TemporaryDirectory(prefix="weir-test-notify-")
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "weir.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(self.app_config([self.origin.port]))

    def reader(self, name):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(one.close)
        one.bind(name)
        one.settimeout(20)
        return one

    def start(self, variable):
        return self.started(Process(WEIR, "run", "--config", self.config, "--listen",
                                    "127.0.0.1:0", "--admin", "none",
                                    env={**os.environ, "NOTIFY_SOCKET": variable}))

    def test_the_manager_is_told_when_it_is_ready_reloads_and_stops(self):
        path = os.path.join(self.folder.name, "notify")
        reader = self.reader(path)
        gateway = self.start(path)
        self.assertEqual(reader.recv(4096), b"READY=1")
        gateway.signal(SIGHUP)
        self.assertRegex(reader.recv(4096), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(reader.recv(4096), b"READY=1")
        gateway.signal(SIGTERM)
        self.assertEqual(reader.recv(4096), b"STOPPING=1")
        self.assertEqual(gateway.wait(), 0)

    def test_abstract_names_and_a_manager_that_is_gone(self):
        name = f"weir-notify-{os.getpid()}"
        reader = self.reader("\0" + name)
        self.start("@" + name)
        self.assertEqual(reader.recv(4096), b"READY=1")
        self.start("/nonexistent/notify").line_with("^weir: ready")


if __name__ == "__main__":
    unittest.main()
