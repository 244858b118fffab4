#include "config/toml_reader.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>
#include <vector>

namespace weir::inline v0 {
namespace {

/// Thrown where the TOML library finds itself wrong: toml++ 3.3 asserts on some malformed keys, and
/// an operator's file must never end the process. Caught below; with NDEBUG the library would even
/// tell the compiler to assume that it cannot happen.
struct LibraryFault {};
[[noreturn]] void library_fault() {
  throw LibraryFault();
}

}  // namespace
}  // namespace weir::inline v0

#undef NDEBUG
#define TOML_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::weir::library_fault())
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

namespace weir::inline v0 {
namespace {

int line_of(const toml::node& node) {
  return static_cast<int>(node.source().begin.line);
}

bool is_array_of_tables(const toml::node& node) {
  const toml::array* array = node.as_array();
  return array != nullptr && !array->empty() && array->is_homogeneous<toml::table>();
}

RawValue raw_value(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return {flag->get()};
  if (const auto* integer = node.as_integer()) return {integer->get()};
  if (const auto* real = node.as_floating_point()) return {real->get()};
  if (const auto* text = node.as_string()) return {text->get()};
  if (const auto* array = node.as_array()) {
    RawValue::List list;
    for (const toml::node& item : *array) list.push_back(raw_value(item));
    return {std::move(list)};
  }
  if (node.is_table()) return {RawOther{"a table"}};
  return {RawOther{"a date or time"}};
}

constexpr int kDepthMax = 4;
constexpr int kKeyPartsMax = 64;

/// The line of a key like a.b.c… with more parts than anybody needs; 0 when there is none. The
/// library builds and destroys nested tables recursively, so their depth must be bounded before.
int line_of_endless_key(std::string_view text) {
  int line = 1;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {  // a quoted part, if it ends on this line
      const std::size_t end = text.find_first_of(c == '"' ? "\"\n" : "'\n", i + 1);
      if (end != std::string_view::npos && text[end] == c) i = end;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool part = std::isalnum(byte) != 0 || c == '_' || c == '-' || c == ' ' || c == '\t';
    if (c == '\n') ++line;
    if (c == '.' && ++dots > kKeyPartsMax) return line;
    if (c != '.' && !part) dots = 0;
  }
  return 0;
}

class Walker {
 public:
  explicit Walker(RawConfig& out) : out_(out) {}

  /// The contents of one table. `section` is empty for the file itself. No section has more than
  /// two parts: what is deeper stands in one that is refused already.
  void table(const toml::table& table, const std::string& section, int index) {
    if (std::count(section.begin(), section.end(), '.') > kDepthMax) return;
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::string inner = section.empty() ? name : section + "." + name;
      if (const toml::table* child = node.as_table()) {
        out_.sections.push_back({inner, -1, line_of(node)});
        this->table(*child, inner, index);
      } else if (is_array_of_tables(node)) {
        array_of_tables(*node.as_array(), inner);
      } else {
        const auto key_line = static_cast<int>(key.source().begin.line);
        out_.entries.push_back({section, index, name, raw_value(node), key_line});
      }
    }
  }

 private:
  void array_of_tables(const toml::array& array, const std::string& section) {
    int index = 0;
    for (const toml::node& item : array) {
      out_.sections.push_back({section, index, line_of(item)});
      table(*item.as_table(), section, index++);
    }
  }

  RawConfig& out_;
};

RawConfig failed(std::string why, const std::string& file, int line) {
  RawConfig out;
  out.syntax.push_back({"", std::move(why), "TOML", file, line});
  return out;
}

RawConfig read(std::string_view text, const std::string& file) {
  if (const int line = line_of_endless_key(text); line > 0) {
    return failed("a key with more than 64 parts", file, line);
  }
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return failed(std::string(error.description()), file,
                  static_cast<int>(error.source().begin.line));
  }
  RawConfig out;
  Walker(out).table(parsed.table(), "", -1);
  // The library sorts by name; people read from top to bottom.
  const auto by_line = [](const auto& a, const auto& b) { return a.line < b.line; };
  std::stable_sort(out.sections.begin(), out.sections.end(), by_line);
  std::stable_sort(out.entries.begin(), out.entries.end(), by_line);
  return out;
}

bool faults(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
    return false;
  } catch (const LibraryFault&) {
    return true;
  }
}

/// The library reads from top to bottom, so the shortest run of first lines that faults ends with
/// the line to blame.
int line_of_fault(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ends.push_back(i + 1);
  }
  const auto blamed = std::partition_point(
      ends.begin(), ends.end(), [&](std::size_t end) { return !faults(text.substr(0, end)); });
  return static_cast<int>(blamed - ends.begin()) + 1;
}

}  // namespace

RawConfig read_toml(std::string_view text, const std::string& file) {
  try {
    return read(text, file);
  } catch (const LibraryFault&) {
    return failed("a key or section that cannot be read", file, line_of_fault(text));
  }
}

}  // namespace weir::inline v0
