"""Actions of an operator with weir action and curl, at a real gateway."""

import json
import os
import stat
import subprocess
import tempfile
import unittest

from processes import SIGHUP, SIGTERM, WEIR, Origin, ProcessTest, Weir, get, wait_until


def command(*arguments):
    return subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=30,
                          check=False)


def paced(*arguments):
    """The command, once the pace of one action a second allows it."""
    def look():
        done = command(*arguments)
        return None if "(429)" in done.stderr else done
    return wait_until(look, every=0.2)


class Actions(ProcessTest):
    def setUp(self):
        self.origins = [self.started(Origin(service_ms=1)) for _ in range(3)]
        self.folder = tempfile.TemporaryDirectory(prefix="weir-actions-")
        self.addCleanup(self.folder.cleanup)

    def config(self, admin):
        return self.app_config([one.port for one in self.origins], "[admin]\n" + admin)

    def with_socket(self):
        self.socket = os.path.join(self.folder.name, "actions.sock")
        return self.started(Weir(config=self.config(
            f'actions = "socket"\nactions_socket = "{self.socket}"\n')))

    def endpoint(self, index):
        return f"127.0.0.1:{self.origins[index].port}"

    def served(self, gateway, requests=30):
        """How many of these requests each origin got."""
        before = self.attempts(gateway)
        for _ in range(requests):
            self.assertEqual(get(gateway.port).status, 200)
        gateway.settled()
        return [now - old for now, old in zip(self.attempts(gateway), before)]

    def attempts(self, gateway):
        page = json.loads(gateway.page("/endpoints").body)
        by_name = {one["endpoint"]: one["answered"] for one in page["endpoints"]}
        return [by_name[self.endpoint(i)] for i in range(3)]

    def test_a_drain_by_command_line_takes_an_endpoint_out_and_undrain_brings_it_back(self):
        gateway = self.with_socket()
        where = ("--config", gateway.config_path)
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o660)
        self.assertEqual(command("action", "list", *where).stdout, "no overrides\n")
        dry = command("action", "drain", self.endpoint(0), "--dry-run", *where)
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("dry run: 2 of 3 remain", dry.stdout)
        self.assertTrue(all(self.served(gateway)))
        done = paced("action", "drain", self.endpoint(0), "--for", "1m", *where)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"o1  drain app {self.endpoint(0)}  60 s left", done.stdout)
        shares = self.served(gateway)
        self.assertEqual(shares[0], 0)
        self.assertTrue(all(shares[1:]))
        refused = paced("action", "drain", self.endpoint(1), *where)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("1 of 3 remain", refused.stderr)
        self.assertIn("force", refused.stderr)
        self.assertIn(f"drain app {self.endpoint(0)}", command("action", "list", *where).stdout)
        self.assertEqual(paced("action", "undrain", self.endpoint(0), *where).returncode, 0)
        wait_until(lambda: self.served(gateway)[0] > 0)
        gateway.line_with(rf"action drain {self.endpoint(0)} for 1m by uid {os.getuid()}: done, o1")
        gateway.line_with(rf"action drain {self.endpoint(1)} .*: refused, 1 of 3 remain")
        gateway.line_with(r"action undrain .*: done")

    def test_an_override_ends_by_itself_and_survives_a_reload(self):
        gateway = self.with_socket()
        where = ("--admin", "unix:" + self.socket)
        self.assertEqual(command("action", "shadow", "limit", "--for", "2s", *where).returncode, 0)
        paced("action", "cap", "app", "40", *where)
        self.assertEqual(gateway.upstream()["limit_max"], 40)
        paced("action", "reload", *where)
        gateway.line_with(r"reloaded: 0 options changed")
        self.assertEqual(gateway.upstream()["limit_max"], 40)
        gateway.line_with(r"override o1 \(shadow limit\) is over")
        self.assertIn(b"# override o2: cap app to 40", gateway.page("/config").body)
        gateway.write_config(self.config(
            f'actions = "socket"\nactions_socket = "{self.socket}"\n')
            .replace("[[upstream]]", "[admission.limit]\nmax_limit = 30\ninitial_limit = 20\n"
                                     "[[upstream]]"))
        gateway.signal(SIGHUP)
        gateway.line_with(r"override o2 \(cap app to 40\) ends: the configured limit is 1 to 30")
        self.assertEqual(gateway.upstream()["limit_max"], 30)
        paced("action", "shadow", "memory", *where)
        gateway.signal(SIGTERM)
        self.assertEqual(gateway.wait(), 0)
        gateway.line_with(r"override o3 \(shadow memory\) ends with this process")

    def test_curl_acts_over_the_socket_and_not_over_tcp(self):
        gateway = self.with_socket()
        body = json.dumps({"endpoint": self.endpoint(0), "for_s": 60})
        def curl(*arguments):
            done = subprocess.run(
                ["curl", "-sS", "--max-time", "20", "-w", "\n%{http_code}", "-d", body,
                 *arguments], capture_output=True, text=True, check=False)
            return done.stdout.rsplit("\n", 1)
        json_type = ("-H", "content-type: application/json")
        self.assertEqual(curl(*json_type, f"http://127.0.0.1:{gateway.admin}/actions/drain")[1],
                         "403")
        over = ("--unix-socket", self.socket)
        self.assertEqual(curl(*over, "http://localhost/actions/drain")[1], "415")
        self.assertEqual(curl(*over, *json_type, "-H", "host: evil.example",
                              "http://localhost/actions/drain")[1], "421")
        answer, status = curl(*over, *json_type, "http://localhost/actions/drain")
        self.assertEqual(status, "200", answer)
        self.assertEqual(json.loads(answer)["override"]["endpoint"], self.endpoint(0))
        self.assertEqual(gateway.metric('weir_override_active{action="drain"}'), 1)

    def test_a_process_of_another_user_may_not_use_the_socket(self):
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        gateway = self.with_socket()
        os.chmod(self.folder.name, 0o755)
        os.chmod(self.socket, 0o666)  # so that only the gateway itself can refuse
        ask = ["curl", "-sS", "--max-time", "20", "--unix-socket", self.socket, "-H",
               "content-type: application/json", "-d", '{"rule":"limit"}',
               "http://localhost/actions/shadow"]
        stranger = subprocess.run(ask, capture_output=True, text=True, check=False,
                                  user=65534, group=65534, extra_groups=[])
        self.assertIn("uid 65534 is neither root", stranger.stdout)
        member = subprocess.run(ask, capture_output=True, text=True, check=False,
                                user=65534, group=65534, extra_groups=[os.getgid()])
        self.assertIn('"done":true', member.stdout)
        gateway.line_with(r"action shadow: forbidden, uid 65534")
        gateway.line_with(r"action shadow limit .* by uid 65534: done")

    def test_with_a_token_the_dashboard_has_it_behind_the_number_sign(self):
        token = os.path.join(self.folder.name, "token")
        with open(token, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write("ab" * 32 + "\n")
        config = self.config(f'actions = "token"\ntoken_file = "{token}"\n')
        gateway = self.started(Weir(config=config))
        where = ("--admin", f"127.0.0.1:{gateway.admin}", "--token-file", token)
        self.assertEqual(command("dashboard", *where).stdout,
                         f"http://127.0.0.1:{gateway.admin}/#token={'ab' * 32}\n")
        without = command("action", "shadow", "limit", *where[:2])
        self.assertEqual(without.returncode, 1)
        self.assertIn("(401)", without.stderr)
        self.assertEqual(command("action", "shadow", "limit", *where).returncode, 0)
        gateway.line_with(r"action shadow limit .* by token: done")
        self.assertFalse([line for line in gateway.lines if "ab" * 8 in line], "never in the log")
        os.chmod(token, 0o640)
        checked = command("check", gateway.config_path)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("chmod 600", checked.stderr)

    def test_a_token_is_not_taken_where_others_see_the_traffic(self):
        path = os.path.join(self.folder.name, "weir.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.config('listen = ":9901"\nactions = "token"\ntoken_file = "/x"\n'))
        checked = command("check", path)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("has no TLS", checked.stderr)

    def test_the_log_of_one_route_ends_with_its_time(self):
        gateway = self.with_socket()
        where = ("--admin", "unix:" + self.socket)
        get(gateway.port, "/before")
        self.assertEqual(command("action", "log", "--route", "0", "--for", "2s",
                                 *where).returncode, 0)
        get(gateway.port, "/during")
        wait_until(lambda: [line for line in gateway.output if "/during" in line])
        gateway.line_with(r"override o1 \(log route 0\) is over")
        get(gateway.port, "/after")
        gateway.settled()
        self.assertFalse([line for line in gateway.output if "/before" in line])
        self.assertFalse([line for line in gateway.output if "/after" in line])

    def test_while_actions_are_off_the_command_says_what_to_do(self):
        gateway = self.started(Weir(config=self.config("")))
        tried = command("action", "reload", "--admin", f"127.0.0.1:{gateway.admin}")
        self.assertEqual(tried.returncode, 1)
        self.assertIn("admin.actions", tried.stderr)
        self.assertEqual(command("action", "stop").returncode, 2)


if __name__ == "__main__":
    unittest.main()
