"""`weir simulate` as a user meets it: what the guide shows, exit status, bad input, memory.

    simulate_test.py --write     writes what is printed and drawn now into the guide
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from processes import WEIR

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide/simulate.md"
LAUNCH_DAY = ROOT / "scenarios/launch-day.toml"


def simulate(*arguments, folder=ROOT):
    return subprocess.run([os.path.abspath(WEIR), "simulate", *arguments], capture_output=True,
                          text=True, timeout=60, cwd=folder, check=False)


SHOWN = re.compile(r"```console\n\$ weir simulate (.*?)\n(.*?)```", re.DOTALL)
STALE = "the guide is out of date: tests/integration/simulate_test.py --write"


def write_guide():
    def now(block):
        return (f"```console\n$ weir simulate {block[1]}\n"
                f"{simulate(*shlex.split(block[1])).stdout.strip()}\n```")
    GUIDE.write_text(SHOWN.sub(now, GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    simulate(str(LAUNCH_DAY), "--plot", str(GUIDE.parent / "launch-day.svg"))


class Simulate(unittest.TestCase):
    maxDiff = None

    def test_the_guide_shows_what_is_printed(self):
        blocks = SHOWN.findall(GUIDE.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(blocks), 2)
        for arguments, shown in blocks:
            with self.subTest(arguments):
                self.assertEqual(simulate(*shlex.split(arguments)).stdout.strip(), shown.strip(),
                                 STALE)

    def test_the_guides_picture_is_drawn_by_it(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder, "day.svg")
            self.assertEqual(simulate(str(LAUNCH_DAY), "--plot", str(drawn)).returncode, 0)
            self.assertEqual(drawn.read_text(encoding="utf-8"),
                             (GUIDE.parent / "launch-day.svg").read_text(encoding="utf-8"), STALE)

    def test_the_guides_what_ifs_run(self):
        text = GUIDE.read_text(encoding="utf-8")
        commands = re.findall(r"^weir simulate (launch-day\.toml --[^#\n]*)", text, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 6)
        for command in commands:
            if "config=" in command:
                continue  # a file of the reader's own
            with self.subTest(command):
                done = simulate(*shlex.split(command), folder=ROOT / "scenarios")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertEqual(done.stderr, "")

    def test_a_failed_verdict_is_named_with_its_value_and_shown_again_by_the_command(self):
        done = simulate(str(LAUNCH_DAY), "--set", "service.checkout.workers=6")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"FAIL people can pay, all day: 0\.\d+ \[success_ratio")
        again = re.search(r"see it again: weir simulate (.*)", done.stdout)[1]
        self.assertEqual(simulate(*shlex.split(again)).stdout, done.stdout)

    def test_bad_input_is_status_2_and_says_where_and_what(self):
        for assignment, said in (
                ("load.pay.rate=much", "load.pay.rate = \"much\"; allowed: a number, or a list"),
                ("load.pay.class=top", "allowed: one of critical, high, normal, low"),
                ("service.checkout.time={kind=\"odd\"}", "allowed: one of constant, uniform"),
                ("service.checkout.admission.max_concurrent=0", "1 to 16383"),
                ("service.shop.workers=2", "one of checkout")):
            with self.subTest(assignment):
                done = simulate(str(LAUNCH_DAY), "--set", assignment)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("--set: ", done.stderr)
                self.assertIn(said, done.stderr)

    def test_memory_does_not_depend_on_the_time_simulated(self):
        def peak_kb(duration):
            command = [WEIR, "simulate", str(LAUNCH_DAY), "--set", f"duration={duration}",
                       "--set", "load.*.rate=500", "--set", "verdict=[]"]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(child.returncode, 0)
            return usage.ru_maxrss

        short, long = peak_kb("10s"), peak_kb("1000s")
        self.assertLess(long, short + 2048, "1.5 million requests against 15,000")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_guide()
    else:
        unittest.main()
