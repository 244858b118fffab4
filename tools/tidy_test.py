#!/usr/bin/env python3
"""Each rule of tidy fires on the smallest snippet that breaks it, and stays silent beside it."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tidy_rules import (calls, docs, layers, layout, one_definition, private_names,  # noqa: E402
                        sizes, sources, tables, words)
from tidy_rules.tree import EXCEPTIONS_PATH, File, Tree  # noqa: E402


def findings(rule, texts, others=()):
    return [str(f) for f in rule.check(Tree(texts, others))]


def body(lines):
    return "  int x = 0;\n" * lines


class Rule(unittest.TestCase):
    def fires(self, rule, path, text, expected, **more):
        found = findings(rule, {path: text, **more})
        self.assertTrue(any(expected in f for f in found), f"{expected!r} not in {found}")

    def silent(self, rule, path, text, **more):
        self.assertEqual(findings(rule, {path: text, **more}), [])


class Lexer(Rule):
    def test_comments_and_literals_are_not_code(self):
        text = ('int a = 1\'000; // throw\n/* throw\n throw */ auto s = "throw \\" throw";\n'
                'auto r = R"x(throw )" throw)x"; char c = \'"\'; int b;\n')
        code = File("src/base/a.cc", text).code
        self.assertNotIn("throw", code)
        self.assertIn("int b;", code)
        self.assertEqual(code.count("\n"), text.count("\n"))


class Layers(Rule):
    OTHERS = {"include/weir/policy/a.h": "", "include/weir/experimental/server/a.h": "",
              "internal/io/a.h": "", "src/io/own.h": "",
              "include/weir/experimental/server/server_config.h": "",
              "include/weir/base/time.h": ""}

    def include(self, name):
        return f"#include {name}\n"

    def test_a_layer_cannot_look_up(self):
        self.fires(layers, "src/policy/x.cc", self.include('"weir/experimental/server/a.h"'),
                   "not server", **self.OTHERS)
        self.fires(layers, "src/sim/x.cc", self.include('"io/a.h"'), "not io", **self.OTHERS)
        self.fires(layers, "src/http/x_test.cc", self.include('"io/a.h"'), "not io", **self.OTHERS)

    def test_a_layer_sees_below(self):
        self.silent(layers, "src/server/x.cc", self.include('"weir/policy/a.h"'), **self.OTHERS)
        self.silent(layers, "src/server/x.cc", self.include('"io/a.h"'), **self.OTHERS)
        self.silent(layers, "src/gateway/x.cc", self.include('"weir/base/time.h"'), **self.OTHERS)

    def test_config_sees_the_config_structs_of_all_layers_and_nothing_else_of_them(self):
        name = self.include('"weir/experimental/server/server_config.h"')
        self.silent(layers, "src/server/x.cc", name, **self.OTHERS)
        self.silent(layers, "src/config/x.cc", name, **self.OTHERS)
        self.fires(layers, "src/policy/x.cc", name, "not server", **self.OTHERS)
        other = self.include('"weir/experimental/server/a.h"')
        self.fires(layers, "src/config/x.cc", other, "not server", **self.OTHERS)
        self.fires(layers, "include/weir/experimental/io/x_config.h", other,
                   "base and policy only", **self.OTHERS)

    def test_installed_headers_see_std_and_installed_only(self):
        self.fires(layers, "include/weir/io/x.h", self.include("<uv.h>"), "std and Weir only")
        self.fires(layers, "include/weir/io/x.h", self.include("<unistd.h>"), "std and Weir only")
        self.fires(layers, "include/weir/io/x.h", self.include('"io/a.h"'), "is internal",
                   **self.OTHERS)
        self.fires(layers, "internal/io/x.h", self.include('"own.h"'), "is private", **self.OTHERS)
        self.fires(layers, "include/weir/control/x.h",
                   self.include('"weir/experimental/server/a.h"'), "is experimental",
                   **self.OTHERS)
        self.silent(layers, "include/weir/io/x.h", self.include("<span>"))

    def test_installed_headers_of_grpc_name_its_types(self):
        header = "include/weir/experimental/grpc/x.h"
        self.silent(layers, header, self.include("<grpcpp/server_builder.h>"))
        self.fires(layers, header, self.include("<grpc/grpc.h>"), "std and Weir only")
        self.fires(layers, "include/weir/experimental/server/x.h",
                   self.include("<grpcpp/server_builder.h>"), "std and Weir only")

    def test_generated_headers_are_for_tests_of_grpc_and_examples(self):
        generated = self.include('"a/b.grpc.pb.h"')
        self.silent(layers, "src/grpc/x_test.cc", generated)
        self.silent(layers, "examples/x.cc", generated + self.include("<grpcpp/server.h>"))
        self.fires(layers, "src/grpc/x.cc", generated, "only tests of grpc")
        self.fires(layers, "src/server/x_test.cc", generated, "only tests of grpc")

    def test_third_party_headers_have_their_layer(self):
        for name, home, stranger in (("<uv.h>", "io", "server"), ("<openssl/ssl.h>", "io", "http"),
                                     ("<nghttp2/nghttp2.h>", "http", "server"),
                                     ("<toml++/toml.h>", "config", "control"),
                                     ("<fmt/core.h>", "gateway", "policy"),
                                     ("<spdlog/spdlog.h>", "gateway", "base"),
                                     ("<nlohmann/json.hpp>", "sim", "http"),
                                     ("<sys/socket.h>", "io", "server"),
                                     ("<unistd.h>", "io", "policy")):
            self.silent(layers, f"src/{home}/x.cc", self.include(name))
            self.fires(layers, f"src/{stranger}/x.cc", self.include(name), name)
        self.fires(layers, "src/io/x.cc", self.include("<boost/asio.hpp>"), "unknown header")

    def test_private_headers_are_named_from_their_layer(self):
        self.silent(layers, "src/io/x.cc", self.include('"own.h"'), **self.OTHERS)
        self.fires(layers, "src/server/x.cc", self.include('"own.h"'), "folder in src/",
                   **self.OTHERS)

    def test_test_frameworks_stay_in_tests(self):
        self.silent(layers, "src/io/x_test.cc", self.include("<gtest/gtest.h>"))
        self.silent(layers, "src/io/x_bench.cc", self.include("<benchmark/benchmark.h>"))
        self.fires(layers, "src/io/x.cc", self.include("<gtest/gtest.h>"), "unknown header")

    def test_examples_see_what_a_user_sees(self):
        self.silent(layers, "examples/x.cc", self.include('"weir/base/time.h"'), **self.OTHERS)
        self.silent(layers, "examples/x.cc", self.include("<sys/socket.h>"))
        self.silent(layers, "examples/x.cc", self.include('"y.h"'), **{"examples/y.h": ""})
        self.fires(layers, "examples/x.cc", self.include('"y.h"'), "headers only")
        self.fires(layers, "examples/x.cc", self.include('"io/a.h"'), "headers only")
        self.fires(layers, "examples/x.cc", self.include("<fmt/core.h>"), "headers only")
        self.silent(layers, "examples/valuestore/x.cc", self.include("<rocksdb/db.h>"))
        self.fires(layers, "examples/x.cc", self.include("<rocksdb/db.h>"), "headers only")

    def test_a_source_includes_its_own_header_first(self):
        headers = {"include/weir/base/x.h": "", "src/base/y.h": ""}
        text = self.include("<span>") + self.include('"weir/base/x.h"')
        self.fires(layers, "src/base/x.cc", text, "first include", **headers)
        self.fires(layers, "src/base/x_test.cc", text, "first include", **headers)
        self.fires(layers, "src/base/y.cc", self.include("<span>"), "first include", **headers)
        self.silent(layers, "src/base/x.cc", self.include('"weir/base/x.h"') + text, **headers)
        self.silent(layers, "src/base/z.cc", self.include("<span>"), **headers)

    def test_a_listed_source_may(self):
        listed = {EXCEPTIONS_PATH:
                  '[includes]\n"src/base/x.cc" = {headers = ["sys/mman.h"], reason = "r"}\n'}
        self.silent(layers, "src/base/x.cc", self.include("<sys/mman.h>"), **listed)
        self.fires(layers, "src/base/x.cc", self.include("<unistd.h>"), "<unistd.h>", **listed)

    def test_a_new_folder_is_declared(self):
        self.fires(layers, "src/extra/x.cc", "", "is not a layer")


class Calls(Rule):
    def banned(self, layer, code, expected="", path=None):
        self.fires(calls, path or f"src/{layer}/x.cc", f"void f() {{\n  {code};\n}}\n", expected)

    def allowed(self, layer, code, path=None):
        self.silent(calls, path or f"src/{layer}/x.cc", f"void f() {{\n  {code};\n}}\n")

    def test_clocks(self):
        for code in ("auto t = std::chrono::steady_clock::now()", "clock_gettime(0, &t)",
                     "auto t = std::chrono::system_clock::now()", "auto t = std::time(nullptr)"):
            self.banned("control", code, "`now`")
            self.allowed("io", code)
        self.banned("control", "steady_clock::now()", "`now`", "src/control/x_test.cc")
        self.allowed("io", "// steady_clock::now()")

    def test_sleeping(self):
        for code in ("std::this_thread::sleep_for(d)", "usleep(1)", "nanosleep(&t, nullptr)"):
            self.banned("server", code, "timer")
            self.banned("server", code, "timer", "src/server/x_test.cc")
            self.allowed("io", code)

    def test_threads(self):
        for code in ("std::thread t(f)", "std::jthread t(f)", "pthread_create(&t, 0, f, 0)"):
            self.banned("server", code, "io starts")
            self.allowed("server", code, "src/server/x_test.cc")
            self.allowed("io", code)
        self.allowed("server", "auto n = std::thread::hardware_concurrency()")

    def test_randomness(self):
        self.banned("control", "std::random_device d", "Rng")
        self.allowed("io", "std::random_device d")
        self.banned("io", "std::mt19937 g", "Rng")
        self.banned("policy", "int a = rand()", "Rng", "src/policy/x_test.cc")
        self.allowed("policy", "int a = operand()")

    def test_environment_and_output(self):
        self.banned("gateway", "std::getenv(name)", "config")
        self.allowed("config", "std::getenv(name)")
        for code in ("printf(text)", "std::printf(text)", "std::cout << 1", "puts(text)",
                     "std::fprintf(stderr, text)"):
            self.banned("gateway", code, "apps print")
            self.allowed("apps", code, "apps/weir/main.cc")
        self.allowed("gateway", "std::snprintf(a, b, c)")

    def test_exceptions(self):
        for code in ("throw 1", "try { f(); } catch (...) { }"):
            self.banned("http", code, "errors are values")
            self.allowed("config", code)
            self.allowed("http", code, "src/http/x_test.cc")
        self.allowed("http", "bool retry{}")

    def test_asserts_exits_and_unsafe_text(self):
        self.banned("base", "assert(x)", "WEIR_ASSERT")
        self.allowed("base", "static_assert(x); WEIR_ASSERT(x)")
        self.banned("server", "std::abort()", "WEIR_ASSERT")
        self.banned("config", "std::stoi(text)", "from_chars")
        self.banned("io", "strcpy(a, b)", "string_view")

    def test_the_range_of_a_loop_outlives_its_owner(self):
        self.banned("upstream", "for (const M& m : one->endpoints()->members) {}", "name it first")
        self.banned("upstream", "for (auto& m : endpoints()->members) {}", "name it first")
        self.allowed("upstream", "for (const Member& m : set->members) {}")
        self.allowed("upstream", "for (const Member& m : all()) m.get()->f();")
        self.allowed("upstream", "for (int i = f()->n; i < g()->n; ++i) {}")

    def test_a_listed_source_may(self):
        listed = {EXCEPTIONS_PATH: '[calls]\n"src/base/x.cc" = {calls = ["abort"], reason = "r"}\n'}
        self.silent(calls, "src/base/x.cc", "void f() { std::abort(); }\n", **listed)
        self.fires(calls, "src/base/x.cc", "void f() { throw 1; }\n", "throw", **listed)

    def test_walking_an_unordered_container(self):
        header = "struct A {\n  std::unordered_map<int, std::vector<int>> all_;\n};\n"
        for code in ("for (auto& [k, v] : all_) {}", "auto it = all_.begin();"):
            self.fires(calls, "src/sim/a.cc", f"void A::f() {{ {code} }}\n", "walks the unordered",
                       **{"src/sim/a.h": header})
        self.silent(calls, "src/sim/a.cc", "int A::f() { return all_.find(1)->second[0]; }\n",
                    **{"src/sim/a.h": header})

    def test_using_namespace_in_a_header(self):
        self.fires(calls, "src/base/x.h", "using namespace std;\n", "using namespace")
        self.silent(calls, "src/base/x_test.cc", "using namespace std::chrono_literals;\n")


class Layout(Rule):
    def test_columns(self):
        self.fires(layout, "src/base/x.cc", "//" + "x" * 99 + "\n", "101 columns")
        self.silent(layout, "src/base/x.cc", "//" + "ü" * 98 + "\n")

    def test_whitespace(self):
        self.fires(layout, "src/base/x.cc", "int a; \n", "whitespace")
        self.fires(layout, "src/base/x.cc", "\tint a;\n", "tab")
        self.fires(layout, "src/base/x.cc", "int a;", "no newline")
        self.fires(layout, "src/base/x.cc", "int a;\r\n", "carriage")

    def test_headers(self):
        self.fires(layout, "src/base/x.h", "namespace weir::inline v0 {}\n", "#pragma once")
        self.fires(layout, "src/base/x.h", "#pragma once\nnamespace weir {}\n", "inline v0")
        self.silent(layout, "src/base/x.h", "// why\n#pragma once\nnamespace weir::inline v0 {}\n")

    def test_a_layer_has_its_namespace(self):
        own = "#pragma once\nnamespace weir::inline v0::io {\nclass A;\n}\n"
        self.silent(layout, "src/io/x.h", own)
        self.fires(layout, "src/io/x.h", own + "namespace weir::inline v0 {\nusing io::A;\n}\n",
                   "v0::io")
        self.fires(layout, "src/server/x.h", own, "v0::inline server")
        for name in ("weir::control", "weir::inline v0::control"):
            self.fires(layout, "tests/x_test.cc", f"namespace {name} {{\n}}\n", "inline control")
        self.silent(layout, "src/control/x.cc", "namespace weir::inline v0::inline control {\n}\n")
        self.fires(layout, "src/io/x.h", own + "namespace weir::inline v0 {\nclass B;\n}\n",
                   "v0::io")

    def test_a_silenced_check_is_named(self):
        self.fires(layout, "src/base/x.cc", "int a;  // NOLINT\n", "its check")
        self.fires(layout, "src/base/x.cc", "// NOLINTNEXTLINE: no\nint a;\n", "its check")
        self.silent(layout, "src/base/x.cc", "int a;  // NOLINT(misc-x): why\n")

    def test_names(self):
        self.fires(layout, "src/base/utils.cc", "", "says nothing")
        self.fires(layout, "src/base/FooBar.cc", "", "snake_case")


class Sizes(Rule):
    def test_files(self):
        self.fires(sizes, "src/base/x.cc", "\n" * 601, "601 lines")
        self.silent(sizes, "src/base/x.cc", "\n" * 600)
        self.silent(sizes, "src/base/x_test.cc", "\n" * 900)
        self.fires(sizes, "src/base/x_test.cc", "\n" * 901, "901 lines")

    def test_a_listed_file_may_only_shrink(self):
        listed = {EXCEPTIONS_PATH: '[sizes]\n"src/base/x.cc" = {lines = 700, reason = "r"}\n'}
        self.silent(sizes, "src/base/x.cc", "\n" * 700, **listed)
        self.fires(sizes, "src/base/x.cc", "\n" * 701, "grew", **listed)
        self.fires(sizes, "src/base/x.cc", "\n" * 650, "shrank", **listed)
        self.fires(sizes, "src/base/x.cc", "\n" * 500, "remove its entry", **listed)

    def test_functions(self):
        self.fires(sizes, "src/base/x.cc", "int f() {\n" + body(69) + "}\n", "`f` has 71 lines")
        self.silent(sizes, "src/base/x.cc", "int f() {\n" + body(68) + "}\n")

    def test_functions_are_found_wherever_they_stand(self):
        for head in ("namespace a {\nstruct B {\n  template <class T>\n"
                     "  auto long_one(T t) -> int {\n",
                     "namespace a {\nclass B {\n  long_one() : a_{1}, b_{2} {\n",
                     "namespace a {\nclass B {\n  bool long_one(int x) const noexcept override {\n",
                     "namespace a {\nvoid g();\nnamespace {\nA B::long_one(A a, B b) {\n"):
            self.fires(sizes, "src/base/x.cc", head + body(70) + "  }\n};\n}\n", "`long_one`")
        self.fires(sizes, "src/base/x_test.cc", "TEST(A, B) {\n" + body(70) + "}\n", "`A.B`")

    def test_what_is_no_function_may_be_long(self):
        rows = "  {1, 2},\n" * 90
        for head in ("const A kTable[] = {\n", "constexpr std::array kTable{\n", "namespace a {\n",
                     "enum class A : std::uint8_t {\n", "class A final : public B<int()> {\n",
                     "struct A {\n", "extern \"C\" {\n"):
            self.silent(sizes, "src/base/x.cc", head + rows + "};\n")
        self.silent(sizes, "src/base/x.h", "#define A(x) \\\n" + "  f(x) { \\\n" * 90 + "  }\n")

    def test_many_small_functions_in_a_class(self):
        self.silent(sizes, "src/base/x.h", "class A {\n" + "  int f() { return g({1}); }\n" * 99
                    + "};\n")


class Sources(Rule):
    def test_a_source_is_listed_and_tested(self):
        self.fires(sources, "src/base/x.cc", "", "dead code")
        self.fires(sources, "src/base/x.cc", "", "has no x_test.cc")
        self.silent(sources, "src/base/x.cc", "", **{
            "src/base/x_test.cc": "",
            "src/base/CMakeLists.txt": "weir_library(base SOURCES x.cc TESTS x_test.cc)\n"})
        self.silent(sources, "src/http/h1/x.cc", "", **{
            "src/http/CMakeLists.txt": "weir_library(http SOURCES h1/x.cc)\n",
            EXCEPTIONS_PATH: '[untested]\n"src/http/h1/x.cc" = "by y_test.cc"\n'})

    def test_the_ways_to_list_a_source(self):
        for text in ("weir_fuzz(x LINK weir_http)\n", "f(${CMAKE_CURRENT_SOURCE_DIR}/x.cc)\n",
                     "f(${PROJECT_SOURCE_DIR}/fuzz/x.cc)\n", "f(../fuzz/x.cc)\n"):
            self.silent(sources, "fuzz/x.cc", "", **{"fuzz/CMakeLists.txt": text})

    def test_a_comment_lists_nothing(self):
        self.fires(sources, "fuzz/x.cc", "", "dead code", **{"fuzz/CMakeLists.txt": "# x.cc\n"})

    def test_every_folder_is_reached(self):
        root = {"CMakeLists.txt": "project(weir)\n  add_subdirectory(tests/a)\n"}
        self.silent(sources, "tests/a/CMakeLists.txt", "", **root)
        self.fires(sources, "tests/b/CMakeLists.txt", "", "no add_subdirectory", **root)
        self.silent(sources, "tests/b/CMakeLists.txt", "project(stranger)\n", **root)

    def test_what_is_listed_exists(self):
        self.fires(sources, "src/base/CMakeLists.txt", "f(gone.cc)\n", "gone.cc")

    def test_an_exception_nobody_needs_fails(self):
        tree = Tree({EXCEPTIONS_PATH: '[untested]\n"src/base/gone.cc" = "why"\n'})
        list(sources.check(tree))
        self.assertIn("no longer needed", str(tree.exceptions.unused()[0]))


class PrivateNames(Rule):
    def both(self, first, second, path="src/base/b.cc", around="weir::inline v0"):
        wrap = "namespace {} {{\nnamespace {{\n\n{}\n\n}}  // namespace\n}}\n"
        return findings(private_names, {"src/base/a.cc": wrap.format("weir::inline v0", first),
                                        path: wrap.format(around, second)})

    def test_two_files_of_a_layer(self):
        for text in ("constexpr int kMax = 1;", "constexpr std::array<int, 2> kMax = {1, 2};",
                     "struct kMax {", "enum class kMax : std::uint8_t { kA };", "int kMax(int x) {",
                     "[[nodiscard]] std::vector<int> kMax(", "const char* kMax[] = {",
                     "template <class T>\nT kMax(T x) {", "std::atomic<int> kMax{0};",
                     "thread_local int kMax = 0;", "std::string kMax(std::string_view a = {}) {"):
            found = self.both("constexpr int kMax = 1;", text)
            self.assertEqual(len(found), 1, text)
            self.assertIn("`kMax` is a private name of src/base/a.cc already", found[0])

    def test_what_does_not_meet(self):
        text = "constexpr int kMax = 1;"
        self.assertEqual(self.both(text, text, path="src/base/b_test.cc"), [])
        self.assertEqual(self.both(text, text, path="src/http/b.cc"), [])
        self.assertEqual(self.both(text, text, around="weir::inline v0::h2"), [])
        self.assertEqual(len(self.both(text, text, around="weir")), 1)
        self.assertEqual(self.both("using A = int;", "using A = int;"), [])
        self.assertEqual(len(self.both("using A = int;", "using A = long;")), 1)
        self.assertEqual(len(self.both("using enum A;", "using enum B;")), 1)
        self.assertEqual(self.both("void f() {\n  int kMax = 1;\n}", text), [])
        self.assertEqual(self.both("struct A;\nTEST(B, C) {", "struct A;\nTEST(B, C) {"), [])
        self.assertEqual(self.both("int f(int);\nint f(long);", "using std::f;"), [])


class OneDefinition(Rule):
    def both(self, first, second, path="src/http/b.h", around="weir::inline v0"):
        wrap = "namespace {} {{\n\n{}\n\n}}  // namespace\n"
        return findings(one_definition, {"src/base/a.h": wrap.format("weir::inline v0", first),
                                         path: wrap.format(around, second)})

    def test_two_files_of_any_layer(self):
        for text in ("struct A {\n};", "class alignas(64) A final : public B {", "union A {",
                     "enum class A : std::uint8_t { kA };", "template <class T>\nclass A {",
                     "class [[nodiscard]] A\n    : public B {"):
            found = self.both("class A {\n};", text)
            self.assertEqual(len(found), 1, text)
            self.assertIn("`weir::A` is defined in src/base/a.h already", found[0])

    def test_what_does_not_meet(self):
        text = "struct A {\n};"
        self.assertEqual(self.both(text, text, around="weir::http::inline v0"), [])
        self.assertEqual(self.both(text, text, around="weir::inline v0::h2"), [])
        self.assertEqual(self.both(text, text, path="src/http/b_test.cc"), [])
        self.assertEqual(self.both(text, "namespace {\n" + text + "\n}  // namespace"), [])
        for other in ("struct A;", "enum class A : int;", "template <>\nstruct A<int> {",
                      "struct B::A {", "A make();"):
            self.assertEqual(self.both(text, other), [], other)
        self.assertEqual(len(self.both(text, text, around="weir")), 1)


class Docs(Rule):
    def test_links(self):
        self.fires(docs, "docs/a.md", "[x](b.md)\n", "no such file")
        self.fires(docs, "docs/a.md", "[x](#there)\n# Here\n", "no such heading")
        self.silent(docs, "docs/a.md", "[x](../LICENSE) [y](b.md#two-words) [z](https://e.org/)\n"
                    "`[x](gone)`\n```\n[x](gone)\n```\n[f](guide) [g](guide/)\n",
                    **{"LICENSE": "Apache License", "docs/b.md": "## Two `words`\n",
                       "docs/guide/x.md": ""})

    def test_dev_commands(self):
        dev = {"dev": "case $1 in\n  test) x ;;\n  run) y ;;\nesac\n"}
        self.fires(docs, "docs/a.md", "`./dev tset`\n", "no such command", **dev)
        self.silent(docs, "docs/a.md", "`./dev test`\n", **dev)

    def test_readme_and_license(self):
        self.fires(docs, "README.md", "hello\n", "./dev test")
        self.fires(docs, "LICENSE", "all mine\n", "Apache")


    def test_code_that_is_shown_is_the_code_that_is_compiled(self):
        source = {"examples/a.cc": "int a;\n// [part]\nint b;\n// [end]\n"}
        shown = "<!-- from examples/a.cc{} -->\n```cpp\n{}```\n"
        self.silent(docs, "README.md", "`./dev test` `./dev run`\n" +
                    shown.format("", source["examples/a.cc"]) + shown.format(" [part]", "int b;\n"),
                    **source)
        self.fires(docs, "a.md", shown.format(" [part]", "int c;\n"), "differs", **source)
        self.fires(docs, "a.md", shown.format(" [other]", "int b;\n"), "no part", **source)
        self.fires(docs, "a.md", shown.format("", "int b;\n"), "no such file")

class Tables(Rule):
    METRIC = 'WEIR_METRIC(A,\n   "weir_a", Counter, "1", "", "Help.")\n'
    OPTION = ('WEIR_OPTION("tls", "cert", Text, x, 0, 0, "", Live, "h")\n'
              'WEIR_ROUTE_OPTION("host", Text, x, 0, 0, "", Live, "h")\n')

    def test_a_metric_and_its_page(self):
        table, page = "internal/metrics/metrics.def", "docs/reference/metrics.md"
        self.silent(tables, table, self.METRIC, **{page: "| `weir_a` | counter |\n| `scope` |\n"})
        self.fires(tables, table, self.METRIC, "`weir_a` is not in", **{page: "| `weir_b` |\n"})
        self.fires(tables, table, self.METRIC, "`weir_b` is not in", **{page: "| `weir_b` |\n"})
        self.fires(tables, table, self.METRIC, "is missing")
        self.fires(tables, table, self.METRIC * 2, "twice", **{page: "| `weir_a` |\n"})

    def test_an_option_and_its_page(self):
        table, page = "src/config/options.def", "docs/reference/options.md"
        route = "## [[route]]\n| `host` |\n"
        self.silent(tables, table, self.OPTION,
                    **{page: f"## [tls]\n| `cert` | x |\n{route}## Else\n| `x` |\n"})
        self.fires(tables, table, self.OPTION, "`tls.cert` is not in", **{page: route})
        self.fires(tables, table, self.OPTION, "`tls.gone` is not in",
                   **{page: f"## [tls]\n| `cert` |\n| `gone` |\n{route}"})


class Words(Rule):
    def test_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.fires(words, "src/base/x.cc", f"// {word}: later\n", "finish it")
        self.silent(words, "tools/x.sh", "mktemp /tmp/a.XXXXXX\n")

    def test_paths_of_one_machine(self):
        for word in ("/wo" + "rk/main/x", "/ro" + "ot/x", "/ho" + "me/me"):
            self.fires(words, "docs/a.md", f"see {word}\n", "does not belong")
        self.silent(words, "docs/a.md", "derivation, shared, GET /work/1\n")


if __name__ == "__main__":
    unittest.main()
