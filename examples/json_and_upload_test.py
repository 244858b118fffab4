#!/usr/bin/python3
"""Runs json_and_upload and shows what its two handlers do, with arenas and without."""

import http.client
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


class JsonAndUpload(unittest.TestCase):
    def start(self, arenas):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        process = subprocess.Popen([PROGRAM, "--arenas", str(arenas), "--file",
                                    self.folder / "up"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        port = int(re.search(r"port (\d+)", process.stdout.readline()).group(1))
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.addCleanup(client.close)
        return client

    def stop(self, process):
        process.terminate()
        self.assertEqual(process.wait(10), 0)
        process.stdout.close()

    def post(self, client, path, body):
        client.request("POST", path, body=body)
        answer = client.getresponse()
        return answer.status, answer.read()

    def test_the_buffering_handler_receives_the_complete_body(self):
        client = self.start(arenas=4)
        body = b'{ "list": [' + b", ".join(b"%d" % i for i in range(20000)) + b'] }'
        status, text = self.post(client, "/json", body)
        self.assertEqual(status, 200)
        self.assertTrue(text.startswith(b'{"list":[0,1,2,'))
        self.assertEqual(self.post(client, "/json", b"{")[0], 400)

    def test_without_an_arena_the_buffering_handler_answers_503(self):
        client = self.start(arenas=0)
        self.assertEqual(self.post(client, "/json", b"{}")[0], 503)

    def test_the_streaming_handler_needs_no_arena(self):
        client = self.start(arenas=0)
        body = os.urandom(3_000_000)
        status, text = self.post(client, "/upload", body)
        self.assertEqual((status, text), (200, b"Uploaded 3000000 bytes\n"))
        files = list(self.folder.iterdir())
        self.assertEqual([f.read_bytes() == body for f in files], [True])

    def test_an_upload_that_cannot_be_written_is_not_called_done(self):
        client = self.start(arenas=0)
        for number in range(4):
            (self.folder / f"up.{number}").symlink_to("/dev/full")
        self.assertEqual(self.post(client, "/upload", b"x" * 100_000)[0], 507)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
