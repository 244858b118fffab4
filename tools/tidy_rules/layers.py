"""What each layer may include. ARCHITECTURE.md draws the same table."""

from .std_headers import POSIX, SOCKETS, STD

# A layer sees what it names here, and what those see.
DIRECT = {
    "base": (),
    "policy": ("base",),
    "control": ("policy",),
    "config": ("control",),
    "embed": ("control",),
    "metrics": ("base",),
    "http": ("base",),
    "io": ("base",),
    "server": ("io", "http", "policy"),
    "upstream": ("io", "http", "control", "metrics"),
    "client": ("upstream", "config"),
    "dashboard": ("base",),
    "gateway": ("server", "upstream", "config", "metrics", "dashboard"),
    "sim": ("control", "config"),
    "grpc": ("embed",),
}
# The structs that `config` fills live with their layers, in headers of this name.
CONFIG_HEADERS = ("_config.h", "http/limits.h")  # how the names of headers with config structs end
CONFIG_HEADER_LAYERS = {"base", "policy"}

# Third-party headers by prefix, and the layers that may see them.
PURE = {"base", "policy", "control", "http", "dashboard"}
SHELL = set(DIRECT) - PURE | {"apps"}
PACKAGES = {
    "uv.h": {"io"},
    "openssl/": {"io", "server"},
    "nghttp2/": {"http"},
    "ares.h": {"io"},
    "toml++/": {"config", "sim"},
    "CLI/": {"apps"},
    "fmt/": SHELL,
    "spdlog/": SHELL,
    "nlohmann/": SHELL,
    "grpc": {"grpc"},
}
# An example that is a program of several parts has packages of its own.
EXAMPLE_PACKAGES = {"examples/valuestore": ("rocksdb/", "openssl/", "gtest/")}
# Layers whose installed headers name the types of a package, and that package: whoever uses such a
# layer has the package, because it is what the layer is for.
PUBLIC_PACKAGES = {"grpc": "grpcpp/"}
GENERATED = ".pb.h"  # from .proto files, in the build directory
TEST_PACKAGES = ("gtest/", "gmock/")
BENCH_PACKAGES = ("benchmark/",)
# Test programs that need a real peer may link the layer that provides one.
TEST_DIRECT = {"upstream": ("server",), "client": ("server",), "control": ("config",),
               "grpc": ("io",),
               "http": (), "io": ()}
SYSTEM_LAYERS = {"io", "server", "upstream", "gateway", "apps"}


def closure(layer):
    seen, todo = set(), [layer]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(DIRECT[name])
    return seen


ALLOWED = {layer: closure(layer) for layer in DIRECT}


def check(tree):
    for file in tree.cpp:
        yield from _check_own_header(tree, file)
        if file.layer is not None and file.layer not in DIRECT:
            yield file.finding(0, f"'{file.layer}' is not a layer; see tools/tidy_rules/layers.py")
        elif file.layer is not None:
            yield from _check_layer_file(tree, file)
        elif file.top == "examples":
            yield from _check_example(tree, file)
        elif file.top == "apps":
            for line, is_system, name in file.includes:
                if is_system:
                    yield from _check_system(file, line, name, "apps")


def _check_layer_file(tree, file):
    listed = tree.exceptions.get("includes", file.path) or {"headers": ()}
    for line, is_system, name in file.includes:
        if name in listed["headers"]:
            continue
        if name.endswith(GENERATED):
            if not (file.is_test or file.is_bench) or file.layer not in PUBLIC_PACKAGES:
                yield file.finding(line, f'"{name}": only tests of grpc have .proto files')
        elif is_system:
            yield from _check_system(file, line, name, file.layer)
        else:
            yield from _check_weir(tree, file, line, name)


def _check_own_header(tree, file):
    """x.cc includes x.h before anything else, which proves that x.h compiles alone; x_test.cc does
    so for a header that has no x.cc. (cmake/WeirHeaders.cmake compiles the rest.)"""
    if file.layer is None or file.suffix != "cc":
        return
    stem = file.path.removeprefix(f"src/{file.layer}/").removesuffix(".cc")
    if stem.endswith("_test"):
        stem = stem.removesuffix("_test")
        if f"src/{file.layer}/{stem}.cc" in tree.paths:
            return
    for folder, name in _own_headers(file.layer, stem):
        if f"{folder}/{name}" not in tree.paths:
            continue
        if not file.includes or file.includes[0][1:] != (False, name):
            yield file.finding(file.includes[0][0] if file.includes else 1,
                               f'the first include is "{name}": to prove that it compiles alone')
        return


