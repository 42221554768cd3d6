#!/usr/bin/env python3
"""Who has no certificate of the cluster, or not for what it does, gets nothing from a node and is named in its log."""

import socket
import ssl
import struct
import unittest

from harness import SECONDS, ClusterTest, stdout_json

ALERT = 0x15  # the type of the only TLS record that a stranger may get


class Strangers(ClusterTest):
    def setUp(self):
        self.job = self.cluster(servers=1, workers=1)
        self.scheduler = self.job.scheduler()
        self.server = self.job.server()
        self.addresses = [(node, stdout_json(node)["address"]) for node in (self.scheduler, self.server)]

    def connect(self, address):
        host, port = address.split(":")
        return socket.create_connection((host, int(port)), timeout=SECONDS)

    def assert_named_once(self, node, port):
        node.says(f" W .*127.0.0.1:{port}\\b")
        self.assertEqual(len(node.lines(f"127.0.0.1:{port}\\b")), 1, node.story())

    def assert_gets_nothing(self, certificate):
        """Talks TLS with that certificate, or with none, to each node."""
        for node, address in self.addresses:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            if certificate:
                context.load_cert_chain(certificate / "node.pem", certificate / "node.key")
            with self.connect(address) as plain:
                port = plain.getsockname()[1]
                got = b""
                try:
                    # In TLS 1.3 the client is done before the server has looked at its certificate.
                    with context.wrap_socket(plain) as stream:
                        stream.sendall(bytes(64))
                        got = stream.recv(1)
                except (ssl.SSLError, ConnectionError):
                    pass
                self.assertEqual(got, b"", node.story())
            self.assert_named_once(node, port)

    def assert_job_works(self):
        worker = self.job.worker(0)
        worker.counts_on()
        self.finish(worker)
        self.assert_ends_well(self.scheduler, self.server)
        self.assert_totals([worker])

    def test_plain_tcp(self):
        for node, address in self.addresses:
            with self.connect(address) as plain:
                port = plain.getsockname()[1]
                plain.sendall(b"GET / HTTP/1.0\r\n\r\n" + b"\0" * 64)
                got = b""
                try:
                    while more := plain.recv(1000):
                        got += more
                except ConnectionError:
                    pass
                if got:  # one alert, two bytes, and nothing else
                    kind, _, length = struct.unpack_from("!BHH", got)
                    self.assertEqual((kind, length, len(got)), (ALERT, 2, 7), got)
            self.assert_named_once(node, port)
        self.assert_job_works()

    def test_no_certificate(self):
        self.assert_gets_nothing(None)
        self.assert_job_works()

    def test_another_cluster(self):
        self.job.make_ca("other_ca", "blue")  # by the same name
        self.assert_gets_nothing(self.job.issue("other_ca", "worker", "other_worker"))
        other = self.job.worker(0, tls_dir=self.job.folder / "other_worker", join_timeout_ms=1000)
        self.assertEqual(other.ends(), 3, other.story())
        self.assertTrue(other.lines("certificate"), other.story())
        self.assert_job_works()

    def test_expired(self):
        expired = self.job.issue("ca", "worker", "expired", "--valid-seconds", "-60")
        self.assert_gets_nothing(expired)
        worker = self.job.worker(0, tls_dir=expired, join_timeout_ms=2000)
        self.assertEqual(worker.ends(), 3, worker.story())
        self.assertTrue(worker.lines("expired"), worker.story())
        # It waits longer each time: 20 attempts a second would drown the log.
        self.assertFalse(self.scheduler.lines("left out"), self.scheduler.story())
        self.assert_job_works()

    def test_a_worker_that_plays_server(self):
        false_server = self.job.server(tls_dir=self.job.folder / "worker")
        self.assertEqual(false_server.ends(), 2, false_server.story())
        self.assertTrue(false_server.lines("its certificate is for a worker"), false_server.story())
        refusal = " W .*has a certificate for a worker: refused"
        self.scheduler.says(refusal)
        self.assertEqual(len(self.scheduler.lines(refusal)), 1, self.scheduler.story())
        self.assert_job_works()

    def test_a_server_that_plays_worker(self):
        node, address = self.addresses[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.job.folder / "server/ca.pem")
        context.load_cert_chain(self.job.folder / "server/node.pem", self.job.folder / "server/node.key")
        with context.wrap_socket(self.connect(address)) as stream:
            self.assertEqual(stream.recv(1), b"", node.story())
            self.assert_named_once(node, stream.getsockname()[1])
        self.assert_job_works()


class FalseScheduler(ClusterTest):
    def test_nodes_tell_nothing_to_one_that_is_no_scheduler(self):
        cluster = self.cluster(servers=1, workers=1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cluster.folder / "worker/ca.pem")
        context.load_cert_chain(cluster.folder / "worker/node.pem", cluster.folder / "worker/node.key")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(SECONDS)
            cluster.address = f"127.0.0.1:{listener.getsockname()[1]}"
            node = cluster.server()
            plain, _ = listener.accept()
            plain.settimeout(SECONDS)
            got = b""
            try:
                with context.wrap_socket(plain, server_side=True) as stream:
                    got = stream.recv(1)
            except (ssl.SSLError, ConnectionError):
                pass
            self.assertEqual(got, b"")
            node.says("waits for the scheduler at .*(certificate|worker)")


if __name__ == "__main__":
    unittest.main()
