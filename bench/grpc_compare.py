#!/usr/bin/env python3
"""gRPC and WebSocket through the gateway beside other proxies, one worker each.

  cost      CPU per unary call and calls a second (each is a stream), as many as the proxy carries;
            front: cleartext, and TLS; HAProxy, nginx (grpc_pass) and nghttpx beside
  latency   p50 and p99 that each proxy adds to calls that start on a schedule, at half of what the
            slowest carries
  sockets   WebSocket messages per second of the proxy's CPU time; HAProxy and nginx beside

A call has a message of 64 bytes and an answer of 123 with grpc-status in trailers. CPU is user and
system time of the proxy's processes. Rounds are interleaved A-B-B-A; medians are reported.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import tempfile

import harness
import proxies
from harness import BUILD, CLIENT_CORE, Process

TOOLS = BUILD / "tests" / "integration"
MESSAGE = 64
CLIENTS = 16
STREAMS = 10  # calls at a time on each connection
FRONTS = {"h2": "cleartext", "tls": "TLS"}
SOCKETS = 32


def service():
    """Answers calls as soon as they come."""
    port = harness.free_port()
    return Process([TOOLS / "weir_test_origin", "--port", port, "--workers", 256, "--service-ms",
                    0], CLIENT_CORE, port)


def url_of(front, port):
    return f"{'https' if front == 'tls' else 'http'}://127.0.0.1:{port}/test.Bench/Call"


def h2load_call(directory):
    """h2load's options for a unary call."""
    body = pathlib.Path(directory) / "call"
    body.write_bytes(b"\0" + MESSAGE.to_bytes(4, "big") + b"m" * MESSAGE)
    return ["-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers",
            f"-c{CLIENTS}", f"-m{STREAMS}"]


def open_loop(front, port, seconds, rate):
    """Calls on a schedule; every one must end with grpc-status 0."""
    text = subprocess.run(
        ["taskset", "-c", CLIENT_CORE, TOOLS / "weir_test_http2_traffic", "--port", str(port),
         "--tls", str(int(front == "tls")), "--grpc", "1", "--message", str(MESSAGE),
         "--connections", str(CLIENTS), "--settle", "0.3", "--seconds", str(seconds), "--class",
         f"/test.Bench/Call:{rate}"],
        capture_output=True, text=True, check=True, timeout=seconds + 30).stdout
    found = json.loads(text)["classes"]["/test.Bench/Call"]
    if found["ok"] < 0.98 * found["offered"] or found["other"] + found["broken"] > 0:
        raise RuntimeError(f"port {port}: {({k: found[k] for k in list(found)[:7]})}")
    return found


def each_front(part, options):
    for front in FRONTS:
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
            certificate = proxies.Certificate(directory)
            origin = stack.enter_context(service())
            contenders = proxies.started(stack, directory, certificate, front, "grpc", origin.port)
            for name, process in contenders.items():
                open_loop(front, process.port, 0.5, 200)  # it speaks gRPC
            part(front, directory, origin, contenders, options)


def cost(front, directory, origin, contenders, options):
    call = h2load_call(directory)

    def measure(name):
        process = contenders[name]
        own, behind = process.cpu_ns(), origin.cpu_ns()
        good, generator = harness.h2load(url_of(front, process.port),
                                         [*call, f"-D{options.seconds}"])
        own, behind = process.cpu_ns() - own, origin.cpu_ns() - behind
        return {"own": own / good / 1e3, "total": (own + behind + generator) / good / 1e3,
                "rate": good / options.seconds}

    for name in contenders:
        measure(name)  # warm-up
    results = harness.interleaved(contenders, options.rounds, measure)
    medians = {name: harness.median([r["own"] for r in runs]) for name, runs in results.items()}
    best = min(value for name, value in medians.items() if name != "weir")
    harness.report(f"gRPC: CPU per unary call, {FRONTS[front]} in front", [
        {"proxy": name, "cpu_us": medians[name],
         "range": harness.spread([r["own"] for r in runs]), "x_best_other": medians[name] / best,
         "total_cpu_us": harness.median([r["total"] for r in runs]),
         "streams_per_s": round(harness.median([r["rate"] for r in runs])),
         "streams_per_cpu_s": round(1e6 / medians[name])}
        for name, runs in results.items()], options.json)


