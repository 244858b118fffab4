#!/usr/bin/env python3
"""Runs the benchmarks of the release build: `./dev bench [filter] [--json FILE]`.

Without a filter, or with one that is not the name of a script in bench/: every weir_*_bench
program, the repetitions of its benchmarks interleaved at random, so that a slow minute of the
machine falls on all of them. Each line shows the median and its ratio to `mutex_pair`, a bare
std::mutex lock and unlock measured in the same run with as many threads: the machine's speed
cancels out.

With `--against DIR` (another build directory) both builds are run in turns, `--pairs` times (9 or
more), and each line shows the median of new / old: a slow minute of the machine falls on both. Exit
status 1 if a benchmark is more than 3 % slower.

With the name of a script (bench/compare.py: `./dev bench compare`) that script is run instead, with
the remaining arguments.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
YARDSTICK = "mutex_pair"
PAIRS_MIN = 9
SLOWER_MAX = 1.03
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
_THREADS = re.compile(r"/threads:(\d+)")


def machine_facts():
    model = "unknown"
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        match = re.search(r"model name\s*:\s*(.*)", cpuinfo.read_text())
        model = match.group(1) if match else model
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True, check=False).stdout.strip()
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True,
                              check=False).stdout.strip()
    return {"cpu": model, "processors": os.cpu_count(), "kernel": platform.release(),
            "compiler": f"g++ {compiler}", "load_at_start": round(os.getloadavg()[0], 2),
            "commit": commit or "unknown"}


def summarise(program, report):
    """Google Benchmark's JSON -> one dict per benchmark, in order of definition."""
    samples, counters = {}, {}
    for row in report["benchmarks"]:
        if row.get("run_type") == "aggregate" or row.get("error_occurred"):
            continue
        name = row["run_name"]
        kind = "real_time" if "/real_time" in name else "cpu_time"
        samples.setdefault(name, []).append(row[kind] * NANOSECONDS[row["time_unit"]])
        counters.setdefault(name, row)
    results = []
    for name, values in sorted(samples.items(), key=lambda item: _order(counters[item[0]])):
        median = statistics.median(values)
        low, high = _quartiles(values)
        results.append({"program": program, "name": name, "median_ns": median,
                        "quartiles_ns": [low, high], "min_ns": min(values), "max_ns": max(values),
                        "repetitions": len(values),
                        "spread": (high - low) / median if median else 0.0})
    for result in results:
        yardstick = _yardstick(results, result["name"])
        result["ratio"] = result["median_ns"] / yardstick if yardstick else None
    return results


def _order(row):
    return row.get("family_index", 0), row.get("per_family_instance_index", 0)


def _quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def _yardstick(results, name):
    """The mutex_pair with as many threads, or else the plain one."""
    threads = _THREADS.search(name)
    wanted = threads.group(1) if threads else "1"
    fallback = None
    for result in results:
        if result["name"].split("/")[0] != YARDSTICK:
            continue
        own = _THREADS.search(result["name"])
        if (own.group(1) if own else "1") == wanted:
            return result["median_ns"]
        fallback = fallback or result["median_ns"]
    return fallback


