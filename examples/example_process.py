"""Runs an example as a process: its port, its counts, its end."""

import signal
import subprocess


class Example:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        name, port = self.process.stdout.readline().split()
        assert name == "port", name
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """Asks it to end; returns what it printed: name -> number."""
        self.process.send_signal(signal.SIGTERM)
        words = self.process.communicate(timeout=30)[0].split()
        assert self.process.returncode == 0, self.process.returncode
        return {name: int(number) for name, number in zip(words[::2], words[1::2])}
