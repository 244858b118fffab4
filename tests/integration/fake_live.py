"""A gateway's live view, played from apps/weir/top/samples: `weir top` is tested with it in states
that a real gateway is not easily brought into."""

import json
import pathlib
import socket
import threading
import time
import urllib.parse

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "apps/weir/top/samples"


class FakeLive:
    """Listens on `port` of the loopback address, or on the Unix socket `path`. Messages follow each
    other every `every` seconds; while `silent`, none do."""

    def __init__(self, sample="overloaded", port=0, path=None, every=0.1):
        self.messages = json.loads((SAMPLES / f"{sample}.json").read_text())
        self.every = every
        self.silent = False
        self.refusal = None       # (status, text) instead of the stream
        self.requests = []        # the paths that were asked for
        self.ticks = 0
        self._ended = threading.Event()
        self._streams = []
        family = socket.AF_UNIX if path else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(path or ("127.0.0.1", port))
        self._listener.listen(16)
        self.port = None if path else self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._ended.is_set():
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self._streams.append(stream)
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                part = stream.recv(4096)
                if not part:
                    return
                head += part
            path = head.split(b" ")[1].decode()
            self.requests.append(path)
            if self.refusal:
                status, text = self.refusal
                stream.sendall(f"HTTP/1.1 {status} No\r\ncontent-length: {len(text) + 1}\r\n"
                               f"connection: close\r\n\r\n{text}\n".encode())
                return
            query = dict(urllib.parse.parse_qsl(path.partition("?")[2]))
            stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                           b"connection: close\r\n\r\n")
            self._stream(stream, query)
        except OSError:
            pass
        finally:
            stream.close()

    def _stream(self, stream, query):
        view = query.get("view", "now")
        upstream = query.get("upstream", self.messages["hello"]["upstream"])
        hello = dict(self.messages["hello"], view=view, upstream=upstream)
        self._send(stream, "hello", hello)
        first = True
        while not self._ended.is_set():
            if not self.silent:
                self._send(stream, "tick", self.tick(view, first))
                first = False
            self._ended.wait(self.every)

    def tick(self, view, first):
        """The next one; the second number of the verdict says how many came before."""
        tick = json.loads(json.dumps(self.messages["tick"]))
        self.ticks += 1
        tick["verdict"]["for_s"] += self.ticks // 10
        if view == "memory":
            tick["memory"].update(self.messages["memory"])
        elif view in self.messages:
            tick[view] = dict(self.messages[view])
            if view == "replicas" and not first:
                tick[view]["rows"] = []
        return tick

    def _send(self, stream, event, data):
        stream.sendall(f"event: {event}\nid: {self.ticks}\ndata: {json.dumps(data)}\n\n".encode())

    def cut(self):
        """Ends all streams; new ones are served."""
        for stream in self._streams:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._streams.clear()

    def end(self):
        self._ended.set()
        # Wakes accept(), which close() alone does not.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self.cut()


def serve_forever():
    fake = FakeLive(every=1.0)
    print(f"http://127.0.0.1:{fake.port}", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    serve_forever()
