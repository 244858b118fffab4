"""Destinations of messages: each datagram is acknowledged by sending it back."""

import collections
import multiprocessing
import select
import socket
import time


def bound(host="127.0.0.1"):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


def name_of(sock):
    return "%s:%d" % sock.getsockname()


def datagrams(sock):
    """Those that are there: (bytes, sender)."""
    while True:
        try:
            yield sock.recvfrom(2048)
        except (BlockingIOError, ConnectionRefusedError):
            return


def echo(sockets, received, stop):
    """Acknowledges everything; counts datagrams per socket, and keeps the numbers of the first."""
    numbers = []
    while not stop.is_set():
        for sock in select.select(sockets, [], [], 0.05)[0]:
            for data, sender in datagrams(sock):
                if sock is sockets[0]:
                    numbers.append(int.from_bytes(data, "little"))
                sock.sendto(data, sender)
    received.put(numbers)


def delay(front, behind, seconds, capacity, stop):
    """A proxy in front of `behind`: each datagram is passed on after `seconds`, its answer at once.
    At most `capacity` are held; more are lost, as in a router."""
    back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    back.connect(behind)
    back.setblocking(False)
    held = collections.deque()
    sender = None
    while not stop.is_set():
        wait = min(0.05, max(0.0, held[0][0] - time.monotonic())) if held else 0.05
        ready = select.select([front, back], [], [], wait)[0]
        if front in ready:
            for data, sender in datagrams(front):
                if len(held) < capacity:
                    held.append((time.monotonic() + seconds, data))
        if back in ready and sender is not None:
            for data, _ in datagrams(back):
                front.sendto(data, sender)
        while held and held[0][0] <= time.monotonic():
            back.send(held.popleft()[1])
    back.close()


class Destinations:
    """Echoing sockets in a process of their own; the first may be behind a proxy that delays."""

    def __init__(self, count, delayed=None, host="127.0.0.1", capacity=1000):
        self.stop = multiprocessing.Event()
        self.received = multiprocessing.Queue()
        self.sockets = [bound() for _ in range(count)]
        self.names = [name_of(sock) for sock in self.sockets]
        self.processes = [multiprocessing.Process(
            target=echo, args=(list(self.sockets), self.received, self.stop))]
        if delayed is not None:
            front = bound(host)
            self.names[0] = name_of(front)
            self.sockets.append(front)
            self.processes.append(multiprocessing.Process(
                target=delay, args=(front, self.sockets[0].getsockname(), delayed, capacity,
                                    self.stop)))
        for process in self.processes:
            process.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """The numbers that the first destination received, in their order."""
        if self.stop.is_set():
            return []
        self.stop.set()
        numbers = self.received.get(timeout=30)
        for process in self.processes:
            process.join(30)
        for sock in self.sockets:
            sock.close()
        return numbers
