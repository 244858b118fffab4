"""The proxies that are compared, one worker each on the server core: Weir, HAProxy, nginx, h2o and
nghttpx, for every pair of protocols that each of them can speak.

A front is "h1" (cleartext), "h2" (prior knowledge) or "tls" (HTTP/1.1 and HTTP/2 by ALPN); a back
is "h1", "h2" (prior knowledge), "h1+tls", "h2+tls", or "grpc": h2 for calls alone. A proxy that
cannot speak a pair is left out.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import BUILD, SERVER_CORE, Process

# h2o is not needed by any test, so `./dev setup` does not bring it.
PACKAGES = {"h2o": "h2o", "nghttpx": "nghttp2-proxy"}

# Also 160 calls that begin at once, before there is a connection to the service, are all held.
CALLS = """
body_lease_pool_size = 1024
[admission.limit]
policy = "fixed"
initial_limit = 1000
"""


class Certificate:
    """Self-signed, P-256, for localhost and 127.0.0.1; the workers of the others may read it."""

    def __init__(self, directory):
        os.chmod(directory, 0o755)
        self.cert = pathlib.Path(directory) / "cert.pem"
        self.key = pathlib.Path(directory) / "key.pem"
        self.both = pathlib.Path(directory) / "both.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", self.key, "-out", self.cert],
                       check=True, capture_output=True)
        self.both.write_text(self.cert.read_text() + self.key.read_text())
        self.key.chmod(0o644)


def program(name):
    return shutil.which(name) or f"/usr/sbin/{name}"


def available(name):
    if name not in PACKAGES or os.access(program(name), os.X_OK):
        return True
    print(f"{name} is left out: install the package {PACKAGES[name]}", file=sys.stderr)
    return False


def weir(directory, certificate, front, back, to):
    port = harness.free_port()
    conf = pathlib.Path(directory) / f"weir-{port}.toml"
    plain = harness.free_port() if front == "tls" else port
    tls = "" if front != "tls" else f"""
[tls]
listen = ["127.0.0.1:{port}"]
certificate = "{certificate.cert}"
private_key = "{certificate.key}"
"""
    upstream_tls = (f"[upstream.tls]\nenabled = true\nca = \"{certificate.cert}\"\n"
                    if back.endswith("tls") else "")
    protocol = "http1" if back.startswith("h1") else "http2"
    # A call that is refused would count as a cheap one.
    calls = CALLS if back == "grpc" else ""
    conf.write_text(f"""
[listen]
addresses = ["127.0.0.1:{plain}"]
{tls}
[admin]
listen = ""
access_log = "off"
[server]
loops = 1
{calls}
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:{to}"]
protocol = "{protocol}"
{upstream_tls}
[[route]]
upstream = "app"
""")
    return Process([BUILD / "weir", "run", "--config", conf], SERVER_CORE, port)


def nginx(directory, certificate, front, back, to):
    if back.startswith("h2"):
        return None
    port = harness.free_port()
    own = tempfile.mkdtemp(dir=directory)
    tls = "" if front != "tls" else (f"ssl_protocols TLSv1.3; ssl_certificate {certificate.cert}; "
                                    f"ssl_certificate_key {certificate.key};")
    scheme = "http" if back == "h1" else "https"
    listen = {"h1": "", "h2": "http2", "tls": "ssl http2"}[front]
    passed = (f"proxy_pass {scheme}://app; proxy_http_version 1.1; "
              f"proxy_ssl_protocols TLSv1.3; proxy_ssl_verify on; proxy_ssl_name localhost; "
              f"proxy_ssl_trusted_certificate {certificate.cert}; "
              f'proxy_set_header connection "";')
    if back == "grpc":
        passed = "grpc_pass grpc://app;"
    body = (f"upstream app {{ server 127.0.0.1:{to}; keepalive 256; "
            f"keepalive_requests 1000000000; }} "
            f"server {{ listen 127.0.0.1:{port} {listen}; {tls} "
            f"http2_max_requests 1000000000; location / {{ {passed} }} }}")
    return Process(harness.nginx(own, body), SERVER_CORE, port)


def haproxy(directory, certificate, front, back, to):
    port = harness.free_port()
    conf = pathlib.Path(directory) / f"haproxy-{port}.cfg"
    bind = {"h1": "", "h2": "proto h2",
            "tls": f"ssl crt {certificate.both} alpn h2,http/1.1 ssl-min-ver TLSv1.3"}[front]
    verified = f"ssl verify required ca-file {certificate.cert} verifyhost localhost"
    server = {"h1": "", "h2": "proto h2", "grpc": "proto h2", "h1+tls": f"{verified} alpn http/1.1",
              "h2+tls": f"{verified} alpn h2"}[back]
    conf.write_text(f"""
global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 1s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend f
  bind 127.0.0.1:{port} {bind}
  default_backend b
backend b
  server s 127.0.0.1:{to} {server}
""")
    return Process([program("haproxy"), "-db", "-f", conf], SERVER_CORE, port)


def h2o(directory, certificate, front, back, to):
    if not back.startswith("h1") or front == "h2":
        return None
    port = harness.free_port()
    conf = pathlib.Path(directory) / f"h2o-{port}.yaml"
    tls = "" if front == "h1" else f"""
  ssl:
    certificate-file: {certificate.cert}
    key-file: {certificate.key}
    minimum-version: TLSv1.2
    ocsp-update-interval: 0"""
    scheme, host = ("http", "127.0.0.1") if back == "h1" else ("https", "localhost")
    conf.write_text(f"""
num-threads: 1
max-connections: 8192
http1-request-timeout: 600
http2-idle-timeout: 600
listen:
  host: 127.0.0.1
  port: {port}{tls}
hosts:
  default:
    paths:
      "/":
        proxy.reverse.url: "{scheme}://{host}:{to}/"
        proxy.timeout.keepalive: 10000
        proxy.ssl.cafile: {certificate.cert}
""")
    return Process([program("h2o"), "-m", "worker", "-c", conf], SERVER_CORE, port)


def nghttpx(directory, certificate, front, back, to):
    del directory
    port = harness.free_port()
    no_tls = "" if front == "tls" else ";no-tls"
    options = {"h1": "", "h2": ";;proto=h2", "grpc": ";;proto=h2", "h1+tls": ";;tls;sni=localhost",
               "h2+tls": ";;proto=h2;tls;sni=localhost"}[back]
    files = [] if front != "tls" else [certificate.key, certificate.cert]
    return Process([program("nghttpx"), "--conf=/dev/null",
                    f"--frontend=127.0.0.1,{port}{no_tls}", f"--backend=127.0.0.1,{to}{options}",
                    f"--cacert={certificate.cert}", "--workers=1", "--no-ocsp",
                    "--log-level=FATAL", "--frontend-max-requests=1000000000",
                    "--frontend-keep-alive-timeout=600s", *files], SERVER_CORE, port)


def started(stack, directory, certificate, front, back, to):
    """name -> process of each proxy that is installed and speaks this pair; `stack` ends them."""
    found = {}
    for name, make in {"weir": weir, "haproxy": haproxy, "nginx": nginx, "h2o": h2o,
                       "nghttpx": nghttpx}.items():
        process = make(directory, certificate, front, back, to) if available(name) else None
        if process is not None:
            found[name] = stack.enter_context(process)
    return found
