"""Backends of other people, as processes: nginx (HTTP/1.1, HTTP/2 with TLS), HAProxy (HTTP/1.1 and
HTTP/2 in cleartext), Node (HTTP/2), Python (HTTP/1.1), and a gRPC server in this process. Each but
the last answers GET and HEAD /hello, /empty with 204, and POST /size with how much it was sent."""

import concurrent.futures
import http.server
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

from processes import Process, can_connect, free_port, wait_until

HERE = pathlib.Path(__file__).parent


class Configured(Process):
    """A program with a configuration file in a folder of its own."""

    def __init__(self, kind, text, *command):
        self.folder = tempfile.TemporaryDirectory(prefix=f"weir-{kind}-")
        own = self.folder.name
        pathlib.Path(own, "conf").write_text(text.replace("OWN", own), encoding="utf-8")
        super().__init__(*(part.replace("OWN", own) for part in command))
        wait_until(lambda: can_connect(self.port))

    def end(self):
        """Workers end with their master."""
        if self.child.poll() is None:
            self.signal(signal.SIGTERM)
            self.child.wait(10)
        super().end()
        self.folder.cleanup()


class NginxBackend(Configured):
    """`certificate`: (file, key) for TLS and HTTP/2. A connection ends after `requests` requests:
    with HTTP/2 by a GOAWAY."""

    def __init__(self, certificate=None, requests=1000):
        self.port = free_port()
        inner = free_port()
        listen = f"listen 127.0.0.1:{self.port};"
        if certificate:
            listen = (f"listen 127.0.0.1:{self.port} ssl http2; ssl_certificate {certificate[0]}; "
                      f"ssl_certificate_key {certificate[1]};")
        super().__init__("nginx", f"""
daemon off; worker_processes 1; pid OWN/pid; error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 8m; client_body_buffer_size 2m;
  client_body_temp_path OWN/b; proxy_temp_path OWN/p; fastcgi_temp_path OWN/f;
  uwsgi_temp_path OWN/u; scgi_temp_path OWN/s;
  keepalive_requests {requests};
  server {{ listen 127.0.0.1:{inner}; location / {{ return 200; }} }}
  server {{
    {listen}
    location = /hello {{ return 200 "hello"; }}
    location = /empty {{ return 204; }}
    location = /size {{
      proxy_pass http://127.0.0.1:{inner}; proxy_pass_request_body off;
      proxy_set_header content-length ""; add_header x-size $request_length;
    }}
  }}
}}
""", "nginx", "-c", "OWN/conf", "-e", "stderr")

    def reload(self):
        self.signal(signal.SIGHUP)


class HaproxyBackend(Configured):
    """Answers by itself; POSTs go to a Python backend behind it. Cleartext HTTP/2 if `http2`."""

    def __init__(self, http2, behind):
        self.port = free_port()
        super().__init__("haproxy", f"""
global
  maxconn 500
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 2s
frontend f
  bind 127.0.0.1:{self.port}{" proto h2" if http2 else ""}
  http-request return status 200 content-type text/plain string hello if {{ path /hello }}
  default_backend b
backend b
  server s 127.0.0.1:{behind}
""", "haproxy", "-db", "-q", "-f", "OWN/conf")


class NodeBackend(Process):
    """HTTP/2 in cleartext, with trailers after /trailers."""

    def __init__(self):
        super().__init__("node", str(HERE / "http2_backend.mjs"), stdout=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])


class PythonBackend:
    """HTTP/1.1 of Python's library; /trailers ends a chunked body with trailers."""

    def __init__(self):
        class Answers(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, status, body=b""):
                self.send_response(status)
                if status != 204:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                if self.path == "/trailers":
                    self.send_response(200)
                    self.send_header("transfer-encoding", "chunked")
                    self.end_headers()
                    return self.wfile.write(b"5\r\nhello\r\n0\r\nx-end: yes\r\n\r\n")
                return self.reply(204) if self.path == "/empty" else self.reply(200, b"hello")

            do_HEAD = do_GET

            def do_POST(self):
                size = 0
                if "chunked" in self.headers.get("transfer-encoding", ""):
                    while (chunk := int(self.rfile.readline(), 16)) > 0:
                        size += len(self.rfile.read(chunk))
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    size = len(self.rfile.read(int(self.headers["content-length"])))
                self.reply(200, str(size).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class GrpcBackend:
    """gRPC's own server: an echo, and the health service, whose answer a test sets."""

    SERVING, NOT_SERVING = 1, 2

    def __init__(self, port=0):
        import grpc
        self.health = self.SERVING
        self.checks = 0

        def check(_request, _context):
            self.checks += 1
            return bytes((0x08, self.health))  # HealthCheckResponse{status}

        plain = {"request_deserializer": bytes, "response_serializer": bytes}
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {
                "Check": grpc.unary_unary_rpc_method_handler(check, **plain)}),
            grpc.method_handlers_generic_handler("test.Echo", {
                "Say": grpc.unary_unary_rpc_method_handler(lambda said, _: said, **plain)}),
        ))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def end(self):
        self.server.stop(0).wait(5)


os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
