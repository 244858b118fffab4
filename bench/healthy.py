#!/usr/bin/env python3
"""Refusals in front of a healthy service: closed-loop clients, nginx behind Weir with its default
configuration, every run with a fresh start. Nothing is pinned: clients, gateway and service share
the machine, as they do on a small host.

  --hog  a process that computes all the time runs beside it
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile

import harness
from harness import BUILD, Process

BOTH_CORES = f"{harness.SERVER_CORE},{harness.CLIENT_CORE}"


def nginx(directory):
    port = harness.free_port()
    own = tempfile.mkdtemp(dir=directory)
    answer = "x" * harness.ANSWER_BYTES
    body = (f"server {{ listen 127.0.0.1:{port}; "
            f'location / {{ default_type text/plain; return 200 "{answer}"; }} }}')
    return Process(harness.nginx(own, body), BOTH_CORES, port)


def weir(to):
    port = harness.free_port()
    return Process([BUILD / "weir", "run", "--to", f"127.0.0.1:{to}", "--listen", str(port),
                    "--admin", "0"], BOTH_CORES, port)


def share_refused(clients, seconds):
    with tempfile.TemporaryDirectory() as directory, nginx(directory) as service, \
            weir(service.port) as gateway:
        result = harness.wrk(f"http://127.0.0.1:{gateway.port}/", seconds, clients,
                             core=BOTH_CORES)
    if result["errors"]:
        raise RuntimeError(f"{clients} clients: {result}")
    return result["not_2xx"] / result["requests"], result["requests"] / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 64, 400, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--hog", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if options.hog:
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(hog.kill)
        results = harness.interleaved(options.clients, options.rounds,
                                      lambda clients: share_refused(clients, options.seconds))
    harness.report("refused by a gateway before a healthy service" +
                   (", beside a CPU hog" if options.hog else ""), [
        {"clients": clients, "worst_pct": 100 * max(share for share, _ in runs),
         "median_pct": 100 * harness.median([share for share, _ in runs]),
         "requests_per_s": harness.median([rate for _, rate in runs])}
        for clients, runs in results.items()], options.json)


if __name__ == "__main__":
    harness.raise_open_files()
    main()
