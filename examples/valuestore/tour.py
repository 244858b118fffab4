"""Shows each mechanism of the value store on three nodes, and checks it.

    tour.py [--once]     with --once it ends after the last step, with status 0 if all worked
"""

import argparse
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from admission_test import Background, Pauses, offered  # noqa: E402
from cluster import (Client, Cluster, Load, collect_garbage, grpc, key_of, order_of,  # noqa: E402
                     pb, values_of, wait_until)

SEED = random.SystemRandom().randrange(1 << 30)


class Failed(Exception):
    """A mechanism that did not do what it is for."""


def need(condition, what):
    if not condition:
        raise Failed(what)


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def share_of(times, share):
    return sorted(times)[int(share * (len(times) - 1))]


# ---- the steps: each returns what it saw

def placement(cluster, client):
    values = values_of(300, SEED)
    before = cluster.numbers()
    begin = time.monotonic()
    for at in range(0, 300, 100):
        client.call("BatchPutLeaf", pb.BatchPutLeafRequest(values=values[at:at + 100]))
    took = time.monotonic() - begin
    after = cluster.numbers()
    need(not cluster.missing(values), "each value is on both owners")
    firsts = [sum(order_of(key_of(v))[0] == name for v in values) for name in "abc"]
    need(min(firsts) > 60, f"first owners are spread: {firsts}")
    fsyncs = after["batches"] - before["batches"]
    need(fsyncs < 500, f"{fsyncs} batches for 600 copies")
    return [f"300 values in {took:.2f} s; first owners a {firsts[0]}, b {firsts[1]}, c {firsts[2]}",
            f"600 copies on disk with {fsyncs} fsyncs (group commit)"]


def reads(cluster, client):
    value = values_of(1, SEED + 1, third="c")[0]
    client.put(value)
    sources = []
    for name in ("c", "c", "a"):
        reply = cluster[name].stub.GetValue(pb.GetValueRequest(key=key_of(value)), timeout=5)
        need(reply.value == value, "the bytes are right")
        sources.append(reply.source)
    need(sources == ["remote", "cache", "local"], f"sources {sources}")
    return [f"at a node that does not own it: {sources[0]}, then {sources[1]}; at an owner: "
            f"{sources[2]}"]


def hedged_reads(_, __):
    values = values_of(100, SEED + 2, third="c")
    took = []
    with Cluster("--cache-mb", "0") as uncached:
        Client(uncached).call("BatchPutLeaf", pb.BatchPutLeafRequest(values=values))
        reader = uncached["c"]
        end = time.monotonic() + 20
        with Pauses([uncached["a"], uncached["b"]], 0.15, 0.35):
            while reader.numbers()["hedges_won"] < 3:
                need(time.monotonic() < end, f"hedges win: {reader.numbers()}")
                for value in values:
                    begin = time.monotonic()
                    request = pb.GetValueRequest(key=key_of(value))
                    need(reader.stub.GetValue(request, timeout=5).value == value, "right bytes")
                    took.append(time.monotonic() - begin)
        after = reader.numbers()
    need(share_of(took, 0.9) < 0.1, f"p90 is {milliseconds(share_of(took, 0.9))}")
    return [f"the owners stop in turn for 150 ms; {len(took)} reads at the third node:",
            f"p50 {milliseconds(share_of(took, 0.5))}, p99 {milliseconds(share_of(took, 0.99))}, "
            f"{after['hedges']} hedges, {after['hedges_won']} won"]


def recipes(cluster, client):
    for value in (b"admit ", b"what fits"):
        client.put(value)
    joined = client.recipe("concat", [key_of(b"admit "), key_of(b"what fits")])
    loud = client.recipe("uppercase", [joined])
    stub = cluster["b"].stub
    replies = [stub.GetValue(pb.GetValueRequest(key=loud), timeout=5) for _ in range(2)]
    need([reply.value for reply in replies] == [b"ADMIT WHAT FITS"] * 2, "the value is right")
    need([reply.source for reply in replies] == ["computed", "cache"], "computed once")
    try:
        client.recipe("concat", [bytes(32)])
        refused = ""
    except grpc.RpcError as error:
        refused = error.details()
    need("no node has this value" in refused, "an input must exist")
    return [f"uppercase(concat(two values)) = {replies[0].value.decode()}: "
            f"{replies[0].source}, then {replies[1].source}", f"without its input: {refused}"]


def killed(cluster, _):
    node = cluster["b"]
    with Load(cluster, seed=SEED) as load:
        node.kill()
        count = len(load.acknowledged)
        wait_until(lambda: len(load.acknowledged) > count + 100)
        hints = cluster["a"].numbers()["hints"] + cluster["c"].numbers()["hints"]
        node.start()
    begin = time.monotonic()
    cluster.hints_delivered()
    took = time.monotonic() - begin
    lost = cluster.missing(load.acknowledged)
    need(hints > 0, "writes went on with hints")
    need(not lost, f"{len(lost)} copies of acknowledged writes are missing")
    need(load.read_share() >= 0.98, f"{load.failed_reads[:3]}")
    return [f"b is killed under load: {len(load.acknowledged)} writes acknowledged, {hints} hints "
            f"while it is away", f"b is back: all hints delivered after {took:.1f} s, "
            f"0 acknowledged writes missing at their owners, reads {load.read_share():.2%}"]


