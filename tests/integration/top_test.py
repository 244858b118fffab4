"""`weir top` on a real terminal, before a played gateway and before a real one."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from fake_live import FakeLive
from processes import WEIR, Origin, ProcessTest, Weir, start_traffic, wait_until
from terminal import Terminal

ESCAPE = "\x1b"
LEAVE = b"\x1b[?1049l"


def top(*arguments, env=None, timeout=20):
    full = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    return subprocess.run([WEIR, "top", *arguments], capture_output=True, timeout=timeout, env=full,
                          stdin=subprocess.DEVNULL)


class TopTest(ProcessTest):
    def fake(self, *arguments, **options):
        return self.started(FakeLive(*arguments, **options))

    def terminal(self, fake, *arguments, **options):
        shown = self.started(Terminal(WEIR, "top", "--admin", f"127.0.0.1:{fake.port}", *arguments,
                                      **options))
        self.shows(shown, "[1 Now]")
        return shown

    def shows(self, shown, text, seconds=10):
        try:
            wait_until(lambda: text in shown.text(), seconds)
        except AssertionError:
            self.fail(f"{text!r} is not on the screen:\n{shown.text()}")

    def is_restored(self, shown):
        self.assertEqual(shown.attributes(), shown.before)
        wait_until(lambda: LEAVE in shown.sent)  # its last bytes are on their way
        self.assertIn(b"\x1b[?25h", shown.sent[shown.sent.rindex(b"\x1b[?25l"):])


class Screen(TopTest):
    def test_the_verdict_stands_in_the_first_line_and_the_next_step_in_the_second(self):
        shown = self.terminal(self.fake())
        self.shows(shown, "q quit")  # the last line: the whole frame is there
        lines = shown.lines()
        self.assertRegex(lines[0], r"^OVERLOADED \d+ s: more is asked than the service can do")
        self.assertTrue(lines[1].startswith("next: add capacity"), lines[1])
        self.assertEqual(len(lines), 24)

    def test_keys_change_pages_and_the_gateway_is_asked_for_each(self):
        fake = self.fake()
        shown = self.terminal(fake)
        for key, text in (("2", "batch-export"), ("3", "40 to 48 in flight gave +1 %"),
                          ("4", "10.0.0.3:8080"), ("5", "write_slab"),
                          ("6", "how long ago, newest first"), ("\t", "[1 Now]"),
                          ("u", "reports, the last"), ("?", "keys"), ("?", "offered")):
            shown.type(key)
            self.shows(shown, text)
        for view in ("refusals", "limit", "replicas", "memory"):
            self.assertTrue(any(f"view={view}" in path for path in fake.requests), view)
        self.assertTrue(any("upstream=reports" in path for path in fake.requests))

    def test_a_filter_is_typed_and_left(self):
        fake = self.fake()
        shown = self.terminal(fake)
        shown.type("2/mobile\r")
        wait_until(lambda: "batch-export" not in shown.text() and "mobile" in shown.text())
        shown.type(ESCAPE)
        self.shows(shown, "batch-export")

    def test_the_frame_follows_the_size_of_the_terminal(self):
        shown = self.terminal(self.fake())
        shown.resize(150, 40)
        wait_until(lambda: shown.lines()[3] == "─" * 150 and
                   shown.lines()[39].startswith("1-6 page"))
        shown.resize(40, 10)
        wait_until(lambda: shown.lines()[0].startswith("OVERLOADED") and
                   shown.lines()[3] == "─" * 40 and shown.lines()[9].startswith("1-6 page"))

    def test_only_lines_that_changed_are_sent(self):
        fake = self.fake()
        shown = self.terminal(fake)
        before = len(shown.sent)
        ticks = fake.ticks
        wait_until(lambda: fake.ticks > ticks + 10)
        self.assertLess((len(shown.sent) - before) / 10, 2500)

    def test_it_stands_still_while_paused(self):
        fake = self.fake()
        shown = self.terminal(fake)
        shown.type("p")
        self.shows(shown, "PAUSED")
        still = shown.lines()[0]
        ticks = fake.ticks
        wait_until(lambda: fake.ticks > ticks + 15)
        self.assertEqual(shown.lines()[0], still)
        shown.type("p")
        wait_until(lambda: "PAUSED" not in shown.text() and shown.lines()[0] != still)

    def test_names_from_clients_are_inert(self):
        shown = self.terminal(self.fake("hostile"))
        for page in "23456":
            shown.type(page)
            self.shows(shown, f"[{page} ")
            wait_until(lambda: shown.lines()[23].startswith("1-6 page"))
            self.assertEqual(len(shown.lines()), 24)
        self.assertNotIn(b"\x1b]0;owned", shown.sent)
        self.assertNotIn(b"\x9b31m", shown.sent)
        self.assertNotIn("\u202e".encode(), shown.sent)


class Ends(TopTest):
    def test_q_and_ctrl_c_and_signals_give_the_terminal_back(self):
        fake = self.fake()
        for end in ("q", "\x03", signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(end):
                shown = self.terminal(fake)
                self.assertNotEqual(shown.attributes(), shown.before)
                if isinstance(end, str):
                    shown.type(end)
                else:
                    shown.child.send_signal(end)
                self.assertEqual(shown.wait(), 0)
                self.is_restored(shown)

    def test_an_abort_gives_the_terminal_back_too(self):
        shown = self.terminal(self.fake())
        shown.child.send_signal(signal.SIGABRT)
        self.assertEqual(shown.wait(), -signal.SIGABRT)
        self.is_restored(shown)

    def test_it_can_be_suspended(self):
        shown = self.terminal(self.fake())
        shown.type("\x1a")
        wait_until(lambda: os.waitid(os.P_PID, shown.child.pid, os.WSTOPPED | os.WNOHANG))
        self.is_restored(shown)
        sent = len(shown.sent)
        shown.child.send_signal(signal.SIGCONT)
        wait_until(lambda: b"OVERLOADED" in shown.sent[sent:])
        self.assertNotEqual(shown.attributes(), shown.before)


class Loss(TopTest):
    def test_a_lost_gateway_is_told_and_found_again(self):
        fake = self.fake()
        shown = self.terminal(fake)
        fake.end()
        self.shows(shown, "STALE: nothing heard for")
        self.shows(shown, "connection refused")
        self.assertTrue(shown.lines()[0].startswith("OVERLOADED"))
        shown.type("2")  # keys are obeyed meanwhile
        self.shows(shown, "[2 Refusals]")
        again = self.fake(port=fake.port)
        wait_until(lambda: "STALE" not in shown.text())
        self.assertIn("view=refusals", again.requests[-1])
        self.shows(shown, "batch-export")

    def test_a_silent_gateway_is_told(self):
        fake = self.fake()
        shown = self.terminal(fake)
        fake.silent = True
        self.shows(shown, "STALE: nothing heard for 3 s")
        fake.silent = False
        wait_until(lambda: "STALE" not in shown.text())

    def test_an_upstream_that_is_gone_is_left(self):
        fake = self.fake()
        shown = self.terminal(fake, "--upstream", "reports")
        fake.refusal = (400, "upstream: there are app")
        fake.cut()
        wait_until(lambda: any("upstream" not in path for path in fake.requests))
        fake.refusal = None
        wait_until(lambda: "STALE" not in shown.text())

    def test_a_gateway_with_enough_watchers_says_when_to_come_again(self):
        fake = self.fake()
        shown = self.terminal(fake)
        fake.refusal = (503, "8 watchers are connected")
        fake.cut()
        self.shows(shown, "it answers 503: 8 watchers are connected")


class Lines(TopTest):
    def test_once_prints_one_picture_without_escape_sequences(self):
        fake = self.fake()
        for page, text in (("now", "app        OVERLOADED"), ("refusals", "batch-export"),
                           ("limit", "a higher limit buys nothing"), ("replicas", "10.0.0.1:8080"),
                           ("memory", "write_slab"), ("events", "limit 48 to 44")):
            printed = top("--admin", f"http://127.0.0.1:{fake.port}/", "--once", "--page", page)
            self.assertEqual(printed.returncode, 0, printed.stderr)
            shown = printed.stdout.decode()
            self.assertTrue(shown.startswith("OVERLOADED 4"), shown)
            self.assertIn(text, shown)
            self.assertNotIn(ESCAPE, shown)
            self.assertNotIn("q quit", shown)
            self.assertLessEqual(max(map(len, shown.splitlines())), 80)
        wide = top("--admin", f"127.0.0.1:{fake.port}", "--once", env={"COLUMNS": "160"})
        self.assertEqual(max(map(len, wide.stdout.decode().splitlines())), 160)
        plain = top("--admin", f"127.0.0.1:{fake.port}", "--once", env={"LC_ALL": "C"})
        plain.stdout.decode("ascii")

    def test_json_prints_ticks_one_per_line(self):
        fake = self.fake()
        once = top("--admin", f"127.0.0.1:{fake.port}", "--json", "--once", "--page", "refusals")
        self.assertEqual(once.returncode, 0)
        self.assertEqual(once.stdout.count(b"\n"), 1)
        self.assertEqual(json.loads(once.stdout)["refusals"]["actors"][0]["name"], "batch-export")
        child = subprocess.Popen([WEIR, "top", "--admin", f"127.0.0.1:{fake.port}", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(3):
                self.assertEqual(json.loads(child.stdout.readline())["state"], "OVERLOADED")
            fake.end()
            self.assertEqual(child.wait(20), 1)
            self.assertIn("the gateway ended the stream", child.stderr.read())
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
            child.stderr.close()

    def test_an_unreachable_gateway_is_status_1_with_what_to_try(self):
        fake = self.fake()
        fake.end()
        for arguments in (["--once"], ["--json"]):
            failed = top("--admin", f"127.0.0.1:{fake.port}", *arguments)
            self.assertEqual(failed.returncode, 1)
            self.assertEqual(failed.stdout, b"")
            self.assertIn(b"connection refused; start a gateway there, or name its admin endpoint",
                          failed.stderr)
        other = self.fake()
        other.refusal = (404, "no such page")
        failed = top("--admin", f"127.0.0.1:{other.port}", "--once")
        self.assertEqual(failed.returncode, 1)
        self.assertIn(b"it answers 404: no such page; name the admin endpoint", failed.stderr)

    def test_wrong_usage_is_status_2(self):
        for arguments, text in ((["--once", "--page", "x"], "there are now, refusals, limit"),
                                (["--once", "--admin", "ftp://x"], "is not an address"),
                                (["--once", "--interval", "0"], "--interval"),
                                ([], "try --once or --json")):
            failed = top(*arguments)
            self.assertEqual(failed.returncode, 2, arguments)
            self.assertIn(text, failed.stderr.decode())

    def test_no_color_leaves_no_colour(self):
        fake = self.fake()
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            shown = self.terminal(fake, env=env)
            shown.type("q")
            shown.wait()
            self.assertEqual(b"\x1b[1;31m" in shown.sent, coloured)
            self.assertEqual(b"\x1b[32m" in shown.sent, coloured)

    def test_a_unix_socket_is_an_address(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "admin.sock")
            self.fake(path=path)
            printed = top("--admin", f"unix:{path}", "--once")
            self.assertEqual(printed.returncode, 0, printed.stderr)


class RealGateway(TopTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-top-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def gateway(self, origins, extra):
        self.origins = [self.started(origin) for origin in origins]
        return self.started(Weir(config=self.app_config([one.port for one in self.origins],
                                                        extra)))

    def top(self, *arguments):
        return self.started(Terminal(WEIR, "top", *arguments, cols=120))

    def test_an_overload_is_shown(self):
        gateway = self.gateway([Origin(workers=4, service_ms=20)], """
