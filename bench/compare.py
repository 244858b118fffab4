#!/usr/bin/env python3
"""The gateway beside other proxies, one worker each, kept connections.

  cost      CPU per proxied request and
  latency   p50 and p99 at half load, for pairs of protocols (bench/pairs.py)
  refusal   CPU per refused request: an upstream with a limit of 1 that is taken
  overload  goodput at 5 × capacity: a backend of k workers that sleep, behind Weir untuned, HAProxy
            with a hand-tuned maxconn, and HAProxy plain
  failures  failed GETs of an open-loop load while a replica is killed, stopped or restarted
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import harness
import pairs
from harness import BUILD, CLIENT_CORE, SERVER_CORE, Process

HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
WORKERS = 8
SERVICE_MS = 20
FAILURE_RATE = 500
PATIENCE_SECONDS = 3


def backend_workers(workers=WORKERS, service_ms=SERVICE_MS, port=None):
    """k workers that take `service_ms` each; requests queue in front of them."""
    port = port or harness.free_port()
    return Process([BUILD / "tests" / "integration" / "weir_test_origin", "--port", port,
                    "--workers", workers, "--service-ms", service_ms], CLIENT_CORE, port)


def ports(to):
    return to if isinstance(to, list) else [to]


def weir(directory, to, limit=""):
    port = harness.free_port()
    conf = pathlib.Path(directory) / f"weir-{port}.toml"
    conf.write_text(f"""
[listen]
addresses = ["127.0.0.1:{port}"]
[admin]
listen = ""
access_log = "off"
[server]
loops = 1
{limit}
[[upstream]]
name = "app"
endpoints = [{", ".join(f'"127.0.0.1:{one}"' for one in ports(to))}]
[[route]]
upstream = "app"
""")
    return Process([BUILD / "weir", "run", "--config", conf], SERVER_CORE, port)


def nginx(directory, to):
    port = harness.free_port()
    own = pathlib.Path(directory) / f"nginx-{port}"
    own.mkdir()
    servers = "".join(f"server 127.0.0.1:{one}; " for one in ports(to))
    body = f"""