def repaired(cluster, client):
    value = values_of(1, SEED + 3, first="a", third="b")[0]
    record = pb.StoredRecord(key=key_of(value), payload=value)
    cluster["c"].stub.ReplicateLeaf(pb.ReplicateRequest(record=record), timeout=5)
    need(not cluster["a"].holds(value), "the owner misses it")
    need(client.get(key_of(value)) == value, "it is read")
    cluster["a"].stub.GetValue(pb.GetValueRequest(key=key_of(value)), timeout=5)
    begin = time.monotonic()
    wait_until(lambda: cluster["a"].holds(value))
    return [f"an owner missed a value; a read found it and it was back after "
            f"{milliseconds(time.monotonic() - begin)}"]


def garbage(cluster, client):
    kept, dropped = values_of(10, SEED + 4), values_of(30, SEED + 5)
    epoch = cluster["a"].numbers()["epoch"]
    for value in kept + dropped:
        client.put(value)
    root = client.recipe("concat", [key_of(value) for value in kept], root=True)
    collect_garbage(cluster, epoch + 1)
    client.put(dropped[0])  # again: its epoch is renewed
    removed, left = collect_garbage(cluster, epoch + 2)
    need(not cluster.missing(kept + dropped[:1]), "what is needed or new is there")
    need(not any(cluster[name].holds(value) for value in dropped[1:4] for name in "abc"),
         "the rest is gone")
    need(client.get(root) == b"".join(kept), "the root can be computed")
    return [f"two rounds: {removed} copies removed, {left} kept; a root keeps its 10 inputs, "
            "a put renews"]


def lost_disk(cluster, client):
    values = values_of(100, SEED + 6)
    client.call("BatchPutLeaf", pb.BatchPutLeafRequest(values=values))
    node = cluster["c"]
    node.kill()
    subprocess.run(["rm", "-r", node.folder], check=True)
    begin = time.monotonic()
    node.start("--rebuild", "on")
    took = time.monotonic() - begin
    need(not cluster.missing(values), "it has what it owns")
    return [f"c lost its disk: MigrateTransfer and SyncRecipes brought back what it owns in "
            f"{took:.2f} s"]


def drained(cluster, _):
    with Load(cluster, seed=SEED + 7) as load:
        status = cluster["a"].drain()
        cluster["a"].start()
    cluster.hints_delivered()
    need(status == 0, f"status {status}")
    need(not cluster.missing(load.acknowledged), "no acknowledged write is missing")
    need(load.read_share() >= 0.98, f"{load.failed_reads[:3]}")
    return [f"a drained under load (status 0): {len(load.acknowledged)} writes, 0 missing; "
            f"reads {load.read_share():.2%}"]


def overload(_, __):
    with Cluster("--readers", "4", "--read-ms", "10", "--initial-limit", "12", "--cache-mb",
                 "0") as slow:
        node = slow["a"]
        values = [v for v in values_of(40, SEED + 8) if node in slow.owners(v)]
        for value in values:
            Client(slow).put(value)
        load = {"method": "fetch", "rate": 150, "seconds": 2, "timeout_ms": 1000}
        alone = offered([node], values, **load)
        with Background(node, values) as background:
            beside = offered([node], values, **load)
        numbers = node.numbers()
        flood = offered([node], values, method="fetch", rate=2000, seconds=2, timeout_ms=500)
    need(background.refused > 0, "background work is shed")
    need(numbers["refused_high"] < 0.05 * numbers["admitted_high"], "reads are not")
    need(beside["ok"] >= 0.95 * beside["sent"], "reads are answered")
    need(flood["refused"] > flood["ok"] > 200, "a flood is refused, not collapsed under")
    return ["a slow node (400 reads a second); 150 a second beside transfers and collections:",
            f"reads p99 {alone['p99']:.0f} ms alone, {beside['p99']:.0f} ms beside; "
            f"refused: {numbers['refused_low']} low, {numbers['refused_high']} high",
            f"2000 reads a second: {flood['goodput']:.0f} a second answered in time, "
            f"{flood['refused']} refused at once"]


def peers(_, __):
    with Cluster("--readers", "70", "--read-ms", "1000") as slow:
        stub = slow["a"].stub
        request = pb.FetchValueRequest(key=bytes(32))

        def fetch(peer):
            return stub.FetchValue.future(request, timeout=20, metadata=(("x-weir-peer", peer),))
        calls = [fetch("greedy") for _ in range(64)]
        wait_until(lambda: slow["a"].numbers()["in_flight"] >= 64)
        refused = fetch("greedy").exception()
        served = fetch("other").code()
        ended = {call.code() for call in calls}
    need(refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, f"the 65th: {refused.code()}")
    need({served} | ended == {grpc.StatusCode.NOT_FOUND}, "the others are served")
    return [f"64 calls of one peer are served, the 65th: {refused.details()}; another peer's: "
            "served"]


STEPS = (("placement and writes", placement), ("the way of a read", reads),
         ("hedged reads", hedged_reads), ("recipes", recipes), ("a node is killed", killed),
         ("read repair", repaired), ("garbage collection", garbage), ("a lost disk", lost_disk),
         ("drain", drained), ("overload", overload),
         ("a peer's part", peers))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--once", action="store_true", help="end after the last step")
    once = parser.parse_args().once
    broken = []
    with Cluster() as cluster:
        client = Client(cluster)
        for number, (name, step) in enumerate(STEPS, 1):
            print(f"{number:2}. {name}")
            try:
                for line in step(cluster, client):
                    print(f"    {line}", flush=True)
            except (Failed, AssertionError, grpc.RpcError, subprocess.SubprocessError) as error:
                broken.append(name)
                print(f"    FAILED: {error}", flush=True)
        print(f"{len(STEPS) - len(broken)} of {len(STEPS)} mechanisms worked")
        if not once:
            for node in cluster.nodes.values():
                print(f"node {node.name}: {node.address}")
            print("Ctrl-C ends")
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                pass
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
