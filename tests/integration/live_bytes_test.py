"""How many bytes a second a watcher of a thousand replicas is sent: the stream of a real gateway
with 1,000 endpoints, none of which answers."""

import json
import socket
import threading
import unittest

from processes import ProcessTest, Weir, get, wait_until

ENDPOINTS = 1000
ROWS = 50
SECONDS = 8
TICK_BYTES_MAX = 5000


class Watcher:
    """Reads /live: the ticks, each as (bytes of its message, data)."""

    def __init__(self, port, query):
        self.ticks = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.sendall(f"GET /live?{query} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n".encode())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self._socket.makefile("rb") as stream:
            message = []
            for line in stream:
                message.append(line)
                if line.strip():
                    continue
                if message[0].startswith(b"event: tick"):
                    data = next(part for part in message if part.startswith(b"data: "))
                    self.ticks.append((sum(map(len, message)), json.loads(data[6:])))
                message = []

    def end(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5)
        self._socket.close()


def bytes_with_all_rows(tick):
    """Of a tick in which each row of the page has changed, and has numbers of usual length."""
    full = json.loads(json.dumps(tick))
    usual = {"p50_ms": 21.4, "p99_ms": 63.1, "in_flight": 4, "hedges": 1204, "hedge_wins": 310,
             "weight": 100, "zone": "eu-1a", "spark": None}
    for row in full["replicas"]["rows"]:
        for name, value in usual.items():
            row[full["replicas"]["columns"].index(name)] = value
    assert len(full["replicas"]["rows"]) == ROWS
    return len(json.dumps(full, separators=(",", ":"), ensure_ascii=False).encode())


class LiveBytes(ProcessTest):
    def test_a_watcher_of_a_thousand_replicas_gets_less_than_5_kb_a_second(self):
        addresses = ", ".join(f'"127.{1 + i // 250}.0.{1 + i % 250}:1"' for i in range(ENDPOINTS))
        gateway = self.started(Weir(config=f"""
[[upstream]]
name = "app"
endpoints = [{addresses}]
[[route]]
upstream = "app"
"""))
        watcher = self.started(Watcher(gateway.admin, f"view=replicas&rows={ROWS}"))
        wait_until(lambda: watcher.ticks)
        first = watcher.ticks[0][1]
        self.assertEqual(first["replicas"]["total"], ENDPOINTS)
        every = bytes_with_all_rows(first)
        # Requests that all fail change rows: states, failures a second, the order.
        stop = threading.Event()
        self.addCleanup(stop.set)

        def ask():
            while not stop.is_set():
                get(gateway.port)
        clients = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for client in clients:
            client.start()
        wait_until(lambda: len(watcher.ticks) > SECONDS + 1)
        stop.set()
        for client in clients:
            client.join(20)
        sent = [size for size, _ in watcher.ticks[1:SECONDS + 1]]
        rows = [len(tick["replicas"]["rows"]) for _, tick in watcher.ticks[1:SECONDS + 1]]
        print(f"sent {sent} bytes with {rows} rows; {every} if all had changed")
        self.assertLess(sum(sent) / len(sent), TICK_BYTES_MAX)
        self.assertGreater(max(rows), 0)


if __name__ == "__main__":
    unittest.main()
