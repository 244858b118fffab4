"""The Debian package in a clean Debian 12: installed as an operator would, run as the unit says,
upgraded, removed and purged. Needs root and the Debian archive."""

import glob
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release")).resolve()
sys.path.insert(0, str(ROOT / "tests/integration"))

from processes import SIGTERM, Process, free_port, get, wait_until  # noqa: E402

# Stands before systemctl: what needs a running service manager is written down only.
RECORDER = """#!/bin/sh
case "$*" in
  *preset*|*able*|*mask*) exec /usr/bin/systemctl.real --root=/ "$@" ;;
  *is-active*) exit 0 ;;
esac
echo "$*" >>/var/log/systemctl.log
"""
POLICY = "#!/bin/sh\nexit {}\n"


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout[-3000:]}"
                             f"{done.stderr[-3000:]}")
    return done.stdout


class CleanSystem(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-system-")
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.root = pathlib.Path(folder.name, "root")
        made = BUILD / "package-system"
        output("sh", str(ROOT / "packaging/package.sh"), str(made), str(BUILD))
        deb, = glob.glob(str(made / "weir_*.deb"))
        depends = output("dpkg-deb", "--field", deb, "Depends")
        wanted = [re.sub(r"\s*\(.*?\)", "", one).strip() for one in depends.split(",")]
        output("mmdebstrap", "--mode=root", "--variant=apt",
               "--include=" + ",".join(["systemd", *wanted]), "bookworm",
               str(cls.root))
        cls.deb = cls.copied(deb, "weir.deb")
        cls.newer = cls.copied(cls.with_version(deb, folder.name, "9.9-1"), "newer.deb")
        (cls.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        (cls.root / "usr/bin/systemctl").rename(cls.root / "usr/bin/systemctl.real")
        cls.write("usr/bin/systemctl", RECORDER, 0o755)
        if not (cls.root / "dev/null").exists():
            output("mknod", "-m", "666", str(cls.root / "dev/null"), "c", "1", "3")

    @classmethod
    def copied(cls, path, name):
        (cls.root / name).write_bytes(pathlib.Path(path).read_bytes())
        return "/" + name

    @staticmethod
    def with_version(deb, folder, version):
        """The same package with a higher version and a new default configuration."""
        tree = pathlib.Path(folder, "newer")
        output("dpkg-deb", "--raw-extract", deb, str(tree))
        control = tree / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}",
                                  control.read_text()))
        config = tree / "etc/weir/weir.toml"
        config.write_text(config.read_text() + "# new\n")
        output("dpkg-deb", "--root-owner-group", "-b", str(tree), folder + "/newer.deb")
        return folder + "/newer.deb"

    @classmethod
    def write(cls, path, text, mode=0o644):
        (cls.root / path).write_text(text)
        os.chmod(cls.root / path, mode)

    def dpkg(self, *arguments):
        """What it says; and the calls of systemctl that came of it."""
        log = self.root / "var/log/systemctl.log"
        log.write_text("")
        said = output("chroot", str(self.root), "dpkg", "--force-confold", *arguments,
                      env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                           "DEBIAN_FRONTEND": "noninteractive"})
        return said, [line for line in log.read_text().splitlines()
                      if re.search(r"\b(start|stop|restart|try-restart)\b", line)]

    def enabled(self):
        return sorted(path.name for path in
                      (self.root / "etc/systemd/system").glob("*.wants/weir*"))

    def test_the_life_of_the_package(self):
        config = self.root / "etc/weir/weir.toml"
        with self.subTest("where policy-rc.d forbids it, nothing is started"):
            self.write("usr/sbin/policy-rc.d", POLICY.format(101), 0o755)
            _, calls = self.dpkg("-i", self.deb)
            self.assertEqual(calls, [])
            self.assertEqual(self.enabled(), ["weir.service"])
            self.dpkg("--purge", "weir")
        with self.subTest("else the service is enabled and started, and the socket is not"):
            (self.root / "usr/sbin/policy-rc.d").unlink()
            _, calls = self.dpkg("-i", self.deb)
            self.assertEqual([call for call in calls if "weir.socket" in call], [])
            self.assertEqual(len(calls), 1, calls)
            self.assertRegex(calls[0], r"start weir\.service")
            self.assertEqual(self.enabled(), ["weir.service"])
        with self.subTest("what the unit starts runs, and is well"):
            self.run_as_the_unit_says()
        with self.subTest("the recorder and the token of the guides work for the service's user"):
            self.record_and_act_as_the_guides_say()
        with self.subTest("an upgrade keeps the configuration and restarts the service"):
            edited = config.read_text().replace("3000", "3001")
            config.write_text(edited)
            _, calls = self.dpkg("-i", self.newer)
            self.assertEqual(config.read_text(), edited)
            self.assertTrue(any(re.search(r"restart weir\.service", call) for call in calls), calls)
            self.assertEqual([call for call in calls if "weir.socket" in call], [])
        with self.subTest("a removal stops it and keeps the configuration"):
            _, calls = self.dpkg("--remove", "weir")
            self.assertTrue(any("stop weir.service" in call for call in calls), calls)
            self.assertTrue(any("stop weir.socket" in call for call in calls), calls)
            self.assertEqual(config.read_text(), edited)
            self.assertFalse((self.root / "usr/bin/weir").exists())
        with self.subTest("a purge leaves nothing"):
            for folder in ("var/lib/private/weir/decisions", "var/log/private/weir"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            (self.root / "var/log/weir").symlink_to("private/weir")
            self.dpkg("--purge", "weir")
            left = output("chroot", str(self.root), "find", "/etc", "/usr", "/lib/systemd",
                          "/var/lib", "/var/log", "-name", "*weir*",
                          "-not", "-path", "/var/lib/dpkg/*")
            self.assertEqual(left, "")

    def run_as_the_unit_says(self):
        """ExecStartPre, then ExecStart with free ports, as an unprivileged user of the system."""
        unit = (self.root / "lib/systemd/system/weir.service").read_text()
        chroot = ("chroot", "--userspec=65534:65534", str(self.root))
        before = re.search(r"(?m)^ExecStartPre=(.*)$", unit)[1].split()
        self.assertIn(": good; ", output(*chroot, *before))
        command = re.search(r"(?m)^ExecStart=(.*)$", unit)[1].split()
        port, admin = free_port(), free_port()
        gateway = Process(*chroot, *command, "--listen", f"127.0.0.1:{port}", "--admin",
                          f"127.0.0.1:{admin}", stdout=subprocess.DEVNULL)
        self.addCleanup(gateway.end)
        gateway.line_with("^weir: ready")
        self.assertIn(": 200 ", output(*chroot, "weir", "probe", "--ready", "--admin", str(admin)))
        answer = get(port)
        self.assertEqual((answer.status, answer.reason), (503, "connect_refused"))
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)

    def record_and_act_as_the_guides_say(self):
        """A recording in the state folder, and the token as systemd gives it to the service."""
        state, credentials = self.root / "var/lib/weir", self.root / "run/credentials/weir.service"
        state.mkdir(mode=0o750)
        os.chown(state, 65534, 65534)
        credentials.mkdir(parents=True)
        token = credentials / "weir.token"
        token.write_text("a" * 64)
        os.chmod(token, 0o440)
        entries = ((1, 4, -1), (2, 4, 65534), (4, 0, -1), (0x10, 4, -1), (0x20, 0, -1))
        acl = struct.pack("<I", 2) + b"".join(
            struct.pack("<HHi", *entry) for entry in entries)
        os.setxattr(token, "system.posix_acl_access", acl)
        self.assertEqual(token.stat().st_mode & 0o777, 0o440)
        self.write("tmp/guides.toml", """
[admin]
actions = "token"
token_file = "/run/credentials/weir.service/weir.token"
[recorder]
folder = "/var/lib/weir/decisions"
[[upstream]]
name = "app"
endpoints = ["127.0.0.1:1"]
""")
        chroot = ("chroot", "--userspec=65534:65534", str(self.root))
        self.assertIn(": good; ", output(*chroot, "weir", "check", "/tmp/guides.toml"))
        gateway = Process(*chroot, "weir", "run", "--config", "/tmp/guides.toml", "--listen",
                          "127.0.0.1:0", "--admin", f"127.0.0.1:{free_port()}",
                          stdout=subprocess.DEVNULL)
        self.addCleanup(gateway.end)
        gateway.line_with("^weir: ready")
        wait_until((state / "decisions/running.weirrec").exists)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)


if __name__ == "__main__":
    unittest.main()
