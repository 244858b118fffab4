"""A terminal of its own for a program: what it draws, as a screen, and what it was sent."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pyte


class Terminal:
    """Runs a command on a pseudo-terminal. Keeps all bytes in `sent`, and draws them."""

    def __init__(self, *command, cols=80, rows=24, env=None):
        self.screen = pyte.Screen(cols, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.writes = []
        self._lock = threading.Lock()
        self._master, slave = pty.openpty()
        self._set_size(cols, rows)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        full = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})}
        full.pop("COLUMNS", None)
        full.pop("LINES", None)
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=full,
                                      start_new_session=True)
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._ended:
            ready, _, _ = select.select([self._master], [], [], 0.05)
            if not ready:
                continue
            try:
                part = os.read(self._master, 65536)
            except OSError:
                return
            with self._lock:
                self.sent += part
                self.writes.append(part)
                self._stream.feed(part.replace(b"\x1b[?2026h", b"").replace(b"\x1b[?2026l", b""))

    def _set_size(self, cols, rows):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, cols, rows):
        with self._lock:
            self.screen.resize(rows, cols)
        self._set_size(cols, rows)
        self.child.send_signal(signal.SIGWINCH)

    def type(self, text):
        os.write(self._master, text.encode())

    def lines(self):
        with self._lock:
            return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def attributes(self):
        """Of the terminal now, to compare with `before`."""
        return termios.tcgetattr(self._slave)

    def wait(self, seconds=20):
        code = self.child.wait(seconds)
        time.sleep(0.1)  # its last bytes are read
        return code

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(20)
        self._ended = True
        self._reader.join(5)
        os.close(self._master)
        os.close(self._slave)
