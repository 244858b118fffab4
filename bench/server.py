#!/usr/bin/env python3
"""The HTTP server beside nginx: CPU per request, and memory per idle connection.

One loop against one worker, 128-byte answers, keep-alive; the server on one core, wrk on the other.
CPU time is what the scheduler charged to the process. Memory is anonymous memory, once after a
first request (the tables a server makes at start, of as many places for both) and once after one
request on each of N connections that then stay open: `kb_each` is the growth, `kb_with_tables` all.
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


def nginx(directory, connections=16384):
    port = harness.free_port()
    body = (f'server {{ listen 127.0.0.1:{port}; location / '
            f'{{ default_type text/plain; return 200 "{ANSWER}"; }} }}')
    return Process(harness.nginx(directory, body, connections), SERVER_CORE, port)


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


def ask(s):
    s.sendall(b"GET / HTTP/1.1\r\nhost: bench\r\n\r\n")
    if not s.recv(4096).startswith(b"HTTP/1.1 200"):
        raise RuntimeError("no answer")


def idle_memory(name, process, count):
    """One row: kB of anonymous memory per connection, after one request on each."""
    def connect():
        return socket.create_connection(("127.0.0.1", process.port))

    # The kernel connects before anybody accepts: only an answer shows that the worker has started
    # and made its tables.
    with connect() as first:
        ask(first)
    time.sleep(0.5)
    before = process.anonymous_kb()
    sockets = []
    for _ in range(count):
        sockets.append(connect())
        ask(sockets[-1])
    time.sleep(0.5)
    after = process.anonymous_kb()
    for s in sockets[:: max(1, count // 100)]:
        ask(s)  # a sample must still be served
    for s in sockets:
        s.close()
    return {"server": name, "connections": count, "kb_each": (after - before) / count,
            "kb_with_tables": after / count}


def memory(json_path):
    rows = []
    for count in (1000, 5000):
        places = 2 * count
        with weir(places) as ours:
            rows.append(idle_memory("weir", ours, count))
        with tempfile.TemporaryDirectory() as directory, nginx(directory, places) as theirs:
            rows.append(idle_memory("nginx", theirs, count))
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
