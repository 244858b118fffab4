#!/usr/bin/python3
"""TLS and HTTP/2, as a server beside nginx and as a proxy beside HAProxy, nginx, h2o and nghttpx.

  server     CPU per request, 128-byte answers: HTTP/1.1 and HTTP/2 over TLS
  proxy      the same in front of one HTTP/1.1 backend, admission on
  handshake  CPU per connection that is opened, asks once, and is closed
  memory     anonymous memory per idle connection after one request, with 1,000 and 5,000 of them

One worker each on one core; generator and backend on the other. The same P-256 certificate, TLS 1.3
with AES-128-GCM, no logs. Rounds are interleaved A-B-B-A; medians are reported.
"""

import argparse
import contextlib
import socket
import ssl
import tempfile
import time

import harness
import proxies
from harness import BUILD, CLIENT_CORE, SERVER_CORE, Process

ANSWER = "x" * harness.ANSWER_BYTES
# name -> (h2load's options, connections)
KINDS = {"h1+tls": ["--h1", "-c64"], "h2+tls": ["-c16", "-m10"]}


# ---- contenders

def weir_server(connections=1024):
    """With a certificate of its own making, P-256 like the others'."""
    port = harness.free_port()
    return Process([BUILD / "examples" / "hello_server", "--port", harness.free_port(),
                    "--tls-port", port, "--loops", 1, "--max-connections", connections,
                    "--idle-timeout-ms", 600000], SERVER_CORE, port)


def nginx_server(directory, certificate):
    port = harness.free_port()
    own = tempfile.mkdtemp(dir=directory)
    body = (f"server {{ listen 127.0.0.1:{port} ssl http2; ssl_protocols TLSv1.3; "
            f"ssl_certificate {certificate.cert}; ssl_certificate_key {certificate.key}; "
            f'location / {{ default_type text/plain; return 200 "{ANSWER}"; }} }}')
    return Process(harness.nginx(own, body), SERVER_CORE, port)


# ---- parts

def compare(title, servers, origin, options, kinds=None, close=False):
    """CPU per request of every contender, for every kind of connection."""
    for kind, h2load_options in (kinds or KINDS).items():
        def measure(name):
            process = servers[name]
            own, behind = process.cpu_ns(), origin.cpu_ns() if origin else 0
            if close:
                good, generator = one_each(process.port, close)
            else:
                good, generator = harness.h2load(f"https://127.0.0.1:{process.port}/",
                                                 [*h2load_options, f"-D{options.seconds}"])
            own = process.cpu_ns() - own
            behind = origin.cpu_ns() - behind if origin else 0
            return {"own": own / good / 1e3, "total": (own + behind + generator) / good / 1e3}

        for name in servers:
            measure(name)  # warm-up
        results = harness.interleaved(servers, options.rounds, measure)
        medians = {n: harness.median([r["own"] for r in runs]) for n, runs in results.items()}
        best = min(value for name, value in medians.items() if name != "weir")
        rows = [{"program": name, "cpu_us": medians[name],
                 "range": harness.spread([r["own"] for r in runs]),
                 "x_best_other": medians[name] / best,
                 "total_cpu_us": harness.median([r["total"] for r in runs])}
                for name, runs in results.items()]
        harness.report(f"{title}, {kind}", rows, options.json)


def one_each(port, count):
    """`count` connections one after another, a request on each; the CPU time is not ours alone."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    before = time.thread_time_ns()
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port)) as raw, \
                context.wrap_socket(raw) as s:
            s.sendall(b"GET / HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")
            if not s.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("no answer")
    return count, time.thread_time_ns() - before


def server_part(directory, certificate, options):
    with weir_server() as ours, \
            nginx_server(directory, certificate) as theirs:
        servers = {"weir": ours, "nginx": theirs}
        compare("server: CPU per request", servers, None, options)
        compare("server: CPU per handshake and one request", servers, None, options,
                {"h1+tls": []}, close=300)


def proxy_part(directory, certificate, options):
    port = harness.free_port()
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Process(
            [BUILD / "examples" / "hello_server", "--port", port, "--loops", 1], CLIENT_CORE, port))
        contenders = proxies.started(stack, directory, certificate, "tls", "h1", port)
        compare("proxy: CPU per request", contenders, origin, options)
        compare("proxy: CPU per handshake and one request", contenders, origin, options,
                {"h1+tls": []}, close=200)


def idle(process, count, kind):
    """kB each, all of them verified to be open still."""
    import h2.connection  # Debian's python3-h2: needed by this part alone
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"] if kind == "h2+tls" else ["http/1.1"])
    before = process.anonymous_kb()
    held = []
    for _ in range(count):
        s = context.wrap_socket(socket.create_connection(("127.0.0.1", process.port)))
        speaker = h2.connection.H2Connection() if kind == "h2+tls" else None
        held.append((s, speaker))
        ask(s, speaker)
    time.sleep(1.0)
    grown = process.anonymous_kb() - before
    for s, speaker in held:
        ask(s, speaker)  # it must still be open
    for s, _ in held:
        s.close()
    return grown / count


def ask(s, speaker):
    if speaker is None:
        s.sendall(b"GET / HTTP/1.1\r\nhost: bench\r\n\r\n")
        if not s.recv(4096).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("no answer")
        return
    if speaker.state_machine.state.name == "IDLE":
        speaker.initiate_connection()
    stream = speaker.get_next_available_stream_id()
    speaker.send_headers(stream, [(":method", "GET"), (":scheme", "https"), (":path", "/"),
                                  (":authority", "bench")], end_stream=True)
    s.sendall(speaker.data_to_send())
    while True:
        events = speaker.receive_data(s.recv(65536))
        s.sendall(speaker.data_to_send())
        if any(type(e).__name__ == "StreamEnded" for e in events):
            return


def memory_part(directory, certificate, options):
    rows = []
    for kind in KINDS:
        for count in (1000, 5000):
            for name, make in (("weir", lambda: weir_server(2 * count)),
                               ("nginx", lambda: nginx_server(directory, certificate))):
                with make() as process:
                    rows.append({"server": name, "kind": kind, "connections": count,
                                 "kb_each": idle(process, count, kind)})
    harness.report("server: anonymous memory per idle TLS connection (kB)", rows, options.json)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"server": server_part, "proxy": proxy_part, "memory": memory_part}
    parser.add_argument("--only", choices=list(parts))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        certificate = proxies.Certificate(directory)
        for name, part in parts.items():
            if options.only in (None, name):
                part(directory, certificate, options)


if __name__ == "__main__":
    harness.raise_open_files()
    main()
