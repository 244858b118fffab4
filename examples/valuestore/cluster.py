"""Three nodes of the value store as processes, and what a client of them needs."""

import concurrent.futures
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release")) / "examples/valuestore"
sys.path.insert(0, str(BUILD / "python"))

import grpc  # noqa: E402
import valuestore_pb2 as pb  # noqa: E402
import valuestore_pb2_grpc as rpc  # noqa: E402

NAMES = ("a", "b", "c")
PATIENCE = 30.0
# Cancelled, although nobody did: a call that reaches a server of gRPC as it shuts down.
RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
           grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)


def key_of(value):
    return hashlib.sha256(value).digest()


def _mixed(x):
    """As in placement.cc."""
    mask = (1 << 64) - 1
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & mask
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)


def order_of(key):
    """The names of the nodes for this key: two owners, then the holder of hints."""
    number = int.from_bytes(key[:8], "little")

    def score(name):
        seed = hashlib.sha256(b"node " + name.encode()).digest()[:8]
        return _mixed(int.from_bytes(seed, "little") ^ number), name
    return sorted(NAMES, key=score, reverse=True)


def values_of(count, seed, size=64, first=None, third=None):
    """That many different values, of those whose first owner or hint holder is a certain node."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        value = rng.randbytes(size)
        order = order_of(key_of(value))
        if first in (None, order[0]) and third in (None, order[2]):
            found.append(value)
    return found


def wait_until(what, seconds=PATIENCE, every=0.02):
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(every)


class Node:
    """One node: its process, and a connection to it."""

    def __init__(self, name, addresses, folder, arguments, command=(), program="valuestore_node"):
        self.name = name
        self.program = program
        self.folder = folder
        self.arguments = list(arguments)
        self.command = list(command)
        self.address = addresses[name]
        self._nodes = ",".join(f"{each}={addresses[each]}" for each in NAMES)
        self.process = None
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
                   ("grpc.initial_reconnect_backoff_ms", 100),
                   ("grpc.min_reconnect_backoff_ms", 200),
                   ("grpc.max_reconnect_backoff_ms", 500)]
        self.channel = grpc.insecure_channel(self.address, options=options)
        self.stub = rpc.ValueStoreStub(self.channel)

    def start(self, *more):
        """Returns once it serves."""
        self.begin(*more)
        self.ready()

    def begin(self, *more):
        command = [*self.command, str(BUILD / self.program), "--name", self.name, "--nodes",
                   self._nodes, "--data", self.folder, *self.arguments, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def ready(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", f"{self.name}: {line!r}, status {self.process.poll()}"
        grpc.channel_ready_future(self.channel).result(timeout=PATIENCE)

    def kill(self):
        self.process.kill()
        self._ended()

    def lose_power(self):
        """Of a node with a forgetful disk: what was not synced is lost."""
        self.process.send_signal(signal.SIGUSR1)
        assert self._ended() == 1, "it did not end by itself"

    def drain(self):
        """SIGTERM; returns its exit status."""
        self.process.terminate()
        return self._ended()

    def _ended(self):
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self._ended()
        self.channel.close()

    def numbers(self):
        return dict(self.stub.HealthCheck(pb.HealthCheckRequest(), timeout=5).numbers)

    def holds(self, value, retry=True):
        """Whether this very node has the value on its own disk."""
        request = pb.FetchValueRequest(key=key_of(value))
        for _ in range(50):
            try:
                return self.stub.FetchValue(request, timeout=5).payload == value
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.NOT_FOUND:
                    return False
                if not retry or error.code() not in RETRIED:
                    raise
                time.sleep(0.1)
        raise AssertionError(f"{self.name} does not answer")


class Cluster:
    """Three nodes on addresses of their own in 127/8, so that a node keeps its address when it is
    started again and clusters never meet."""

    def __init__(self, *arguments, start=True, commands=None, program="valuestore_node"):
        self.folder = tempfile.mkdtemp(prefix="valuestore-")
        pid = os.getpid()
        net = f"127.{64 + (pid >> 8) % 128}.{pid % 256}"
        base = int.from_bytes(os.urandom(1), "little") % 60 * 4
        addresses = {name: f"{net}.{base + i + 1}:7070" for i, name in enumerate(NAMES)}
        self.nodes = {name: Node(name, addresses, os.path.join(self.folder, name), arguments,
                                 (commands or {}).get(name, ()), program)
                      for name in NAMES}
        if start:
            try:
                self.start()
            except BaseException:
                self.end()
                raise

    def start(self):
        for node in self.nodes.values():
            node.begin()
        for node in self.nodes.values():
            node.ready()
        self.connected()

    def connected(self):
        """Waits until every node thinks that all others are up: a write then needs no hint."""
        def look():
            value = os.urandom(16)
            order = order_of(key_of(value))
            reply = self[order[2]].stub.PutLeaf(pb.PutLeafRequest(value=value), timeout=5)
            return not reply.hinted
        for _ in range(3):
            wait_until(lambda: _tried(look))
        for node in self.nodes.values():  # and reads find both owners
            wait_until(lambda node=node: node.numbers()["replicas_away"] == 0)

    def __getitem__(self, name):
        return self.nodes[name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for node in self.nodes.values():
            node.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def owners(self, value):
        return [self.nodes[name] for name in order_of(key_of(value))[:2]]

    def holder(self, value):
        return self.nodes[order_of(key_of(value))[2]]

    def numbers(self):
        """Name -> number, of all nodes together."""
        total = {}
        for node in self.nodes.values():
            for name, number in node.numbers().items():
                total[name] = total.get(name, 0) + number
        return total

    def missing(self, values):
        """(node, value) of each copy that an owner should have and has not."""
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            pairs = [(owner, value) for value in values for owner in self.owners(value)]
            there = list(pool.map(lambda pair: pair[0].holds(pair[1]), pairs))
        return [(owner.name, value) for (owner, value), has in zip(pairs, there) if not has]

    def hints_delivered(self, seconds=PATIENCE):
        wait_until(lambda: _tried(lambda: self.numbers()["hints"] == 0), seconds, every=0.1)


def _tried(what):
    try:
        return what()
    except grpc.RpcError:
        return None


class Client:
    """Calls any node, and another one if that does not answer.

    `last_try`: the name of the node that answered, and how long that try took."""

    last_try = ("", 0.0)

    def __init__(self, cluster, seed=1):
        self.nodes = list(cluster.nodes.values())
        self.rng = random.Random(seed)

    def call(self, method, request, tries=8, timeout=5.0, metadata=None):
        node = None
        for left in reversed(range(tries)):
            node = self.rng.choice([each for each in self.nodes if each is not node])
            begin = time.monotonic()
            try:
                reply = getattr(node.stub, method)(request, timeout=timeout, metadata=metadata)
                self.last_try = (node.name, time.monotonic() - begin)
                return reply
            except grpc.RpcError as error:
                if left == 0 or error.code() not in RETRIED:
                    raise
                time.sleep(self.rng.uniform(0.02, 0.08))
        raise AssertionError("no tries")

    def put(self, value, root=False, **options):
        reply = self.call("PutLeaf", pb.PutLeafRequest(value=value, root=root), **options)
        assert reply.key == key_of(value)
        return reply

    def get(self, key, **options):
        return self.call("GetValue", pb.GetValueRequest(key=key), **options).value

    def recipe(self, function, inputs, root=False):
        request = pb.PutRecipeRequest(function=function, inputs=inputs, root=root)
        return self.call("PutRecipe", request).key


class Load:
    """Threads that put and get until they are stopped. What was acknowledged is remembered.

    A read has two tries, at two nodes: one of them may be the node that is gone. `read_times` has
    the node and the time of each try that was answered."""

    def __init__(self, cluster, writers=3, readers=3, seed=1):
        self.acknowledged = []
        self.refused_puts = 0
        self.reads = 0
        self.failed_reads = []
        self.read_times = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._write, args=(Client(cluster, seed + i),))
                         for i in range(writers)]
        self._threads += [threading.Thread(target=self._read, args=(Client(cluster, -seed - i),))
                          for i in range(readers)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        wait_until(lambda: self.acknowledged)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, client):
        while not self._stop.is_set():
            value = client.rng.randbytes(256)
            try:
                client.put(value, tries=1)
            except grpc.RpcError:
                with self._lock:
                    self.refused_puts += 1
                continue
            with self._lock:
                self.acknowledged.append(value)

    def _read(self, client):
        while not self._stop.is_set():
            with self._lock:
                value = client.rng.choice(self.acknowledged) if self.acknowledged else None
            if value is None:
                time.sleep(0.01)
                continue
            failure = None
            try:
                if client.get(key_of(value), tries=2, timeout=4.0) != value:
                    failure = "other bytes"
            except grpc.RpcError as error:
                failure = f"{error.code()}: {error.details()}"
            with self._lock:
                self.reads += 1
                if failure:
                    self.failed_reads.append(failure)
                else:
                    self.read_times.append(client.last_try)

    def read_share(self):
        return 1 - len(self.failed_reads) / max(1, self.reads)


def sweep_of(epoch, live, page=10000):
    """The messages of a sweep."""
    keys = list(live)
    for at in range(0, len(keys), page):
        yield pb.GcSweepRequest(epoch=epoch, live=keys[at:at + page])
    yield pb.GcSweepRequest(epoch=epoch, last=True)


def collect_garbage(cluster, epoch, unroot=()):
    """A round: every node names its roots, then every node sweeps. Returns (removed, kept)."""
    request = pb.GcCollectRootsRequest(epoch=epoch, unroot=unroot)
    collected = [page for node in cluster.nodes.values()
                 for page in node.stub.GcCollectRoots(request, timeout=20)]
    inputs = {edge.recipe: edge.inputs for reply in collected for edge in reply.edges}
    alive = set()
    todo = [root for reply in collected for root in reply.roots]
    while todo:
        key = todo.pop()
        if key not in alive:
            alive.add(key)
            todo.extend(inputs.get(key, ()))
    swept = [node.stub.GcSweep(sweep_of(epoch, alive), timeout=60)
             for node in cluster.nodes.values()]
    return sum(reply.removed for reply in swept), sum(reply.kept for reply in swept)
