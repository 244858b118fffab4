"""Faults around replicas under 500 GETs a second: a certificate that expired or is for another
host, DNS answers that change, disappear, or are a thousand addresses. No client notices."""

import json
import os
import sys
import tempfile
import time
import unittest

from dns_testing import NXDOMAIN, NameServer
from processes import Weir, free_port, wait_until
from replicas_testing import LIMIT, Replica, ReplicasTest
from tls_test import Certificates

GETS = {"GET": 500}


class TlsReplica(Replica):
    """`certificate`: of the class, so that a test decides what the next start uses."""
    certificate = None

    def arguments(self):
        return ("--certificate", self.certificate[0], "--key", self.certificate[1])


class BadCertificates(ReplicasTest):
    kind = TlsReplica

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-certificates-")
        self.addCleanup(folder.cleanup)
        self.certificates = Certificates(folder.name)
        self.good = self.certificates.make("good", "/CN=good")
        self.upstream_options = ('[upstream.tls]\nenabled = true\n'
                                 f'ca = "{self.certificates.authority}"\n')
        TlsReplica.certificate = self.good
        super().setUp()

    def restart_with(self, certificate):
        TlsReplica.certificate = certificate
        self.restart(1)

    def test_one_replica_with_a_bad_certificate_is_left_out(self):
        expired = self.certificates.make("old", "/CN=old", days=-1)
        other = self.certificates.make("other", "/CN=other", alternatives="DNS:other.test")
        load = self.load(**GETS)
        for bad in (expired, other):
            self.restart_with(bad)
            self.await_state(1, ("ejected", "connect_failed"))
            answered = self.endpoint(1)["answered"]
            time.sleep(1)
            self.assertEqual(self.endpoint(1)["answered"], answered)
            self.restart_with(self.good)
            self.await_recovery(1)
            wait_until(lambda before=answered: self.endpoint(1)["answered"] > before)
        self.judge(load)


class NamesThatChange(ReplicasTest):
    """Three replicas, each at a third of a thousand addresses of this host, on one port."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-names-")
        self.addCleanup(folder.cleanup)
        port = free_port()
        self.replicas = []
        self.addCleanup(lambda: [one.end() for one in self.replicas])
        self.addresses = []
        for i in range(3):
            own = [f"127.0.{i + 1}.{k % 250 + 1}" if k < 250 else f"127.0.{i + 11}.{k % 250 + 1}"
                   for k in range(334)]
            self.replicas.append(Replica(os.path.join(folder.name, f"journal-{i}"), port,
                                         ",".join(own)))
            self.addresses.append(own)
        self.names = NameServer([self.addresses[0][0]])
        self.addCleanup(self.names.end)
        self.gateway = self.started(Weir(config=f"""
{LIMIT}
[dns]
servers = ["127.0.0.1:{self.names.port}"]
records_max = 1000
[[upstream]]
name = "app"
endpoints = ["dns:app.test:{port}"]
[[route]]
upstream = "app"
"""))

    def hosts(self):
        page = json.loads(self.gateway.page("/endpoints").body)
        return {one["endpoint"].rpartition(":")[0] for one in page["endpoints"]}

    def becomes(self, addresses):
        self.names.addresses = addresses
        wait_until(lambda: self.hosts() == set(addresses), 10)

    def test_answers_that_change_disappear_and_are_a_thousand(self):
        first = [own[0] for own in self.addresses]
        load = self.load(**GETS)
        self.becomes(first)
        self.becomes(first[1:])
        self.names.addresses = NXDOMAIN
        asked = self.names.asked
        wait_until(lambda: self.names.asked >= asked + 2)
        time.sleep(0.2)
        self.assertEqual(self.hosts(), set(first[1:]), "an error removes nothing")
        thousand = [one for own in self.addresses for one in own][:1000]
        self.becomes(thousand)
        time.sleep(1)
        self.becomes(first)
        self.judge(load)


if __name__ == "__main__":
    sys.exit(unittest.main())
