"""A small site as a backend of HTTP/1.1: a page with what belongs to it, an echo, a large file, a
response with trailers, and one that waits until it is told. Remembers what it was asked."""

import hashlib
import http.server
import json
import threading

PICTURES = 57  # with the style and the scripts, sixty parts
LARGE = hashlib.shake_256(b"large").digest(1024 * 1024)
# What the page asks for, beside itself; the report comes last.
PARTS = ["/style.css", "/first.js", "/second.js", *(f"/picture-{i}.svg" for i in range(PICTURES))]

_PAGE = ("<!doctype html><html><head><title>page</title><link rel=icon href=data:,>"
         "<link rel=stylesheet href=/style.css><script src=/first.js></script></head><body>" +
         "".join(f"<img src=/picture-{i}.svg>" for i in range(PICTURES)) +
         "<script src=/second.js></script></body></html>")
# Once all has arrived, the browser says how: name, protocol and size of each, and whether the
# style was applied and the pictures could be drawn. Then it takes the large file, and says so too.
_REPORT = """
addEventListener("load", async () => {
  const large = await (await fetch("/large")).arrayBuffer();
  const digest = await crypto.subtle.digest("SHA-256", large);
  const entries = [...performance.getEntriesByType("navigation"),
                   ...performance.getEntriesByType("resource")];
  const said = await fetch("/report", {method: "POST", body: JSON.stringify({
    order: window.order,
    margin: getComputedStyle(document.body).marginTop,
    pictures: [...document.images].filter(i => i.complete && i.naturalWidth === 7).length,
    large: [...new Uint8Array(digest)].map(b => b.toString(16).padStart(2, "0")).join(""),
    entries: entries.map(e => [new URL(e.name).pathname, e.nextHopProtocol, e.responseStatus])})});
  document.title = await said.text();
});
"""
_FILES = {
    "/": ("text/html", _PAGE.encode()),
    "/style.css": ("text/css", b"body { margin: 42px }"),
    "/first.js": ("text/javascript", b"window.order = ['first'];"),
    "/second.js": ("text/javascript", b"window.order.push('second');" + _REPORT.encode()),
    "/large": ("application/octet-stream", LARGE),
    **{f"/picture-{i}.svg": ("image/svg+xml",
                             b"<svg xmlns='http://www.w3.org/2000/svg' width='7' height='5'/>")
       for i in range(PICTURES)},
}


class _Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        self.site.note(self.path)
        if self.path == "/trailers":
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.send_header("trailer", "x-checksum")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n0\r\nx-checksum: 5d41402a\r\n\r\n")
        elif self.path == "/held":
            self.site.held.release()
            self.site.go_on.wait(30)
            self._answer("text/plain", b"held")
        elif self.path in _FILES:
            self._answer(*_FILES[self.path])
        else:
            self._answer("text/plain", b"nothing here", 404)

    def do_POST(self):
        self.site.note(self.path)
        body, trailers = self._body()
        if self.path == "/report":
            self.site.report = json.loads(body)
            self.site.reported.set()
            self._answer("text/plain", b"reported")
            return
        seen = {"bytes": len(body), "sha": hashlib.sha256(body).hexdigest(), "trailers": trailers,
                "headers": {name.lower(): value for name, value in self.headers.items()}}
        self._answer("application/json", json.dumps(seen).encode())

    def _body(self):
        """(bytes, trailers)"""
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0))), {}
        body, trailers = b"", {}
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            trailers[name.lower()] = value.strip()
        return body, trailers

    def _answer(self, kind, body, status=200):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # a browser asks for everything at once


class Site:
    def __init__(self):
        self.asked = []
        self.report = None
        self.reported = threading.Event()
        self.held = threading.Semaphore(0)  # one for each request that waits now
        self.go_on = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Pages", (_Pages,), {"site": self}))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def note(self, path):
        with self._lock:
            self.asked.append(path)

    def end(self):
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
