#!/usr/bin/env python3
"""A gRPC server with weir_grpc beside the same server without: CPU and instructions per unary call.

The callback API, one small message each way, 16 calls at a time, each with a deadline and a
tenant in its metadata. `weir` has neither heartbeat nor actor, `defaults` has the heartbeat and
bills each call to its tenant. CPU time is what the scheduler
charged to the server, in interleaved rounds; instructions are what valgrind counts in the server,
as the difference of two loads, so that starting is left out. They do not depend on how busy the
machine is.
"""

import argparse
import contextlib
import pathlib
import re
import subprocess
import tempfile

import harness
from harness import BUILD, CLIENT_CORE, SERVER_CORE

PROGRAM = BUILD / "src" / "grpc" / "weir_grpc_server_cost"
KINDS = ("bare", "weir", "defaults")


class Server:
    def __init__(self, kind, prefix=()):
        self.popen = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, *prefix, str(PROGRAM), "serve", kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.popen.stdout.readline())

    def load(self, calls):
        subprocess.run(["taskset", "-c", CLIENT_CORE, str(PROGRAM), "load", str(self.port),
                        str(calls)], check=True)

    def cpu_ns(self):
        threads = pathlib.Path(f"/proc/{self.popen.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.stdin.close()
        if self.popen.wait(60) != 0:
            raise RuntimeError("the server failed")


def cpu(rounds, calls):
    with contextlib.ExitStack() as running:
        servers = {kind: running.enter_context(Server(kind)) for kind in KINDS}
        for server in servers.values():
            server.load(calls)  # warm-up

        def measure(kind):
            before = servers[kind].cpu_ns()
            servers[kind].load(calls)
            return (servers[kind].cpu_ns() - before) / calls / 1e3

        return harness.interleaved(servers, rounds, measure)


def instructions(kind, calls):
    """Of one call: what twice as many calls cost more."""
    totals = []
    for factor in (1, 2):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "counts"
            with Server(kind, ("valgrind", "--quiet", "--tool=callgrind",
                               f"--callgrind-out-file={out}")) as server:
                server.load(calls * factor)
            totals.append(int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(),
                                        re.MULTILINE).group(1)))
    return (totals[1] - totals[0]) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--counted", type=int, default=2000,
                        help="calls under valgrind; 0: no instructions")
    options = parser.parse_args()
    runs = cpu(options.rounds, options.calls)
    medians = {kind: harness.median(runs[kind]) for kind in KINDS}
    for kind in KINDS:
        print(f"{kind}: {medians[kind]:.1f} us CPU per call, {harness.spread(runs[kind])}")
    for kind in KINDS[1:]:
        ratios = [ours / theirs for ours, theirs in zip(runs[kind], runs["bare"])]
        print(f"{kind} / bare: {harness.median(ratios):.3f} (median of {len(ratios)} pairs)")
    if options.counted:
        counts = {kind: instructions(kind, options.counted) for kind in KINDS}
        for kind, count in counts.items():
            print(f"{kind}: {count:.0f} instructions per call, {count / counts['bare']:.3f} x bare")


if __name__ == "__main__":
    main()
