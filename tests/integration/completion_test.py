"""Completions and man pages are made from the program itself: bash completes with them, and groff
sets them without a remark."""

import os
import re
import subprocess
import tempfile
import unittest

from processes import WEIR


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20,
                          **options).stdout


def commands():
    shown = output(WEIR, "--help")
    return re.findall(r"^  (\w+)", shown.partition("Subcommands:")[2].partition("Start here")[0],
                      re.MULTILINE)


def options_of(command):
    shown = output(WEIR, command, "--help").partition("Options:")[2]
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", shown, re.MULTILINE))


class Bash(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-completion-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.script = os.path.join(folder.name, "completion")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(output(WEIR, "completion", "bash"))
        for name in ("weir.toml", "with space.toml"):
            open(os.path.join(folder.name, name), "w", encoding="utf-8").close()

    def completed(self, *words):
        """What bash offers for the last of these words."""
        program = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir; '
                   'printf "%s\\n" "${COMPREPLY[@]}"')
        shown = output("bash", "--norc", "-uc", program, "bash", self.script, "weir", *words,
                       cwd=self.folder)
        return set(filter(None, shown.split("\n")))

    def test_every_command_of_the_help_and_no_hidden_one(self):
        self.assertGreaterEqual(len(commands()), 7)
        self.assertEqual(self.completed(""), set(commands()) | {"-h", "--help", "--version"})
        self.assertEqual(self.completed("che"), {"check"})

    def test_every_option_of_every_command(self):
        for command in commands():
            with self.subTest(command):
                self.assertEqual(self.completed(command, "--"), options_of(command))
        self.assertEqual(self.completed("run", "--tls-"),
                         {"--tls-listen", "--tls-cert", "--tls-key"})

    def test_values(self):
        files = {"weir.toml", "with space.toml"}
        self.assertEqual(self.completed("completion", ""), {"bash", "zsh", "fish"})
        self.assertEqual(self.completed("run", "--config", "w"), files)
        self.assertEqual(self.completed("run", "-c", "with"), {"with space.toml"})
        self.assertEqual(self.completed("check", "w"), files)
        self.assertEqual(self.completed("run", "--listen", ""), set())

    def test_bash_loads_it_without_a_remark(self):
        output("bash", "--norc", "-euc", 'source "$1"; complete -p weir', "bash", self.script)


class OtherShells(unittest.TestCase):
    def test_they_name_the_same_options(self):
        zsh, fish = output(WEIR, "completion", "zsh"), output(WEIR, "completion", "fish")
        for command in commands():
            with self.subTest(command):
                specs = re.search(rf"^    {command}\) _arguments(.*?);;$", zsh, re.M | re.S)[1]
                named = re.findall(r"^      '[*]?(?:\(.*?\)'\{(?:-\w,)?)?(--[\w-]+)", specs, re.M)
                self.assertEqual(set(named), options_of(command))
                named = re.findall(rf"_from {command}'.*? -l ([\w-]+)", fish)
                self.assertEqual({f"--{name}" for name in named}, options_of(command))

    def test_an_unknown_shell_is_told_which_there_are(self):
        done = subprocess.run([WEIR, "completion", "tcsh"], capture_output=True, text=True,
                              timeout=20, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash", done.stderr)


class ManPages(unittest.TestCase):
    def page(self, name):
        env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
        roff = output(WEIR, "manual", name, env=env)
        judged = subprocess.run(["groff", "-ww", "-b", "-man", "-Tutf8", "-Kutf8", "-P-c"],
                                input=roff, capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(judged.stderr, "")
        return roff, re.sub(".\b", "", judged.stdout)

    def test_weir_1(self):
        roff, shown = self.page("weir.1")
        self.assertIn("2026-09-21", roff)
        for command in commands():
            self.assertRegex(shown, rf"(?m)^   weir {command}$")
            for option in options_of(command):
                self.assertRegex(shown, rf"(?m)^ +(-\w, )?{option}\b")

    def test_weir_toml_5(self):
        _, shown = self.page("weir.toml.5")
        plain = shown.replace("‐\n", "")
        section = None
        for line in output(WEIR, "check", "--print-defaults").splitlines():
            if found := re.match(r"(?:# )?(\[.*\])$", line):
                section = found[1]
                self.assertIn(f"\n   {section}\n", plain)
            elif found := re.match(r"(\w+) = ", line):
                self.assertRegex(plain, rf"(?m)^ +{found[1]} = ", section)


if __name__ == "__main__":
    unittest.main()