[admission.limit]
policy = "fixed"
initial_limit = 8
max_limit = 8
""")
        load = start_traffic(gateway.port, 60, ["/:1000"], connections=50)
        self.addCleanup(load.stdout.close)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        where = ("--admin", f"127.0.0.1:{gateway.admin}")

        def overloaded():
            once = top(*where, "--once", "--json")
            self.assertEqual(once.returncode, 0, once.stderr)
            tick = json.loads(once.stdout)
            return tick if tick["state"] == "OVERLOADED" else None
        tick = wait_until(overloaded)
        self.assertEqual(tick["verdict"]["upstream"], "app")
        self.assertTrue(tick["verdict"]["sentence"])
        self.assertGreater(tick["upstreams"][0]["refused"], 0)
        shown = self.top(*where)
        self.shows(shown, "[1 Now]")
        wait_until(lambda: shown.lines()[0].startswith("OVERLOADED"))
        self.shows(shown, "app        OVERLOADED")
        shown.type("2")
        self.shows(shown, "overload")

    def drains(self, shown, gateway, who):
        """d asks with what the gateway says, n leaves it, y does it."""
        shown.type("4")
        self.shows(shown, "[4 Replicas]")
        self.shows(shown, f"127.0.0.1:{self.origins[2].port}")
        self.shows(shown, "d drain")
        shown.type("d")
        self.shows(shown, "2 of 3 remain")
        shown.type("n")
        self.shows(shown, "nothing was drained")
        shown.type("d")
        self.shows(shown, "2 of 3 remain")
        shown.type("y")
        self.shows(shown, " drains: ")
        gateway.line_with(rf"action drain app 127.0.0.1:\d+ for 10m by {who}: done, o1")
        self.shows(shown, "draining")
        self.assertEqual(gateway.metric('weir_override_active{action="drain"}'), 1)

    def three(self, admin):
        return self.gateway([Origin(service_ms=1) for _ in range(3)], "[admin]\n" + admin)

    def with_token(self):
        self.token = os.path.join(self.folder, "token")
        for path, token in ((self.token, "ab" * 32), (self.token + ".wrong", "cd" * 32)):
            with open(path, "w", encoding="ascii",
                      opener=lambda p, f: os.open(p, f, 0o600)) as file:
                file.write(token + "\n")
        return self.three(f'actions = "token"\ntoken_file = "{self.token}"\n')

    def test_d_drains_with_the_token(self):
        gateway = self.with_token()
        shown = self.top("--admin", f"127.0.0.1:{gateway.admin}", "--token-file", self.token)
        self.drains(shown, gateway, "token")

    def test_d_says_that_it_needs_the_token_or_another_one(self):
        gateway = self.with_token()
        where = ("--admin", f"127.0.0.1:{gateway.admin}")
        shown = self.top(*where)
        shown.type("4d")
        self.shows(shown, "actions need the token: weir top --token-file FILE")
        self.assertNotIn("d drain", shown.text())
        wrong = self.top(*where, "--token-file", self.token + ".wrong")
        self.shows(wrong, "[1 Now]")
        wrong.type("4")
        self.shows(wrong, f"127.0.0.1:{self.origins[0].port}")
        wrong.type("d")
        self.shows(wrong, "not possible: ")
        self.shows(wrong, "token")
        failed = top(*where, "--once", "--token-file", self.token + ".none")
        self.assertEqual(failed.returncode, 2)
        self.assertIn(b"cannot read the token", failed.stderr)

    def test_d_drains_over_the_socket(self):
        path = os.path.join(self.folder, "actions.sock")
        gateway = self.three(f'actions = "socket"\nactions_socket = "{path}"\n')
        tcp = self.top("--admin", f"127.0.0.1:{gateway.admin}")
        self.shows(tcp, "[1 Now]")
        tcp.type("4d")
        self.shows(tcp, "actions need the gateway's socket: weir top --admin unix:PATH")
        shown = self.top("--admin", "unix:" + path)
        self.drains(shown, gateway, f"uid {os.getuid()}")

    def test_the_configuration_says_where_and_with_which_token(self):
        gateway = self.with_token()
        config = os.path.join(self.folder, "top.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(self.app_config([1], f'[admin]\nlisten = "127.0.0.1:{gateway.admin}"\n'
                                            f'actions = "token"\ntoken_file = "{self.token}"\n'))
        self.drains(self.top("--config", config), gateway, "token")


if __name__ == "__main__":
    unittest.main()
