#include "path_reading.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"

#include "percent_code.h"

namespace weir::inline v0::gateway {
namespace {

char upper_hex(char c) noexcept {
  return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// Codes as RFC 3986 §6.2.2 compares them, or all of them decoded. In place is allowed.
std::size_t decode(std::string_view path, bool all, char* out) noexcept {
  std::size_t size = 0;
  while (!path.empty()) {
    const std::optional<char> meant = percent_code(path);
    if (!meant) {
      out[size++] = path.front();
      path.remove_prefix(1);
      continue;
    }
    if (all || is_unreserved(*meant)) {
      out[size++] = *meant;
    } else {
      const std::array<char, 3> code = {'%', upper_hex(path[1]), upper_hex(path[2])};
      std::copy(code.begin(), code.end(), out + size);
      size += code.size();
    }
    path.remove_prefix(3);
  }
  return size;
}

/// Without ";…" at the end of each segment.
std::size_t drop_parameters(std::string_view path, char* out) noexcept {
  std::size_t size = 0;
  bool parameter = false;
  for (const char c : path) {
    parameter = c != '/' && (parameter || c == ';');
    if (!parameter) out[size++] = c;
  }
  return size;
}

/// Joins the segments again without "." and empty ones; ".." takes back the one before. A slash at
/// the end stays: it may be the difference between a file and a folder.
std::size_t resolve(std::span<char> path) noexcept {
  const std::string_view text(path.data(), path.size());
  std::size_t size = 0;
  bool ends_with_slash = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at + 1), text.size());
    const std::string_view segment = text.substr(at + 1, end - at - 1);
    at = end;
    ends_with_slash = segment.empty() || segment == "." || segment == "..";
    if (segment == "..") {
      const std::size_t slash = text.substr(0, size).rfind('/');
      size = slash == std::string_view::npos ? 0 : slash;
    }
    if (ends_with_slash) continue;
    path[size++] = '/';
    for (const char c : segment) path[size++] = c;  // to the left, never over what is still read
  }
  if (ends_with_slash || size == 0) path[size++] = '/';
  return size;
}

}  // namespace

bool is_plain_path(std::string_view path) noexcept {
  char before = 0;
  for (const char c : path) {
    if (c == '%' || c == ';' || c == '\\') return false;
    if (before == '/' && (c == '/' || c == '.')) return false;
    before = c;
  }
  return true;
}

bool has_one_reading(std::string_view path) noexcept {
  std::size_t name = 0;  // of this segment: its characters before an encoded ';', and how many of
  std::size_t dots = 0;  // them are dots
  bool named = false;
  bool first = true;
  const auto ends_well = [&](bool last) {
    const bool dot_segment = name == dots && name <= 2 && (name > 0 || named);
    return !dot_segment && (name > 0 || last);
  };
  while (!path.empty()) {
    const std::optional<char> code = percent_code(path);
    const char c = code.value_or(path.front());
    path.remove_prefix(code ? 3 : 1);
    if (c == '\\' || (c == '/' && code) || (c == ';' && !code)) return false;
    if (c == '/') {
      if (!std::exchange(first, false) && !ends_well(false)) return false;
      name = dots = 0;
      named = false;
      continue;
    }
    named = named || c == ';';
    if (named) continue;
    ++name;
    dots += c == '.' ? 1U : 0U;
  }
  return ends_well(true);
}

std::string_view read_path(std::string_view path, const PathReading& reading,
                           std::span<char> out) noexcept {
  WEIR_ASSERT(out.size() >= path.size());
  std::size_t size = path.size();
  if (reading.parameters_dropped) {
    size = drop_parameters(path, out.data());
    path = {out.data(), size};
  }
  size = decode(path, reading.decoded, out.data());
  if (reading.backslash_is_slash) std::replace(out.data(), out.data() + size, '\\', '/');
  if (reading.resolved && size > 0 && out.front() == '/') size = resolve(out.first(size));
  return {out.data(), size};
}

}  // namespace weir::inline v0::gateway
