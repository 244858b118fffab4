#!/usr/bin/env python3
"""Hedged reads over real sockets: `weir run` with its defaults before replica processes, with and
without hedging in turns, every run with a fresh start. Clients are a closed loop of 20.

  fast      two replicas, 1 ms each: what hedging costs when it has nothing to do
  straggler three replicas, lognormal 5 ms with a deviation of 2 ms, 5 % take ten times as long;
            also with hedges at the 92nd percentile, because the 95th falls into the gap between
            the usual answers and the stragglers
  pause     three replicas, 2 ms, 2 % take 150 ms: p99 of a cluster with collector pauses
  primary   requests pinned to a replica that takes 100 ms, beside one that takes 2 ms; one at a
            time, as many as the burst of the budget pays for
"""

import argparse
import contextlib
import http.client
import json
import re
import subprocess
import tempfile
import time
import urllib.request

import harness
from harness import BUILD, Process

CORES = f"{harness.SERVER_CORE},{harness.CLIENT_CORE}"
QUANTILES = (50, 90, 99, 99.9)
PRIMARY_REQUESTS = 60
MODES = {"off": "enabled = false", "on": "", "early": "quantile = 0.92"}
SCENARIOS = {
    "fast": [{"service-ms": 1}] * 2,
    "straggler": [{"service-ms": 5, "deviation-ms": 2, "stragglers-pct": 5,
                   "straggler-factor": 10}] * 3,
    "pause": [{"service-ms": 2, "stragglers-pct": 2, "straggler-factor": 75}] * 3,
    "primary": [{"service-ms": 100}, {"service-ms": 2}],
}


def origin(options, seed):
    port = harness.free_port()
    command = [BUILD / "tests/integration/weir_test_origin", "--workers", "500", "--seed", seed,
               "--port", port]
    for name, value in options.items():
        command += [f"--{name}", value]
    return Process(command, CORES, port)


def gateway(directory, scenario, ports, mode):
    port, admin = harness.free_port(), harness.free_port()
    pinned = 'balance = "hash"\nhash_by = "path"\n' if scenario == "primary" else ""
    path = f"{directory}/{scenario}-{mode}.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""
[hedge]
{MODES[mode]}
[[upstream]]
name = "app"
endpoints = [{", ".join(f'"127.0.0.1:{p}"' for p in ports)}]
{pinned}[[route]]
upstream = "app"
""")
    process = Process([BUILD / "weir", "run", "--config", path, "--listen", port, "--admin", admin],
                      CORES, port)
    process.admin = admin
    return process


def metric(process, name):
    page = urllib.request.urlopen(f"http://127.0.0.1:{process.admin}/metrics").read().decode()
    return float(re.search(rf'^{name}{{upstream="app"}} (\S+)$', page, re.MULTILINE)[1])


def quantiles(milliseconds):
    ordered = sorted(milliseconds)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * q / 100))] for q in QUANTILES]


def closed_loop(directory, port, seconds):
    """Not wrk: it adds samples for requests that a waiting client did not send."""
    log = tempfile.mktemp(dir=directory)  # h2load appends
    subprocess.run(["taskset", "-c", CORES, "h2load", "--h1", "-t1", "-c20", f"-D{seconds}",
                    f"--log-file={log}", f"http://127.0.0.1:{port}/"],
                   capture_output=True, check=True)
    with open(log, encoding="ascii") as lines:
        rows = [line.split() for line in lines]
    refused = sum(status != "200" for _, status, _ in rows)
    if refused:
        raise RuntimeError(f"{refused} of {len(rows)} requests failed")
    return quantiles(int(us) / 1000 for _, _, us in rows)


def one_by_one(process, slow):
    """The latencies of requests whose replica is the slow one."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port)

    def milliseconds(path):
        began = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}")
        return 1000 * (time.monotonic() - began)

    for i in range(20):  # finds a path of the slow one
        path = f"/{i}"
        before = slow_attempts(process, slow)
        milliseconds(path)
        if slow_attempts(process, slow) > before:
            break
    return quantiles(milliseconds(path) for _ in range(PRIMARY_REQUESTS))


def slow_attempts(process, slow):
    page = urllib.request.urlopen(f"http://127.0.0.1:{process.admin}/endpoints").read()
    return next(one["attempts"] for one in json.loads(page)["endpoints"]
                if one["endpoint"].endswith(f":{slow}"))


def measure(directory, scenario, mode, seconds):
    with contextlib.ExitStack() as stack:
        origins = [stack.enter_context(origin(options, 1 + i))
                   for i, options in enumerate(SCENARIOS[scenario])]
        process = stack.enter_context(
            gateway(directory, scenario, [one.port for one in origins], mode))
        if scenario == "primary":
            latencies = one_by_one(process, origins[0].port)
        else:
            closed_loop(directory, process.port, 2)  # limits and delays are learned
            latencies = closed_loop(directory, process.port, seconds)
        attempts = metric(process, "weir_upstream_attempts_total")
        hedges = metric(process, "weir_hedge_requests_total")
    return *latencies, 100 * hedges / (attempts - hedges)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--json")
    options = parser.parse_args()
    contenders = [(scenario, mode) for scenario in options.scenario for mode in MODES
                  if mode != "early" or scenario == "straggler"]
    with tempfile.TemporaryDirectory() as directory:
        results = harness.interleaved(
            contenders, options.rounds,
            lambda which: measure(directory, *which, options.seconds))
    rows = []
    for (scenario, mode), runs in results.items():
        columns = [harness.median(column) for column in zip(*runs)]
        rows.append({"scenario": scenario, "hedging": mode,
                     **{f"p{q:g}_ms": value for q, value in zip(QUANTILES, columns)},
                     "extra_load_pct": columns[-1]})
    harness.report("reads with and without hedging, medians", rows, options.json)
    for scenario in options.scenario:
        ratios = [on[0] / off[0] for on, off in zip(results[scenario, "on"],
                                                    results[scenario, "off"])]
        print(f"{scenario}: p50 with hedging / without {harness.median(ratios):.3f} "
              f"({harness.spread(ratios)})")


if __name__ == "__main__":
    harness.raise_open_files()
    main()