def run_program(program, options):
    chosen = f"({options.filter})|^{YARDSTICK}(/|$)" if options.filter else "."
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([program, f"--benchmark_filter={chosen}",
                        f"--benchmark_repetitions={options.repetitions}",
                        f"--benchmark_min_time={options.min_time}",
                        "--benchmark_enable_random_interleaving=true",
                        f"--benchmark_out={out.name}", "--benchmark_out_format=json"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        text = pathlib.Path(out.name).read_text()
    return summarise(program.name, json.loads(text)) if text.strip() else []


def matches(program, pattern):
    """Whether a program has a benchmark of that name: the yardstick alone tells nothing."""
    if not pattern:
        return True
    names = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True,
                           check=True).stdout
    return any(re.search(pattern, name) for name in names.split())


def print_table(results):
    width = max(len(r["name"]) for r in results)
    print(f"{'benchmark':{width}}  {'median ns':>12}  {'± iqr':>6}  {'x mutex_pair':>12}")
    program = None
    for result in results:
        if result["program"] != program:
            program = result["program"]
            print(f"-- {program}")
        ratio = f"{result['ratio']:12.2f}" if result["ratio"] is not None else f"{'-':>12}"
        print(f"{result['name']:{width}}  {result['median_ns']:12.1f}  "
              f"{100 * result['spread']:5.0f}%  {ratio}")


def median_ratios(pairs):
    """[(old, new)], each {name: ns} -> {name: median of new / old}, of what both have."""
    names = [name for name in pairs[0][0] if all(name in run for pair in pairs for run in pair)]
    return {name: statistics.median(new[name] / old[name] for old, new in pairs) for name in names}


def compare(programs, options):
    """Runs each program of both builds in turns; whether none is slower."""
    slower = 0
    for program in programs:
        other = pathlib.Path(options.against).resolve() / program.relative_to(BUILD)
        if not other.exists():
            print(f"-- {program.name}: not in {options.against}")
            continue
        pairs = []
        for i in range(max(options.pairs, PAIRS_MIN)):
            print(f"running {program.name}, pair {i + 1}", file=sys.stderr, flush=True)
            runs = {}
            for build in (other, program) if i % 2 == 0 else (program, other):
                runs[build] = {r["name"]: r["median_ns"] for r in run_program(build, options)}
            pairs.append((runs[other], runs[program]))
        print(f"-- {program.name}: median of new / old, {len(pairs)} pairs")
        for name, ratio in median_ratios(pairs).items():
            slower += ratio > SLOWER_MAX
            print(f"{ratio:8.3f}  {name}{'   SLOWER' if ratio > SLOWER_MAX else ''}", flush=True)
    print(f"{slower} slower by more than {100 * (SLOWER_MAX - 1):.0f} %")
    return slower == 0


def macro_scripts():
    return {path.stem: path for path in sorted((ROOT / "bench").glob("*.py"))
            if os.access(path, os.X_OK)}


def group_pattern(name):
    """`./dev bench admission` is all of src/*/admission_bench.cc: its benchmarks, by name."""
    sources = sorted(ROOT.glob(f"src/**/{name}_bench.cc")) if re.fullmatch(r"\w+", name) else []
    found = [n for source in sources for n in
             re.findall(r'(?:->Name\("|BENCHMARK\()(\w+)', source.read_text())]
    own = sorted(set(found) - {YARDSTICK})
    return rf"^({'|'.join(own)})(/|$)" if own else name


def main(arguments):
    scripts = macro_scripts()
    if arguments and arguments[0] in scripts:
        script = scripts[arguments[0]]
        return subprocess.run([script, *arguments[1:]], check=False, cwd=ROOT).returncode
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("filter", nargs="?", default="",
                        help="regular expression over benchmark names, a group "
                             "(admission, base, h1, memory, "
                             "policy), or one of: "
                             + (", ".join(scripts) or "(no scripts in bench/)"))
    parser.add_argument("--json", metavar="FILE", help="write the results there as well")
    parser.add_argument("--against", metavar="DIR", help="compare with this build directory")
    parser.add_argument("--pairs", type=int, default=PAIRS_MIN, help="runs of each build")
    parser.add_argument("--repetitions", type=int, help="15; with --against 3")
    parser.add_argument("--min-time", type=float, default=0.05, help="seconds per repetition")
    options = parser.parse_args(arguments)
    options.repetitions = options.repetitions or (3 if options.against else 15)
    options.filter = group_pattern(options.filter)

    facts = machine_facts()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    programs = [p for p in sorted(BUILD.glob("src/*/weir_*_bench")) if matches(p, options.filter)]
    if options.against:
        return 0 if compare(programs, options) else 1
    results = []
    for program in programs:
        print(f"running {program.name}", file=sys.stderr, flush=True)
        results += run_program(program, options)
    if not results:
        print(f"no benchmark matches '{options.filter}'", file=sys.stderr)
        return 1
    print_table(results)
    if scripts:
        print(f"more: ./dev bench {' | '.join(scripts)}")
    if options.json:
        document = {"machine": facts, "yardstick": YARDSTICK, "results": results}
        pathlib.Path(options.json).write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
