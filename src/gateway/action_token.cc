#include "action_token.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base/errno_text.h"
#include "weir/experimental/gateway/gateway.h"
#include "weir/experimental/io/fd.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::string_view kRemedy =
    "; wanted are 256 random bits: openssl rand -hex 32 > FILE, chmod 600 FILE";

bool is_hex(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_base64url(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

/// Why others could know or change it; empty: nobody else.
std::string exposed(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return "is no regular file";
  // A credential of systemd looks like this for a service with a user of its own: the bit of the
  // group is the mask of the ACL that lets this user read it.
  const bool credential = (file.st_mode & 0777U) == 0440 && file.st_uid == 0 && file.st_gid == 0;
  if ((file.st_mode & 077U) != 0 && !credential) {
    return "others than its owner may use it; say chmod 600";
  }
  if (file.st_uid != 0 && file.st_uid != ::geteuid()) {
    return "belongs to another user";
  }
  return {};
}

}  // namespace

Result<ActionToken, std::string> ActionToken::read(const std::string& path) {
  const auto fault = [&](const std::string& why) {
    return unexpected("admin.token_file = \"" + path + "\": " + why);
  };
  const io::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return fault(errno_text(static_cast<std::errc>(errno)) + std::string(kRemedy));
  if (const std::string why = exposed(fd.get()); !why.empty()) return fault(why);
  std::array<char, 128> bytes{};
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  std::string_view text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  const bool hex = text.size() == 64 && std::all_of(text.begin(), text.end(), is_hex);
  const bool base64 = text.size() == 43 && std::all_of(text.begin(), text.end(), is_base64url);
  if (!hex && !base64) return fault("holds no token" + std::string(kRemedy));
  return ActionToken(std::string(text));
}

bool ActionToken::is(std::string_view text) const noexcept {
  if (text.size() != text_.size()) return false;
  volatile unsigned char different = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    different = static_cast<unsigned char>(
        different | (static_cast<unsigned char>(text[i]) ^ static_cast<unsigned char>(text_[i])));
  }
  return different == 0;
}

std::string actions_objection(const config::Config& config) {
  if (config.admin.actions != ActionsMode::kToken) return {};
  const auto token = ActionToken::read(config.admin.token_file);
  return token ? std::string() : token.error();
}

}  // namespace weir::inline v0::gateway
