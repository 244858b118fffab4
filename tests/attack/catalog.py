"""The known attacks on an HTTP server, by number, and which test is against which. Every one must
have a test; every test of an attack says which it is against. Run as a program with the example
server, it plays them all and prints a table of what each could make the server hold."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ATTACKS = {
    1: "data dribble: large responses, windows of one byte (CVE-2019-9511)",
    2: "PING flood (CVE-2019-9512)",
    3: "resource loop: endless priority changes (CVE-2019-9513)",
    4: "reset flood: streams that the server must refuse or reset (CVE-2019-9514)",
    5: "SETTINGS flood (CVE-2019-9515)",
    6: "header fields without a name (CVE-2019-9516)",
    7: "windows open, socket not read (CVE-2019-9517)",
    8: "empty frames (CVE-2019-9518)",
    9: "rapid reset (CVE-2023-44487)",
    10: "CONTINUATION flood (CVE-2024-27316)",
    11: "MadeYouReset: frames that make the server reset streams (CVE-2025-8671)",
    12: "HPACK bomb (CVE-2016-6581)",
    13: "HTTP/2 bomb: many small fields, held by a closed window (CVE-2026-49975)",
    14: "header tables grown and shrunk",
    15: "windows closed, or opened byte by byte",
    16: "WINDOW_UPDATE flood",
    17: "SETTINGS not acknowledged, streams refused, socket not read",
    18: "slowloris: heads sent byte by byte",
    19: "slow bodies",
    20: "slow reading",
    21: "connection flood, descriptors used up",
    22: "TLS handshake flood",
    23: "renegotiation and KeyUpdate storms",
    24: "ambiguous framing of requests",
    25: "HTTP/2 requests that would mean another request in HTTP/1",
    26: "100-continue: body missing, sent too early, or answered early",
    27: "upgrades and tunnels without agreement",
    28: "pipelining flood",
}

SUITES = ("h1_attacks", "h1_tools", "h1_ceiling", "h2_attacks", "h2_peaceful",
          "tls_attacks")


def against(*numbers):
    """Marks a test, or a class of tests."""
    unknown = set(numbers) - set(ATTACKS)
    if unknown:
        raise ValueError(unknown)

    def mark(test):
        test.against = numbers
        return test
    return mark


def tests_of(module):
    """(name, numbers) of each test, those of a class being of all its tests without their own."""
    for group in vars(module).values():
        if not (isinstance(group, type) and group.__module__ == module.__name__):
            continue
        for name, test in vars(group).items():
            if name.startswith("test_"):
                yield (f"{module.__name__}.{group.__name__}.{name}",
                       getattr(test, "against", getattr(group, "against", None)))


def note(figures):
    """Of an attack that was withstood; kept if somebody asked for it."""
    if path := os.environ.get("WEIR_ATTACK_FIGURES"):
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(figures) + "\n")


def table(rows):
    """One row per attack: of its tests the one that came nearest to the ceiling."""
    print("| # | attack | tests | peak MB | ceiling MB | share | grew by KB | others served |")
    print("|---|---|---|---|---|---|---|---|")
    for number, name in ATTACKS.items():
        own = [row for row in rows if number in row["against"]]
        worst = max(own, key=lambda row: row["peak"] / row["ceiling"])
        good, asked = (sum(row[key] for row in own) for key in ("good", "asked"))
        print(f"| {number} | {name} | {len(own)} | {worst['peak'] / 1e6:.1f} | "
              f"{worst['ceiling'] / 1e6:.1f} | {100 * worst['peak'] / worst['ceiling']:.0f} % | "
              f"{max(row['grew'] for row in own) / 1000:.0f} | {good} of {asked} |")


def main(hello_server):
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder, "figures")
        figures.touch()
        failed = []
        for suite in SUITES:
            run = subprocess.run([sys.executable, here / f"{suite}.py", hello_server],
                                 env={**os.environ, "WEIR_ATTACK_FIGURES": str(figures)},
                                 check=False)
            if run.returncode != 0:
                failed.append(suite)
        table([json.loads(line) for line in figures.read_text().splitlines()])
    if failed:
        sys.exit(f"not withstood: {failed}")


if __name__ == "__main__":
    main(sys.argv[1])
