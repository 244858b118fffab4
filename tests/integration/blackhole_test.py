"""A replica whose answers are lost on the way: connections neither fail nor answer. In a network
namespace of its own (loopback only) a routing rule drops what the replica sends. Where namespaces
are not allowed, the replica is replaced by a socket that accepts nobody."""

import os
import socket
import subprocess
import sys
import time
import unittest

from replicas_testing import Replica, ReplicasTest

INSIDE = "WEIR_TEST_NAMESPACE"
LOST = "127.0.0.3"


def enter_namespace():
    """Runs this script again in a namespace, if that is possible."""
    if INSIDE in os.environ:
        return
    probe = subprocess.run(["unshare", "-rn", "ip", "rule"], capture_output=True, check=False)
    if probe.returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-rn", sys.executable, "-B", *sys.argv])
    print("no network namespace: a full backlog instead of a lost route", flush=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def prepare_routes():
    """Rules in front of the local table, which is always the first otherwise."""
    ip("link", "set", "lo", "up")
    ip("rule", "add", "pref", "10", "lookup", "local")
    ip("rule", "del", "pref", "0")


class Blackhole(ReplicasTest):
    def setUp(self):
        hosts = iter(["127.0.0.1", LOST, "127.0.0.1"])
        if INSIDE in os.environ:
            self.kind = lambda journal: Replica(journal, host=next(hosts))
        super().setUp()

    def app_config(self, endpoints, extra="", upstream=""):
        text = super().app_config(endpoints, extra, upstream)
        lost = self.replicas[1]
        return text.replace(f"127.0.0.1:{lost.port}", f"{lost.host}:{lost.port}")

    def lose(self):
        if INSIDE in os.environ:
            return ip("rule", "add", "pref", "5", "from", LOST, "blackhole")
        port = self.replicas[1].port
        self.replicas[1].kill()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(0)
        self.fill = [socket.socket() for _ in range(4)]
        for one in self.fill:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        return None

    def find(self):
        if INSIDE in os.environ:
            return ip("rule", "del", "pref", "5")
        for one in (self.listener, *self.fill):
            one.close()
        self.replicas[1] = self.replicas[1].again()
        return None

    def test_answers_are_lost_and_found(self):
        load = self.load()
        self.lose()
        lost_at = time.monotonic()
        self.await_state(1, ("suspect", "silent"), ("hung", "silent"),
                         ("ejected", "connect_failed"))
        noticed = time.monotonic() - lost_at
        time.sleep(2)
        self.assertIn(self.state(1)[0], ("suspect", "hung", "ejected", "returning"))
        self.find()
        back = self.await_recovery(1)
        time.sleep(1)
        outcomes = self.judge(load)
        stuck = [o for o in outcomes if o.method == "GET" and o.seconds > 1]
        print(f"  noticed after {noticed * 1000:.0f} ms, back after {back * 1000:.0f} ms, "
              f"{len(stuck)} GETs took more than a second")


if __name__ == "__main__":
    enter_namespace()
    if INSIDE in os.environ:
        prepare_routes()
    unittest.main()
