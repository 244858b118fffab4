"""The image: its root holds all that the gateway needs and nothing else, the gateway runs in it
as it would in a container, and its health check answers."""

import http.server
import json
import os
import pathlib
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release")).resolve()
sys.path.insert(0, str(ROOT / "tests/integration"))

from processes import SIGTERM, Process, ProcessTest, get  # noqa: E402

# As a container engine does it: /proc, a device, and a root that cannot be written to.
ENTER = """
root=$1
user=$2
shift 2
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --bind /dev/null "$root/dev/null"
mount -o remount,ro,bind "$root"
exec chroot $user "$root" "$@"
"""
LOWLY = "--userspec=65532:65532"


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_):
        pass


class Root(ProcessTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-image-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.root = os.path.join(folder.name, "root")
        output("sh", str(ROOT / "packaging/container/root.sh"), str(BUILD / "weir"), self.root)
        os.chmod(self.root, 0o755)

    def inside(self, *command):
        """The command that runs `command` in the root; without namespaces, at least by chroot."""
        null = os.path.join(self.root, "dev/null")
        if os.geteuid() == 0 and not self.has_namespaces():
            if not os.path.exists(null):
                os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            return ("chroot", LOWLY, self.root, *command)
        pathlib.Path(null).touch()
        alone = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "-r")
        return (*alone, "sh", "-euc", ENTER, "sh", self.root, LOWLY if os.geteuid() == 0 else "",
                *command)

    @staticmethod
    def has_namespaces():
        return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
                              capture_output=True, check=False).returncode == 0

    def test_the_gateway_runs_and_its_health_check_says_so(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        gateway = self.started(Process(*self.inside(
            "/usr/bin/weir", "run", "--to", f"127.0.0.1:{server.server_port}", "--listen",
            "127.0.0.1:0", "--admin", "127.0.0.1:0"), stdout=subprocess.DEVNULL))
        gateway.line_with("^weir: ready")
        port = int(gateway.line_with(r"listening on .*:(\d+)")[1])
        admin = gateway.line_with(r"admin on (.*)")[1]
        self.assertEqual(get(port).body, b"hi")
        for arguments in ((), ("--ready",)):
            probe = output(*self.inside("/usr/bin/weir", "probe", "--admin", admin, *arguments))
            self.assertIn(": 200 ", probe)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        probe = subprocess.run(self.inside("/usr/bin/weir", "probe", "--admin", admin),
                               capture_output=True, timeout=60, check=False)
        self.assertEqual(probe.returncode, 1)

    def test_its_own_configuration_is_good_and_reachable_from_outside(self):
        path = "/etc/weir/weir.toml"
        self.assertIn(": good; ", output(*self.inside("/usr/bin/weir", "check", path)))
        text = pathlib.Path(self.root + path).read_text()
        self.assertIn('addresses = [":8080"]', text)
        self.assertIn('listen = "127.0.0.1:9901"', text)

    def test_names_are_resolved(self):
        """getaddrinfo() finds its files and needs no library that is not there."""
        pathlib.Path(self.root, "etc/hosts").write_text("127.0.0.1 app.test\n")
        failed = subprocess.run(self.inside("/usr/bin/weir", "probe", "--admin", "app.test:1"),
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("no gateway answers at app.test:1: connection refused", failed.stderr.lower())

    def test_there_is_no_shell_and_nothing_else_to_run(self):
        programs = [path for path in pathlib.Path(self.root).rglob("*")
                    if path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name]
        self.assertEqual([str(path.relative_to(self.root)) for path in programs], ["usr/bin/weir"])

    def test_the_program_needs_no_library_that_is_missing(self):
        wanted = output("ldd", str(BUILD / "weir"))
        for line in wanted.splitlines():
            if "/" in line:
                path = next(word for word in line.split() if word.startswith("/"))
                self.assertTrue(os.path.exists(self.root + path), path)

    def test_certificates_are_where_openssl_looks(self):
        if os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
            link = os.path.join(self.root, "usr/lib/ssl/cert.pem")
            self.assertGreater(os.path.getsize(self.root + os.readlink(link)), 0)
            self.assertIn('"/usr/lib/ssl"', output("openssl", "version", "-d"))


class Archive(unittest.TestCase):
    def build(self, out):
        output("sh", str(ROOT / "packaging/container/build.sh"), str(BUILD / "weir"), out)
        return os.path.join(out, "weir.tar")

    def test_the_same_program_gives_the_same_image(self):
        with tempfile.TemporaryDirectory(prefix="weir-image-") as folder:
            first = pathlib.Path(self.build(os.path.join(folder, "a"))).read_bytes()
            second = pathlib.Path(self.build(os.path.join(folder, "b"))).read_bytes()
            self.assertEqual(first, second)

    def test_it_says_how_to_run_it(self):
        with tempfile.TemporaryDirectory(prefix="weir-image-") as folder, \
                tarfile.open(self.build(folder)) as archive:
            manifest, = json.load(archive.extractfile("manifest.json"))
            config = json.load(archive.extractfile(manifest["Config"]))["config"]
            with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
                owners = {entry.name: (entry.uid, entry.mode & 0o7777) for entry in layer}
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(config["Entrypoint"] + config["Cmd"],
                         ["/usr/bin/weir", "run", "--config", "/etc/weir/weir.toml"])
        self.assertEqual(config["Healthcheck"]["Test"], ["CMD", "/usr/bin/weir", "probe"])
        self.assertEqual(owners["usr/bin/weir"], (0, 0o755))
        self.assertEqual(owners["run/weir"][0], 65532)
        self.assertEqual([name for name, (uid, _) in owners.items() if uid not in (0, 65532)], [])


if __name__ == "__main__":
    unittest.main()