def _own_headers(layer, stem):
    """(folder, name as it is included) of each place where x.h of x.cc may stand."""
    for name in dict.fromkeys((stem, stem.rpartition("/")[2])):
        yield "include", f"weir/{layer}/{name}.h"
        yield "include", f"weir/experimental/{layer}/{name}.h"
    yield "internal", f"{layer}/{stem}.h"
    yield f"src/{layer}", f"{stem}.h"


def _check_example(tree, file):
    """An example stands for somebody's own program, which has the system's headers too, and those
    that stand beside it."""
    for line, is_system, name in file.includes:
        if is_system:
            known = (name in STD or name in POSIX or name in SOCKETS
                     or name.startswith(tuple(PUBLIC_PACKAGES.values())))
        else:
            known = (name.startswith("weir/") or f"{file.folder}/{name}" in tree.paths
                     or name.endswith(GENERATED))
        known = known or name.startswith(EXAMPLE_PACKAGES.get(file.folder, ()))
        if not known:
            yield file.finding(line, f"<{name}>: an example uses std, the system's and installed "
                                     "headers only")


def _check_weir(tree, file, line, name):
    """What the include paths cannot hold: a folder of src/ is visible to its own layer only."""
    if f"src/{file.layer}/{name}" in tree.paths:
        if file.is_public or file.top == "internal":
            yield file.finding(line, f'"{name}" is private: others who include this cannot see it')
        return
    parts = name.split("/")
    is_installed = parts[0] == "weir" and len(parts) > 2
    is_experimental = is_installed and parts[1] == "experimental"
    layer = parts[1 + is_experimental] if is_installed else parts[0]
    if layer not in DIRECT or (not is_installed and f"internal/{name}" not in tree.paths):
        yield file.finding(line, f'"{name}": write "weir/<layer>/x.h", "<layer>/x.h" for a header '
                                 "in internal/, or the path below the layer's own folder in src/")
        return
    if file.is_public and not is_installed:
        yield file.finding(line, f'"{name}" is internal: an installed header cannot include it')
    if file.is_stable and is_experimental:
        yield file.finding(line, f'"{name}" is experimental: a stable header cannot include it')
    is_config = name.endswith(CONFIG_HEADERS)
    if file.is_public and file.name.endswith(CONFIG_HEADERS) and file.layer != "config":
        if layer not in CONFIG_HEADER_LAYERS and not is_config:
            yield file.finding(line, f'"{name}": a *_config.h sees std, base and policy only')
        return
    if file.layer in ("config", "sim") and is_config:
        return
    allowed = set(ALLOWED[file.layer])
    if file.is_test or file.is_bench:
        for extra in TEST_DIRECT.get(file.layer, ()):
            allowed |= ALLOWED[extra]
    if layer not in allowed:
        yield file.finding(line, f'"{name}": layer {file.layer} may see '
                                 f"{', '.join(sorted(allowed))}; not {layer}")


def _check_system(file, line, name, layer):
    if name in STD:
        return
    if file.is_public and name.startswith(PUBLIC_PACKAGES.get(layer, "\n")):
        return
    if file.is_public:
        yield file.finding(line, f"<{name}>: installed headers include std and Weir only")
        return
    if file.is_test and (name.startswith(TEST_PACKAGES) or name in POSIX or name in SOCKETS):
        return
    if file.is_bench and name.startswith(BENCH_PACKAGES):
        return
    if name in SOCKETS:
        if layer not in ("io", "apps"):
            yield file.finding(line, f"<{name}>: sockets live in io; take one from there")
        return
    if name in POSIX:
        if layer not in SYSTEM_LAYERS:
            yield file.finding(line, f"<{name}>: layer {layer} does not talk to the system; "
                                     "io does, and hands the value down")
        return
    for prefix, layers in PACKAGES.items():
        if name.startswith(prefix):
            if layer not in layers:
                yield file.finding(line, f"<{name}>: only {', '.join(sorted(layers))} may use it, "
                                         f"not {layer}")
            return
    yield file.finding(line, f"<{name}>: unknown header; if {layer} needs it, say so in "
                             "tools/tidy_rules/layers.py")
