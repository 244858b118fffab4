"""The Debian package, made of the program that was just built: its judges, its files, its units,
and that what it installs works together. With WEIR_COMPILED=1 debhelper compiles it, as
`./dev package` does."""

import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", "build/release")).resolve()
SERVICE = "lib/systemd/system/weir.service"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          **{"timeout": 120, **options})


def output(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout[-2000:]}"
                             f"{done.stderr[-2000:]}")
    return done.stdout


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]?)", text).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiled = os.environ.get("WEIR_COMPILED") == "1"
        made = BUILD / ("package-compiled" if compiled else "package")
        prebuilt = [] if compiled else [str(BUILD)]
        output("sh", str(ROOT / "packaging/package.sh"), str(made), *prebuilt, timeout=1700)
        cls.deb, = glob.glob(str(made / "weir_*.deb"))
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-deb-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.tree = pathlib.Path(cls.folder.name, "tree")
        output("dpkg-deb", "--raw-extract", cls.deb, str(cls.tree))

    def weir(self, *arguments, **options):
        return output(str(self.tree / "usr/bin/weir"), *arguments, **options)

    def test_lintian_says_nothing(self):
        done = run("lintian", "--allow-root", "--no-cfg", "--fail-on", "error,warning", self.deb)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_it_holds_what_an_operator_needs(self):
        for path in ("usr/bin/weir", "etc/weir/weir.toml", SERVICE,
                     "lib/systemd/system/weir.socket", "usr/share/man/man1/weir.1.gz",
                     "usr/share/man/man5/weir.toml.5.gz",
                     "usr/share/bash-completion/completions/weir",
                     "usr/share/zsh/vendor-completions/_weir",
                     "usr/share/fish/vendor_completions.d/weir.fish",
                     "usr/share/weir/prometheus/weir.rules.yml",
                     "usr/share/weir/grafana/weir-fleet.json",
                     "usr/share/weir/grafana/weir-upstream.json",
                     "usr/share/doc/weir/install.md.gz", "usr/share/doc/weir/copyright",
                     "usr/share/doc/weir/changelog.gz",
                     "usr/share/doc/weir/examples/minimal.toml"):
            with self.subTest(path):
                self.assertGreater((self.tree / path).stat().st_size, 0)
        for folder in ("usr/include", "usr/lib"):
            self.assertFalse((self.tree / folder).exists(), folder)

    def test_the_configuration_is_kept_in_upgrades_and_good(self):
        self.assertEqual((self.tree / "DEBIAN/conffiles").read_text(), "/etc/weir/weir.toml\n")
        path = self.tree / "etc/weir/weir.toml"
        self.assertIn(": good; 1 upstream", self.weir("check", str(path)))
        for line in re.findall(r"^(?:addresses|listen) = (.*)$", path.read_text(), re.M):
            self.assertIn("127.0.0.1:", line, "an unconfigured gateway is open to the network")

    def test_the_program_says_the_version_of_the_package(self):
        version = output("dpkg-deb", "--field", self.deb, "Version").strip()
        self.assertEqual(self.weir("--version"), f"weir {version.partition('-')[0]}\n")

    def test_installation_starts_the_service_and_only_that(self):
        """By deb-systemd-invoke, which asks policy-rc.d."""
        postinst = (self.tree / "DEBIAN/postinst").read_text()
        self.assertRegex(postinst, r"deb-systemd-invoke \$_dh_action 'weir\.service'")
        self.assertRegex(postinst, r"deb-systemd-helper enable 'weir\.service'")
        self.assertNotRegex(postinst, r"deb-systemd-invoke.*weir\.socket")
        for script in ("postinst", "prerm", "postrm"):
            text = (self.tree / "DEBIAN" / script).read_text()
            self.assertNotRegex(text, r"\bsystemctl\s+(?!--system daemon-reload)", script)

    def unit_folder(self):
        """The units, with the program where this test can run it."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))
        for path in (self.tree / "lib/systemd/system").iterdir():
            text = path.read_text().replace("/usr/bin/weir", str(self.tree / "usr/bin/weir"))
            (folder / path.name).write_text(text)
        return folder

    def test_the_units_are_verified(self):
        folder = self.unit_folder()
        for name in ("weir.service", "weir.socket"):
            done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=one",
                       str(folder / name))
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), name)

    def test_the_service_is_hardened(self):
        unit = self.tree / SERVICE
        shown = output("systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit))
        exposure = float(re.search(r"exposure level for weir.service: ([\d.]+)", shown)[1])
        self.assertLessEqual(exposure, 2.0)
        text = unit.read_text()
        # What hardening guides ask for, and what would break the gateway.
        self.assertNotRegex(text, r"(?m)^ProcSubset=", "memory protection reads /proc/meminfo")
        self.assertRegex(text, r"(?m)^RestrictAddressFamilies=.*\bAF_NETLINK\b")
        self.assertRegex(text, r"(?m)^LimitNOFILE=\d+$", "the process may not raise it")
        self.assertRegex(text, r"(?m)^Type=notify$", "systemd 252 has no notify-reload")
        self.assertRegex(text, r"(?m)^ExecReload=")

    def test_the_service_may_write_and_read_what_the_guides_say(self):
        text = (self.tree / SERVICE).read_text()
        guide = {name: (ROOT / "docs/guide" / name).read_text() for name in
                 ("replay.md", "actions.md", "install.md")}
        state, = re.findall(r"(?m)^StateDirectory=(.*)$", text)
        self.assertRegex(text, r"(?m)^StateDirectoryMode=0750$")
        for name in ("replay.md", "install.md"):
            folder = re.search(r'folder = "(.*?)"', guide[name])[1]
            self.assertEqual(os.path.dirname(folder), "/var/lib/" + state, name)
        credential, = re.findall(r"(?m)^LoadCredential=(.*)$", text)
        self.assertNotIn(":", credential, "with a path, the service needs the file to start")
        self.assertIn(f'token_file = "/run/credentials/weir.service/{credential}"',
                      guide["actions.md"])
        self.assertIn(f"> /etc/credstore/{credential}", guide["actions.md"])

    def test_a_purge_removes_what_the_service_wrote(self):
        script = (self.tree / "DEBIAN/postrm").read_text()
        for folder in ("/var/lib/private/weir", "/var/lib/weir", "/var/log/weir"):
            self.assertIn(folder, script)

    def test_the_memory_limit_holds_the_ceiling_on_large_machines(self):
        limit = bytes_of(re.search(r"(?m)^MemoryMax=(\w+)$",
                                   (self.tree / SERVICE).read_text())[1])
        page = self.weir("budget", "--json", str(self.tree / "etc/weir/weir.toml"),
                         env={**os.environ, "WEIR_SERVER_LOOPS": "64"})
        ceiling = int(re.search(r'"ceiling_bytes": (\d+)', page)[1])
        self.assertLessEqual(ceiling * 1.5, limit)

    def test_files_belong_to_root_and_only_the_program_is_executable(self):
        for line in output("dpkg-deb", "--contents", self.deb).splitlines():
            mode, owner, _, _, _, name = line.split(maxsplit=5)
            self.assertEqual(owner, "root/root", name)
            if mode.startswith("-"):
                self.assertEqual(mode[1:], "rwxr-xr-x" if name == "./usr/bin/weir"
                                 else "rw-r--r--", name)


if __name__ == "__main__":
    sys.exit(unittest.main())
