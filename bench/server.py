#!/usr/bin/env python3
"""The HTTP server beside nginx: CPU per request, and memory per idle connection.

One loop against one worker, 128-byte answers, keep-alive; the server on one core, wrk on the other.
CPU time is what the scheduler charged to the process. Memory is the growth of anonymous memory
after one request on each of N connections that then stay open (counted).
"""

import argparse
import socket
import tempfile
import time

import harness
from harness import BUILD, SERVER_CORE, Process

ANSWER = "x" * 128


def weir(connections):
    port = harness.free_port()
    return Process([BUILD / "examples" / "hello_server", "--port", port, "--loops", 1,
                    "--max-connections", connections, "--idle-timeout-ms", 600000],
                   SERVER_CORE, port)


def nginx(directory):
    port = harness.free_port()
    body = (f'server {{ listen 127.0.0.1:{port}; location / '
            f'{{ default_type text/plain; return 200 "{ANSWER}"; }} }}')
    return Process(harness.nginx(directory, body), SERVER_CORE, port)


def cpu_per_request(rounds, seconds, json_path):
    with tempfile.TemporaryDirectory() as directory, weir(1024) as ours, \
            nginx(directory) as theirs:
        servers = {"weir": ours, "nginx": theirs}

        def measure(name):
            process = servers[name]
            before = process.cpu_ns()
            result = harness.wrk(f"http://127.0.0.1:{process.port}/", seconds)
            if result["errors"] or result["not_2xx"]:
                raise RuntimeError(f"{name}: {result}")
            used = process.cpu_ns() - before
            return {"server_us": used / result["requests"] / 1e3,
                    "total_us": (used + result["generator_cpu_ns"]) / result["requests"] / 1e3}

        for name in servers:
            measure(name)  # warm-up
        results = harness.interleaved(servers, rounds, measure)
    best = harness.median([r["server_us"] for r in results["nginx"]])
    rows = []
    for name, runs in results.items():
        own = [r["server_us"] for r in runs]
        rows.append({"server": name, "cpu_us_per_request": harness.median(own),
                     "range": harness.spread(own), "x_nginx": harness.median(own) / best,
                     "total_cpu_us": harness.median([r["total_us"] for r in runs])})
    harness.report("server: CPU per request, 128 bytes, keep-alive, 64 connections", rows,
                   json_path)


def idle_memory(process, count):
    """kB of anonymous memory per connection, after one request on each."""
    request = b"GET / HTTP/1.1\r\nhost: bench\r\n\r\n"
    before = process.anonymous_kb()
    sockets = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", process.port))
        s.sendall(request)
        if not s.recv(4096).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("no answer")
        sockets.append(s)
    time.sleep(0.5)
    grown = process.anonymous_kb() - before
    for s in sockets[:: max(1, count // 100)]:  # a sample must still be served
        s.sendall(request)
        if not s.recv(4096).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("an idle connection was dropped")
    for s in sockets:
        s.close()
    return grown / count


def memory(json_path):
    rows = []
    for count in (1000, 5000):
        with weir(2 * count) as ours:
            rows.append({"server": "weir", "connections": count,
                         "kb_each": idle_memory(ours, count)})
        with tempfile.TemporaryDirectory() as directory, nginx(directory) as theirs:
            rows.append({"server": "nginx", "connections": count,
                         "kb_each": idle_memory(theirs, count)})
    harness.report("server: anonymous memory per idle connection (kB)", rows, json_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    cpu_per_request(options.rounds, options.seconds, options.json)
    memory(options.json)


if __name__ == "__main__":
    harness.raise_open_files()
    main()
