#include "tls/tls_setup.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weir/experimental/server/tls_check.h"

#include "server/tls/tls_testing.h"

namespace weir::inline v0::inline server {
namespace {

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path =
      testing::TempDir() + "weir_tls_check_" + std::to_string(::getpid()) + name;
  FILE* file = std::fopen(path.c_str(), "w");
  EXPECT_NE(file, nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  return path;
}

io::TlsConfig good() {
  io::TlsConfig config;
  config.certificate = file_with("chain.pem", testkit::localhost().certificate_pem);
  config.private_key = file_with("key.pem", testkit::localhost().key_pem);
  return config;
}

std::string fault_of(const io::TlsConfig& config) {
  const ConfigErrors errors = check_tls_files(config);
  return errors.empty() ? "" : errors[0].key + " " + errors[0].value + " " + errors[0].allowed;
}

TEST(TlsSetup, GoodFilesHaveNoFault) {
  EXPECT_EQ(fault_of(good()), "");
  EXPECT_EQ(fault_of(io::TlsConfig{}), "") << "no TLS, nothing to check";
}

TEST(TlsSetup, FaultsNameKeyFileAndReason) {
  io::TlsConfig missing = good();
  missing.certificate = "/nowhere/chain.pem";
  EXPECT_EQ(fault_of(missing),
            "tls.certificate \"/nowhere/chain.pem\" a PEM file that can be used (No such file or "
            "directory)");
  io::TlsConfig empty = good();
  empty.private_key = file_with("empty.pem", "nothing here\n");
  EXPECT_TRUE(fault_of(empty).starts_with("tls.private_key "));
  io::TlsConfig foreign = good();
  foreign.private_key = file_with("other.pem", testkit::signed_for({"other"}).key_pem);
  EXPECT_TRUE(fault_of(foreign).starts_with("tls.private_key ")) << fault_of(foreign);
  EXPECT_EQ(
      fault_of(foreign),
      "tls.private_key \"" + foreign.private_key +
          "\" the private key of the certificate (it does not hold the key of the certificate "
          "in " +
          foreign.certificate + ")");
  io::TlsConfig more = good();
  more.more_certificates = {"/nowhere/more.pem"};
  EXPECT_TRUE(fault_of(more).starts_with("tls.more_certificates "));
  io::TlsConfig ca = good();
  ca.client_ca = file_with("noca.pem", "no certificate\n");
  EXPECT_TRUE(fault_of(ca).starts_with("tls.client_ca "));
}

TEST(TlsSetup, ACertificateThatExpiredIsAFaultAndNamesTheDate) {
  io::TlsConfig config = good();
  io::CertificateWish wish;
  wish.names = {"old"};
  wish.valid_seconds = -30;
  const io::MadeCertificate old = io::make_certificate(wish);
  config.certificate = file_with("old.pem", old.both());
  config.private_key = config.certificate;
  EXPECT_EQ(fault_of(config).find("tls.certificate \"" + config.certificate +
                                  "\" a certificate that is valid now (it expired on "),
            0U)
      << fault_of(config);
  EXPECT_NE(fault_of(config).find("; renew it)"), std::string::npos);
  io::TlsConfig more = good();
  more.more_certificates = {config.certificate};
  EXPECT_TRUE(fault_of(more).starts_with("tls.more_certificates ")) << fault_of(more);
}

TEST(TlsSetup, ServersDoNotStartWithABadCertificateAndSayWhy) {
  ServerConfig config = testkit::tls_config();
  config.tls.private_key_pem = testkit::signed_for({"other"}).key_pem;
  Server server(config, testkit::answer_path());
  const auto started = server.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().error, io::IoError::kTls);
  EXPECT_NE(started.error().why.find("does not hold the key"), std::string::npos);
}

}  // namespace
}  // namespace weir::inline v0::inline server
