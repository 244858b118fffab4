#include "identity_files.h"

#include <cstddef>
#include <fstream>
#include <iterator>

#include "weir/experimental/gateway/gateway.h"

namespace weir::inline v0::gateway {
namespace {

constexpr std::size_t kKeyBytesMax = std::size_t{64} * 1024;
constexpr std::size_t kTableBytesMax = std::size_t{32} * 1024 * 1024;

struct Source {
  const char* option;
  const std::string& path;
  std::size_t bytes_max;

  [[nodiscard]] std::string fault(const std::string& why) const {
    return std::string(option) + " = \"" + path + "\": " + why;
  }
};

Result<std::string, std::string> read(const Source& source) {
  std::ifstream file(source.path, std::ios::binary);
  std::string text;
  if (file) text.resize(source.bytes_max + 1);
  if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof())) {
    return unexpected(source.fault("cannot be read"));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > source.bytes_max) {
    return unexpected(source.fault("larger than " + std::to_string(source.bytes_max) + " bytes"));
  }
  return text;
}

}  // namespace

Result<IdentityFiles, std::string> read_identity_files(const ActorsConfig& config) {
  IdentityFiles files;
  files.jwt.issuer = config.jwt.issuer;
  files.jwt.audience = config.jwt.audience;
  files.jwt.claim = config.jwt.claim;
  for (const std::string& path : config.jwt.keys) {
    const Source source{.option = "actors.jwt.keys", .path = path, .bytes_max = kKeyBytesMax};
    const auto text = read(source);
    if (!text) return unexpected(text.error());
    const auto key = io::PublicKey::from_pem(*text);
    if (!key) {
      return unexpected(
          source.fault(key.error() +
                       "; wanted is a public key or certificate, PEM: RSA of 2048 to 4096 bits, "
                       "or P-256"));
    }
    files.jwt.keys.push_back(*key);
  }
  if (config.keys_file.empty()) return files;
  const Source source{
      .option = "actors.keys_file", .path = config.keys_file, .bytes_max = kTableBytesMax};
  const auto text = read(source);
  if (!text) return unexpected(text.error());
  auto table = KeyTable::parse(*text);
  if (!table) return unexpected(source.fault(table.error()));
  files.keys = std::move(*table);
  return files;
}

std::string identity_objection(const config::Config& config) {
  const auto files = read_identity_files(config.actors);
  return files ? std::string() : files.error();
}

}  // namespace weir::inline v0::gateway
