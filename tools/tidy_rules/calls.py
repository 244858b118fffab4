"""Calls that a layer may not make, each with what to use instead."""

import dataclasses
import re

ALL = frozenset({"base", "policy", "control", "config", "metrics", "http", "io", "server",
                 "upstream", "client", "gateway", "sim", "grpc", "embed", "apps", "examples"})
# What may read the clock and the system's randomness.
CLOCKS = frozenset({"io", "embed"})
# Layers whose tests run in virtual time as well.
VIRTUAL = frozenset({"base", "policy", "control", "config", "metrics", "http", "sim"})


@dataclasses.dataclass(frozen=True)
class Ban:
    hints: tuple       # a source without any of these words cannot match: looked for first
    pattern: re.Pattern
    where: frozenset   # layers whose sources may not
    in_tests: frozenset  # layers whose unit tests may not either
    instead: str


def _ban(hints, pattern, instead, where=ALL, in_tests=frozenset()):
    return Ban(tuple(hints.split()), re.compile(pattern), frozenset(where), frozenset(in_tests),
               instead)


BANS = (
    _ban("_clock clock_gettime gettimeofday",
         r"\b(?:steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday)\b",
         "take `now` (TimePoint) as an argument; io reads the clock", ALL - CLOCKS, VIRTUAL),
    _ban("time",
         r"\b(?:std::)?time\s*\(\s*(?:nullptr|NULL|0)\s*\)",
         "take `now` (TimePoint) as an argument; io reads the clock", ALL - CLOCKS, VIRTUAL),
    _ban("sleep",
         r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\b",
         "use a timer of the loop, or next_expiry()/expire(now)", ALL - {"io"}, ALL),
    _ban("std::thread std::jthread std::async pthread_create",
         r"\bstd::(?:thread|jthread)\b(?!::)|\bstd::async\b|\bpthread_create\b",
         "io starts the threads", ALL - {"io", "examples"}),
    _ban("random_device getrandom",
         r"\brandom_device\b|\bgetrandom\b",
         "take an Rng (weir/base/rng.h) by value; io seeds it once", ALL - CLOCKS, VIRTUAL),
    _ban("mt19937 random_engine minstd_rand rand( rand48",
         r"\bmt19937(?:_64)?\b|\bdefault_random_engine\b|\bminstd_rand0?\b"
         r"|(?<![\w.>])(?:std::)?s?rand\s*\(|\bdrand48\b",
         "use Rng (weir/base/rng.h): seeded, and the same on every compiler", ALL, ALL),
    _ban("getenv",
         r"\b(?:std::)?(?:secure_)?getenv\b",
         "the environment is read by config and handed down", ALL - {"config", "apps"}),
    _ban("printf puts putchar std::cout std::cerr std::clog",
         r"(?<!\w)v?printf\s*\(|(?<!\w)puts\s*\(|(?<!\w)putchar\s*\(|\bstd::(?:cout|cerr|clog)\b"
         r"|(?<!\w)v?fprintf\s*\(\s*std(?:err|out)\b",
         "a library returns text or calls its EventSink; apps print", ALL - {"apps", "examples"}),
    _ban("throw try catch",
         r"\bthrow\b|\btry\s*\{|\bcatch\s*\(",
         "errors are values: Result<T, one-byte enum>",
         {"base", "policy", "control", "http", "server"}),
    _ban("assert",
         r"(?<!\w)assert\s*\(", "WEIR_ASSERT, which is on in release", ALL, ALL),
    _ban("abort exit _Exit",
         r"\b(?:std::)?(?:abort|exit|_Exit|quick_exit|_exit)\s*\(",
         "WEIR_ASSERT for a bug, a Result for anything else", ALL - {"apps", "examples"}),
    _ban("sprintf strcpy strcat strtok gets ato",
         r"(?<!\w)(?:sprintf|vsprintf|strcpy|strcat|strtok|gets|atoi|atol|atof)\s*\(",
         "std::from_chars, std::to_chars, snprintf, string_view", ALL, ALL),
    _ban("for",
         r"\bfor\s*\((?:[^;()]|\(\))*[^:]:(?!:)[^;{}]*\)->\w+\s*\)",
         "C++20 ends the temporary that owns the range before the first turn: name it first",
         ALL, ALL),
    _ban("std::sto",
         r"\bstd::(?:stoi|stol|stoll|stoul|stoull|stof|stod)\b",
         "std::from_chars: no exception, no locale", ALL),
)
_USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b", re.MULTILINE)
_UNORDERED = re.compile(r"\bunordered_(?:multi)?(?:map|set)\s*<")
_NAME_AFTER = re.compile(r"\s*[&*]?\s*(\w+)\s*[;={(,)]")
ORDERED_LAYERS = {"policy", "sim"}


def check(tree):
    for file in tree.cpp:
        layer = file.layer or (file.top if file.top in ("apps", "examples") else None)
        if layer is None:
            continue
        if file.is_bench:
            continue
        for ban in BANS:
            if layer not in (ban.in_tests if file.is_test else ban.where):
                continue
            if not any(hint in file.code for hint in ban.hints):
                continue
            for match in ban.pattern.finditer(file.code):
                call = match.group().strip()
                if not _is_listed(tree, file, call):
                    yield file.finding(file.line_of(match.start()),
                                       f"`{call}` in {layer}: {ban.instead}")
        if file.suffix == "h":
            for match in _USING_NAMESPACE.finditer(file.code):
                yield file.finding(file.line_of(match.start()), "`using namespace` in a header")
        if layer in ORDERED_LAYERS and not file.is_test:
            yield from _check_unordered(tree, file)


def _is_listed(tree, file, call):
    """[calls] "path" = {calls = ["throw"], reason = "…"}"""
    listed = tree.exceptions.get("calls", file.path)
    return listed is not None and any(name in call for name in listed["calls"])


def _check_unordered(tree, file):
    """Hash order differs between libraries: a decision or a simulation that walks it cannot be
    replayed."""
    names = set()
    for other in tree.cpp:
        if other.layer == file.layer and other.stem == file.stem:
            names |= _unordered_names(other.code)
    for name in names:
        walk = re.compile(rf"\bfor\s*\([^;()]*:\s*(?:this->)?{name}\s*\)|\b{name}\.c?begin\s*\(")
        for match in walk.finditer(file.code):
            yield file.finding(file.line_of(match.start()),
                               f"walks the unordered container `{name}`: use a vector or a map")


def _unordered_names(code):
    names = set()
    for match in _UNORDERED.finditer(code):
        depth, end = 1, match.end()
        while end < len(code) and depth:
            depth += {"<": 1, ">": -1}.get(code[end], 0)
            end += 1
        name = _NAME_AFTER.match(code, end)
        if name:
            names.add(name.group(1))
    return names
