"""Measures the value store for docs/reference/figures.md: reads while an owner pauses, with and
without hedging, and goodput at five times what a node can do, with and without admission. Each
figure is the median of the rounds, the sides by turns.

    WEIR_BUILD=build/release /usr/bin/python3 -B examples/valuestore/measure.py [rounds]
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from admission_test import Pauses, offered  # noqa: E402
from cluster import Client, Cluster, pb, values_of  # noqa: E402


READERS = {"first owner only": ("--hedging", "off", "--first-owner-only", "on"),
           "the faster owner": ("--hedging", "off"), "hedged": ("--hedging", "on")}


def paused_reads(reader):
    """Reads at the node that owns none of the values; their first owner stops 150 ms a second."""
    with Cluster("--cache-mb", "0", *READERS[reader]) as cluster:
        values = values_of(100, 7, first="a", third="c")
        Client(cluster).call("BatchPutLeaf", pb.BatchPutLeafRequest(values=values))
        load = {"method": "get", "timeout_ms": 2000}
        offered([cluster["c"]], values, rate=200, seconds=2, **load)  # until it knows the owners
        before = cluster["c"].numbers()
        with Pauses([cluster["a"]], 0.15, 0.85):
            result = offered([cluster["c"]], values, rate=200, seconds=10, **load)
        after = cluster["c"].numbers()
    calls = after["fetches"] - before["fetches"]
    attempts = after["fetch_attempts"] - before["fetch_attempts"]
    return {"p50": result["p50"], "p90": result["p90"], "p99": result["p99"],
            "max": result["max"], "extra load %": 100 * (attempts / calls - 1)}


def overload(admission):
    """2 reads of 10 ms at once: 200 a second can be answered, 1000 are asked for."""
    with Cluster("--readers", "2", "--read-ms", "10", "--cache-mb", "0", "--admission",
                 admission) as cluster:
        node = cluster["a"]
        values = [value for value in values_of(60, 8) if node in cluster.owners(value)]
        Client(cluster).call("BatchPutLeaf", pb.BatchPutLeafRequest(values=values))
        result = offered([node], values, method="fetch", rate=1000, seconds=15, timeout_ms=500)
    return {name: result[name] for name in ("goodput", "refused", "failed", "p50", "p99")}


def compare(what, sides, measure, rounds):
    seen = {side: [] for side in sides}
    for _ in range(rounds):
        for side, results in seen.items():
            results.append(measure(side))
    for side, results in seen.items():
        middle = {name: round(statistics.median(r[name] for r in results), 2)
                  for name in results[0]}
        print(f"{what} {side}: {middle}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    compare("reads:", READERS, paused_reads, rounds)
    compare("admission", ("off", "on"), overload, rounds)


if __name__ == "__main__":
    main()