def latency(front, directory, origin, contenders, options):
    call = h2load_call(directory)
    slowest = min(harness.h2load(url_of(front, process.port), [*call, "-D1"])[0]
                  for process in contenders.values())
    rate = max(100, slowest // 2)

    def measure(name):
        # Without a proxy the calls go to the service in cleartext.
        where = (front, contenders[name].port) if name != "no proxy" else ("h2", origin.port)
        found = open_loop(*where, options.seconds, rate)
        return {"p50": found["ok_p50_ms"] * 1e3, "p99": found["ok_p99_ms"] * 1e3}

    results = harness.interleaved([*contenders, "no proxy"], options.rounds, measure)
    medians = {name: {p: harness.median([r[p] for r in runs]) for p in ("p50", "p99")}
               for name, runs in results.items()}
    base = medians["no proxy"]
    harness.report(f"gRPC: latency in µs at {rate} calls a second, {FRONTS[front]} in front", [
        {"proxy": name, **found, "p50_added": found["p50"] - base["p50"],
         "p99_added": found["p99"] - base["p99"]} for name, found in medians.items()],
        options.json)


def haproxy_or_nginx_for_sockets(directory, certificate, name, to):
    """The others as documented for WebSocket: nginx must be told, HAProxy knows."""
    if name != "nginx":
        return getattr(proxies, name)(directory, certificate, "h1", "h1", to)
    port = harness.free_port()
    own = tempfile.mkdtemp(dir=directory)
    body = (f"server {{ listen 127.0.0.1:{port}; location / {{ "
            f"proxy_pass http://127.0.0.1:{to}; proxy_http_version 1.1; "
            f'proxy_set_header upgrade $http_upgrade; proxy_set_header connection "upgrade"; }} }}')
    return Process(harness.nginx(own, body), harness.SERVER_CORE, port)


def sockets(options):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        certificate = proxies.Certificate(directory)
        echo = stack.enter_context(Process([TOOLS / "weir_test_socket_traffic", "--serve", "1"],
                                           CLIENT_CORE))
        to = port_of(echo)
        contenders = {name: stack.enter_context(haproxy_or_nginx_for_sockets(
            directory, certificate, name, to)) for name in ("weir", "haproxy", "nginx")}
        for window in (1, 16):
            def measure(name, at_once=window):
                process = contenders[name]
                own = process.cpu_ns()
                text = subprocess.run(
                    ["taskset", "-c", CLIENT_CORE, TOOLS / "weir_test_socket_traffic", "--port",
                     str(process.port), "--connections", str(SOCKETS), "--window", str(at_once),
                     "--size", str(MESSAGE), "--seconds", str(options.seconds)],
                    capture_output=True, text=True, check=True).stdout
                own = process.cpu_ns() - own
                found = json.loads(text)
                return {"per_cpu": found["messages"] / (own / 1e9),
                        "rate": found["messages"] / found["seconds"]}

            for name in contenders:
                measure(name)  # warm-up
            report_sockets(window, harness.interleaved(contenders, options.rounds, measure),
                           options)


def port_of(process):
    """The first line that the process printed."""
    for _ in range(200):
        process.log.seek(0)
        line = process.log.read().decode()
        if "\n" in line:
            return int(line.split()[1])
        subprocess.run(["sleep", "0.02"], check=True)
    raise RuntimeError("no port was printed")


def report_sockets(window, results, options):
    medians = {name: harness.median([r["per_cpu"] for r in runs])
               for name, runs in results.items()}
    best = max(value for name, value in medians.items() if name != "weir")
    harness.report(
        f"WebSocket: messages of {MESSAGE} bytes and their echoes, {SOCKETS} connections, "
        f"{window} at a time on each", [
            {"proxy": name, "messages_per_cpu_s": round(medians[name]),
             "x_best_other": medians[name] / best,
             "messages_per_s": round(harness.median([r["rate"] for r in runs]))}
            for name, runs in results.items()], options.json)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", choices=["cost", "latency", "sockets"])
    parser.add_argument("--json")
    options = parser.parse_args()
    parts = {"cost": lambda: each_front(cost, options),
             "latency": lambda: each_front(latency, options),
             "sockets": lambda: sockets(options)}
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    harness.raise_open_files()
    main()
