"""The program as a user meets it: help, errors, exit status, the demo."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from processes import (WEIR, Process, ProcessTest, Weir, can_connect, free_port, get,
                       wait_until)


def weir(*arguments, **options):
    return subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=20, **options)


class CommandLine(ProcessTest):
    def file(self, text):
        handle, path = tempfile.mkstemp(suffix=".toml")
        self.addCleanup(os.unlink, path)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        return path

    def test_help_teaches_and_version_is_told(self):
        shown = weir("--help")
        self.assertEqual(shown.returncode, 0)
        for word in ("run", "demo", "check", "budget", "weir run --to 127.0.0.1:3000"):
            self.assertIn(word, shown.stdout)
        self.assertRegex(weir("--version").stdout, r"^weir \d+\.\d+\.\d+\n$")
        self.assertIn("--to", weir("run", "--help").stdout)

    def test_wrong_usage_is_status_2_on_standard_error(self):
        for arguments in ([], ["rum"], ["run"], ["run", "--to"], ["run", "--to", "nonsense"],
                          ["run", "--to", "127.0.0.1:1", "--listen", "127.0.0.1:99999"],
                          ["run", "--to", "127.0.0.1:1", "--tls-key", "key.pem"],
                          ["check"], ["check", "/nowhere.toml"]):
            with self.subTest(arguments):
                failed = weir(*arguments)
                self.assertEqual(failed.returncode, 2)
                self.assertEqual(failed.stdout, "")
                self.assertNotEqual(failed.stderr.strip(), "")

    def test_mistakes_are_told_with_what_to_do(self):
        self.assertIn("there is no command rum; there are run, demo", weir("rum").stderr)
        self.assertIn("weir demo", weir().stderr)
        self.assertEqual(weir("simulate").stderr,
                         "weir simulate: FILE is required; try weir simulate --help\n")
        self.assertEqual(weir("run", "--bogus").stderr,
                         "weir run: The following argument was not expected: --bogus; "
                         "try weir run --help\n")
        self.assertEqual(weir("--bogus").stderr,
                         "weir: The following argument was not expected: --bogus; "
                         "try weir --help\n")
        scenario = self.file("# fine\n= 1\n")
        broken = weir("simulate", scenario)
        self.assertEqual(broken.returncode, 2)
        self.assertRegex(broken.stderr, rf"^{scenario}:2: (?!.*syntax\)).*; allowed: TOML\n$")
        strange = weir("run", "--to", "ftp://app:80", "--listen", "0", "--admin", "none")
        self.assertEqual(strange.returncode, 2)
        self.assertIn("weir run: --to ftp://app:80: its scheme is not known; allowed are http://HOST",
                      strange.stderr)
        missing = weir("run", "--to", "127.0.0.1:1", "--listen", "unix:/nowhere/at/all.sock",
                       "--admin", "none")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("/nowhere/at/all.sock: no such file or directory; ", missing.stderr)
        unlogged = weir("run", "--to", "127.0.0.1:1", "--listen", "0", "--admin", "none",
                        env={**os.environ, "WEIR_ADMIN_ACCESS_LOG_FILE": "/"})
        self.assertEqual(unlogged.returncode, 1)
        self.assertIn("cannot write the access log to /: is a directory; set "
                      "admin.access_log_file", unlogged.stderr)
        self.assertIn("/nowhere.toml: no such file or directory",
                      weir("check", "/nowhere.toml").stderr)
        foreign = weir("run", "--to", "127.0.0.1:1", "--listen", "192.0.2.1:0", "--admin", "none")
        self.assertEqual(foreign.returncode, 1)
        self.assertIn("cannot assign requested address; no interface of this machine has it; "
                      "choose another", foreign.stderr)

    def test_check_names_file_line_key_value_and_range(self):
        path = self.file('[admission]\nmax_concurrent = 0\nmax_concurent = 5\n')
        failed = weir("check", path)
        self.assertEqual(failed.returncode, 2)
        self.assertIn(f"{path}:2: ", failed.stderr)
        self.assertIn("admission.max_concurrent", failed.stderr)
        self.assertIn("1 to 16383", failed.stderr)
        self.assertIn(f"{path}:3: ", failed.stderr)

    def test_the_printed_defaults_are_a_good_file(self):
        defaults = weir("check", "--print-defaults")
        self.assertEqual(defaults.returncode, 0)
        good = weir("check", self.file(defaults.stdout))
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("memory ceiling", good.stdout)

    def test_budget_adds_up(self):
        page = json.loads(weir("budget", "--json").stdout)
        self.assertEqual(page["ceiling_bytes"], sum(a["bytes"] for a in page["addends"]))
        self.assertIn("ceiling", weir("budget").stdout)

    def test_a_ceiling_above_memory_max_does_not_start(self):
        path = self.file('[server]\nmemory_max = "10MiB"\n')
        self.assertEqual(weir("budget", "--config", path).returncode, 1)
        failed = weir("run", "--config", path, "--to", "127.0.0.1:1")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("server.memory_max", failed.stderr)
        self.assertIn("write slab", failed.stderr)  # the arithmetic

    def test_a_busy_port_is_named_with_what_to_do(self):
        first = self.started(Weir("--to", "127.0.0.1:1"))
        busy = weir("run", "--to", "127.0.0.1:1", "--listen", str(first.port), "--admin", "none")
        self.assertEqual(busy.returncode, 1)
        self.assertIn(f"127.0.0.1:{first.port}: address already in use; choose another address "
                      "with --listen", busy.stderr)
        busy = weir("run", "--to", "127.0.0.1:1", "--listen", "0", "--admin", str(first.port))
        self.assertEqual(busy.returncode, 1)
        self.assertIn("--admin", busy.stderr)

    def test_a_file_with_one_upstream_needs_no_route(self):
        path = self.file('[[upstream]]\nname = "app"\nendpoints = ["127.0.0.1:1"]\n')
        self.assertIn("1 upstream, 1 route,", weir("check", path).stdout)
        gateway = self.started(Weir("--config", path))
        self.assertEqual(get(gateway.port, "/any").reason, "connect_refused")

    def test_several_upstreams_need_routes_and_none_is_no_gateway(self):
        several = self.file("".join(f'[[upstream]]\nname = "{name}"\nendpoints = ["127.0.0.1:1"]\n'
                                    for name in "ab"))
        for arguments in (["check", several], ["run", "--config", several]):
            failed = weir(*arguments)
            self.assertEqual(failed.returncode, 2)
            self.assertIn('[[route]] path_prefix = "/some" upstream = "a"', failed.stderr)
        failed = weir("run", "--config", self.file("[admission]\nmax_concurrent = 7\n"))
        self.assertEqual(failed.returncode, 2)
        self.assertIn("[[upstream]]", failed.stderr)

    def test_the_environment_overrides(self):
        path = self.file("[admission]\nmax_concurrent = 7\n")
        gateway = self.started(Weir("--config", path, "--to", "127.0.0.1:1",
                                    env={"WEIR_ADMISSION_MAX_CONCURRENT": "9"}))
        self.assertEqual(gateway.stats()["admission"]["max_concurrent"], 9)

    def test_a_misspelt_variable_is_told_by_whoever_reads_the_environment(self):
        misspelt = {"WEIR_ADMISSION_MAX_CONCURENT": "9"}
        gateway = self.started(Weir("--to", "127.0.0.1:1", env=misspelt))
        gateway.line_with(r"^warning: .*did you mean WEIR_ADMISSION_MAX_CONCURRENT\?")
        self.assertIn("did you mean", weir("budget", env={**os.environ, **misspelt}).stderr)

    def test_the_demo_refuses_a_wrong_environment(self):
        for name, value in (("WEIR_ADMISSION_MAX_CONCURRENT", "many"),
                            ("WEIR_SERVER_MAX_CONNECTIONS", "1")):
            failed = weir("demo", "--port", "0", "--admin-port", "0",
                          env={**os.environ, name: value})
            self.assertEqual(failed.returncode, 2, failed.stderr)
            self.assertIn("must be", failed.stderr)

    def test_without_standard_descriptors_it_serves_and_ends_in_order(self):
        # The numbers of closed descriptors must not become sockets that log lines are sent to.
        port, admin = free_port(), free_port()
        config = tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8")
        self.addCleanup(config.close)
        config.write(self.app_config([1], upstream="hold_max_ms = 0"))
        config.flush()
        gateway = self.started(Process(
            "/bin/sh", "-c", f"exec {WEIR} run --config {config.name} --listen {port} "
            f"--admin {admin} <&- >&- 2>&-", env={**os.environ, "WEIR_ADMIN_ACCESS_LOG": "all"}))
        wait_until(lambda: can_connect(port))
        for _ in range(20):
            self.assertIn(get(port).reason, ("connect_refused", "no_endpoint"))
        gateway.signal(signal.SIGTERM)
        self.assertEqual(gateway.wait(), 0)

    def test_descriptors_are_taken_as_far_as_allowed_or_it_says_so(self):
        def limits(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gateway = self.started(Weir("--to", "127.0.0.1:1", preexec_fn=limits(64, 4096)))
        with open(f"/proc/{gateway.child.pid}/limits", encoding="ascii") as file:
            soft = int(next(line for line in file if "open files" in line).split()[3])
        self.assertGreaterEqual(soft, 2048)
        self.assertFalse([line for line in gateway.lines if "descriptors" in line])
        short = self.started(Weir("--to", "127.0.0.1:1", preexec_fn=limits(64, 256)))
        short.line_with(r"^warning: 256 descriptors are allowed \(ulimit -n\), 2\d\d\d can be")

    def test_with_too_few_descriptors_it_says_how_many_to_allow(self):
        for allowed in (8, 12, 16, 20, 24, 28, 32, 36, 40, 48):
            process = Process(WEIR, "run", "--to", "127.0.0.1:1", "--listen", "0", "--admin", "0",
                              preexec_fn=lambda n=allowed: resource.setrlimit(
                                  resource.RLIMIT_NOFILE, (n, n)))
            self.addCleanup(process.end)
            wait_until(lambda p=process: p.child.poll() is not None or "weir: ready" in p.lines)
            if process.child.poll() is None:
                self.assertGreater(allowed, 20)
                continue
            self.assertEqual(process.wait(), 1, (allowed, process.lines))
            self.assertEqual(len(process.lines), 1, process.lines)
            self.assertRegex(process.lines[0],
                             rf"^weir: too many open files: {allowed} descriptors are allowed, and "
                             r"\d+ beside those already open are needed to start; raise the "
                             r"limit to (\d+) \(ulimit -n \1, ")

    def test_a_full_standard_output_costs_lines_and_nothing_else(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            port, admin = free_port(), free_port()
            gateway = self.started(Process(
                WEIR, "run", "--to", "127.0.0.1:1", "--listen", str(port), "--admin", str(admin),
                stdout=full, env={**os.environ, "WEIR_ADMIN_ACCESS_LOG": "all"}))
            gateway.line_with("weir: ready")
            self.assertIn(get(port).reason, ("connect_refused", "no_endpoint"))
            wait_until(lambda: json.loads(get(admin, "/stats").body)["access_log"]["dropped"] == 1)
            gateway.signal(signal.SIGTERM)
            self.assertEqual(gateway.wait(), 0)

    def test_output_that_nobody_reads_does_not_hold_up_its_end(self):
        port, admin = free_port(), free_port()
        gateway = subprocess.Popen(
            [WEIR, "run", "--to", "127.0.0.1:1", "--listen", str(port), "--admin", str(admin)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "WEIR_ADMIN_ACCESS_LOG": "all"})
        self.addCleanup(gateway.stdout.close)
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.kill)
        while not gateway.stdout.readline().startswith(b"weir: ready"):
            self.assertIsNone(gateway.poll())
        end = os.open(f"/proc/{gateway.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(end, b"x")
        self.assertIn(get(port).reason, ("connect_refused", "no_endpoint"))
        gateway.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.wait(20), 0)

    def test_user_signals_do_not_end_it(self):
        gateway = self.started(Weir("--to", "127.0.0.1:1"))
        gateway.signal(signal.SIGUSR2)
        gateway.line_with(r"^weir: SIGUSR2 does nothing")
        gateway.signal(signal.SIGUSR1)
        gateway.line_with(r"^weir: SIGUSR1: the access log is reopened")
        self.assertEqual(get(gateway.port).reason, "connect_refused")
        gateway.signal(signal.SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        self.assertEqual(len([line for line in gateway.lines if "SIGUSR2" in line]), 1)

    def test_whoever_reads_the_output_may_leave(self):
        port, admin = free_port(), free_port()
        gateway = subprocess.Popen(
            [WEIR, "run", "--to", "127.0.0.1:1", "--listen", str(port), "--admin", str(admin)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "WEIR_ADMIN_ACCESS_LOG": "all"})
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.kill)
        wait_until(lambda: can_connect(port))
        gateway.stdout.close()
        gateway.stderr.close()
        self.assertIn(get(port).reason, ("connect_refused", "no_endpoint"))
        wait_until(lambda: json.loads(get(admin, "/stats").body)["access_log"]["dropped"] == 1)
        gateway.send_signal(signal.SIGTERM)  # which it talks about, on standard error
        self.assertEqual(gateway.wait(20), 0)

    def test_the_demo_runs_and_its_advice_works(self):
        demo = self.started(Process(WEIR, "demo", "--port", "0", "--admin-port", "0",
                                    stdout=subprocess.PIPE))
        shown = ""
        end = time.monotonic() + 20
        while "Ctrl-C" not in shown and time.monotonic() < end:
            shown += demo.child.stdout.readline()
        first = shown.splitlines()[0]
        self.assertRegex(first, r"^dashboard  http://127\.0\.0\.1:\d+/$")
        page = get(int(first.rstrip("/").rsplit(":", 1)[1]),
                   headers={"accept": "text/html"})
        self.assertIn(b"<!doctype html>", page.body.lower())
        readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
        printed = readme.split("prints what to try:\n\n```\n")[1].split("```")[0]
        without_numbers = [re.sub(r":\d+|[\d.]+ MiB", "", text) for text in (shown, printed)]
        self.assertTrue(without_numbers[0].startswith(without_numbers[1]), shown)
        port = int(re.search(r"^gateway +http://127\.0\.0\.1:(\d+)$", shown, re.MULTILINE)[1])
        self.assertIn("curl -i http://127.0.0.1:%d/" % port, shown)
        self.assertIn(b"hello from replica", get(port).body)
        secure = shown.split("  curl -k ")[1].split()[0]
        curl = subprocess.run(["curl", "-sk", "-m", "10", secure], capture_output=True, timeout=20)
        self.assertIn(b"hello from replica", curl.stdout)
        demo.signal(signal.SIGINT)
        self.assertEqual(demo.wait(), 0)

    def test_the_demo_says_which_port_is_busy(self):
        first = self.started(Weir("--to", "127.0.0.1:1"))
        busy = weir("demo", "--port", str(first.port), "--admin-port", "0")
        self.assertEqual(busy.returncode, 1)
        self.assertIn(str(first.port), busy.stderr)
        self.assertIn("--port", busy.stderr)


if __name__ == "__main__":
    unittest.main()
