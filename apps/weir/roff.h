#pragma once

#include <string>
#include <string_view>

/// The language of man pages, as far as ours need it.
namespace weir::app::roff {

/// Text that is set as it stands: no character of it is taken for a request or an escape.
[[nodiscard]] std::string text(std::string_view plain);

/// The same, with what stands between two backquotes in bold.
[[nodiscard]] std::string prose(std::string_view plain);

[[nodiscard]] std::string bold(std::string_view plain);
[[nodiscard]] std::string italic(std::string_view plain);

/// A line that is a request, with its argument in quotes: .SH "EXIT STATUS"
[[nodiscard]] std::string request(std::string_view name, std::string_view argument);

/// The first line. The date is that of SOURCE_DATE_EPOCH, so that a package is built the same
/// twice.
[[nodiscard]] std::string title(std::string_view name, int section, std::string_view source_date);

/// Help of a command: indented lines as they stand, others as paragraphs.
[[nodiscard]] std::string block(std::string_view plain);

}  // namespace weir::app::roff