upstream app {{ {servers} keepalive 256; keepalive_requests 1000000000; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://app; proxy_http_version 1.1;
  proxy_connect_timeout 1s; proxy_next_upstream error timeout http_502 http_503 http_504;
  proxy_set_header connection ""; }} }}"""
    return Process(harness.nginx(str(own), body), SERVER_CORE, port)


def haproxy(directory, to, maxconn=None, retries=False):
    port = harness.free_port()
    conf = pathlib.Path(directory) / f"haproxy-{port}.cfg"
    bound = f"maxconn {maxconn}" if maxconn else ""
    again = "option redispatch 1\n  retries 3\n  retry-on all-retryable-errors" if retries else ""
    check = "check" if retries else ""
    servers = "\n".join(f"  server s{i} 127.0.0.1:{one} {bound} {check}"
                        for i, one in enumerate(ports(to)))
    conf.write_text(f"""
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout queue 100ms
  http-reuse always
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  {again}
{servers}
""")
    return Process([HAPROXY, "-db", "-f", conf], SERVER_CORE, port)


def refusal(rounds, seconds, json_path):
    limit = ('[admission.limit]\npolicy = "fixed"\ninitial_limit = 1\nmin_limit = 1\n'
             'max_limit = 1\n[admission]\nhigh_wait_max_ms = 0\nnormal_wait_max_ms = 0\n')
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        stuck = stack.enter_context(backend_workers(1, 600000))
        proxy = stack.enter_context(weir(directory, stuck.port, limit))
        holder = stack.enter_context(Process(
            ["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{proxy.port}/"], CLIENT_CORE))
        time.sleep(0.5)

        def measure(_):
            before = proxy.cpu_ns()
            result = harness.wrk(f"http://127.0.0.1:{proxy.port}/", seconds)
            return (proxy.cpu_ns() - before) / max(1, result["not_2xx"]) / 1e3

        values = harness.interleaved(["weir"], rounds, measure)["weir"]
        holder.stop()
    harness.report("proxy: CPU per refusal (503 with reason and hint)",
                   [{"proxy": "weir", "cpu_us": harness.median(values),
                     "range": harness.spread(values)}], json_path)


def goodput(port, seconds, rate):
    """What became of requests offered open-loop at `rate`; clients leave after a second."""
    text = subprocess.run(
        ["taskset", "-c", CLIENT_CORE, BUILD / "tests" / "integration" / "weir_test_traffic",
         "--port", str(port), "--seconds", str(seconds), "--connections", "4000", "--open", "100",
         "--patience", "1", "--class", f"/:{rate}"],
        capture_output=True, text=True, check=True, timeout=seconds + 30).stdout
    return json.loads(text)["classes"]["/"]


def overload(rounds, seconds, json_path):
    rate = 5 * WORKERS * 1000 / SERVICE_MS
    with tempfile.TemporaryDirectory() as directory:
        def measure(name):
            with backend_workers() as origin:
                proxy = {"weir (untuned)": lambda: weir(directory, origin.port),
                         "haproxy maxconn": lambda: haproxy(directory, origin.port, WORKERS),
                         "haproxy plain": lambda: haproxy(directory, origin.port)}[name]()
                with proxy:
                    goodput(proxy.port, seconds / 2, rate)  # learns, or fills its queue
                    stats = f"http://127.0.0.1:{origin.port}/origin/stats"
                    urllib.request.urlopen(stats).close()
                    result = goodput(proxy.port, seconds, rate)
                    strange = result["other"] + result["broken"] + result["unsent"]
                    if proxy.popen.poll() is not None or strange > 0.02 * result["offered"]:
                        proxy.log.seek(0)
                        raise RuntimeError(f"{name}: {result}, ended {proxy.popen.poll()}: "
                                           f"{proxy.log.read().decode()}")
                    with urllib.request.urlopen(stats) as page:
                        origin_did = json.load(page)
            # On a busy machine a sleep of 20 ms takes longer: what the workers could have done.
            done = origin_did["served"] + origin_did["wasted"]
            took = origin_did["busy_seconds"] / done if done else SERVICE_MS / 1000
            return {"good": result["ok"] * took / WORKERS / seconds, "p99_ms": result["ok_p99_ms"],
                    "refused": result["refused"] / result["offered"],
                    "late": result["late"] / result["offered"]}

        results = harness.interleaved(["weir (untuned)", "haproxy maxconn", "haproxy plain"],
                                      rounds, measure)
    rows = [{"proxy": name, "goodput_of_capacity": harness.median([r["good"] for r in runs]),
             "p99_ms_of_good": harness.median([r["p99_ms"] for r in runs]),
             "refused": harness.median([r["refused"] for r in runs]),
             "late": harness.median([r["late"] for r in runs])}
            for name, runs in results.items()]
    harness.report(f"proxy: goodput at 5 × overload ({WORKERS} workers × {SERVICE_MS} ms)", rows,
                   json_path)


class Replicas:
    """Replicas that can be killed, stopped and started again on their ports."""

    def __init__(self, count):
        self.processes = [backend_workers(64, 2) for _ in range(count)]
        self.ports = [one.port for one in self.processes]

    def kill_and_restart(self, down=1.0):
        os.kill(self.processes[0].popen.pid, signal.SIGKILL)
        self.processes[0].popen.wait()
        time.sleep(down)
        self.processes[0].log.close()
        self.processes[0] = backend_workers(64, 2, self.ports[0])

    def stop_and_wake(self, seconds=5.0):
        os.kill(self.processes[0].popen.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.processes[0].popen.pid, signal.SIGCONT)

    def end(self):
        for one in self.processes:
            one.stop()


# What happens, to how many replicas, and the rate: one replica must hold what it misses.
FAILURES = {"one of three killed, back after 1 s": (3, Replicas.kill_and_restart, FAILURE_RATE),
            "one of three stopped for 5 s": (3, Replicas.stop_and_wake, FAILURE_RATE),
            "the only one killed, back after 1 s": (1, Replicas.kill_and_restart, 200)}


def failed_requests(name, failure, directory):
    """(failed, offered): a request fails if it is refused, cut off, or takes PATIENCE_SECONDS."""
    count, strike, rate = FAILURES[failure]
    replicas = Replicas(count)
    try:
        proxy = {"weir": lambda: weir(directory, replicas.ports),
                 "haproxy": lambda: haproxy(directory, replicas.ports, retries=True),
                 "nginx": lambda: nginx(directory, replicas.ports)}[name]()
        with proxy:
            goodput(proxy.port, 2, rate)  # learns who is there
            load = subprocess.Popen(
                ["taskset", "-c", CLIENT_CORE,
                 BUILD / "tests" / "integration" / "weir_test_traffic", "--port", str(proxy.port),
                 "--seconds", "9", "--connections", "4000", "--open", "100", "--patience",
                 str(PATIENCE_SECONDS), "--class", f"/:{rate}"], stdout=subprocess.PIPE, text=True)
            time.sleep(1)
            strike(replicas)
            output, _ = load.communicate(timeout=60)
    finally:
        replicas.end()
    result = json.loads(output)["classes"]["/"]
    return result["offered"] - result["ok"], result["offered"]


def failures(rounds, json_path):
    for failure in FAILURES:
        with tempfile.TemporaryDirectory() as directory:
            results = harness.interleaved(
                ["weir", "haproxy", "nginx"], rounds,
                lambda name, what=failure, where=directory: failed_requests(name, what, where))
        rows = [{"proxy": name, "failed": harness.median([failed for failed, _ in runs]),
                 "range": f"{min(runs)[0]}–{max(runs)[0]}", "of": runs[0][1]}
                for name, runs in results.items()]
        harness.report(f"proxy: failed GETs, {failure}", rows, json_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", choices=["cost", "latency", "refusal", "overload", "failures"])
    parser.add_argument("--pair", choices=list(pairs.PAIRS), help="of cost and latency")
    parser.add_argument("--json")
    options = parser.parse_args()
    parts = {"cost": lambda: pairs.each(pairs.cost, options),
             "latency": lambda: pairs.each(pairs.latency, options),
             "refusal": lambda: refusal(max(1, options.rounds // 2), options.seconds, options.json),
             "overload": lambda: overload(max(1, options.rounds // 2), 4 * options.seconds,
                                          options.json),
             "failures": lambda: failures(max(1, options.rounds // 2), options.json)}
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    harness.raise_open_files()
    main()
