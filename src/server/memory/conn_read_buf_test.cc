#include "memory/conn_read_buf.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::inline v0::inline server {
namespace {

constexpr std::size_t kPart = 32 * 1024;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct ConnReadBufTest : testing::Test {
  void SetUp() override { buf.attach(encrypted, decrypted); }
  void put_encrypted(std::string_view text) {
    std::memcpy(buf.encrypted_ptr().data(), text.data(), text.size());
    buf.commit_encrypted(text.size());
  }
  void put_decrypted(std::string_view text) {
    std::memcpy(buf.decrypted_ptr().data(), text.data(), text.size());
    buf.commit_decrypted(text.size());
  }

  std::array<std::byte, kPart> encrypted{};
  std::array<std::byte, kPart> decrypted{};
  ConnReadBuf buf;
};

TEST_F(ConnReadBufTest, InitZeroesCounters) {
  put_encrypted("old");
  buf.attach(encrypted, decrypted);
  EXPECT_EQ(buf.encrypted_part().len(), 0U);
  EXPECT_EQ(buf.encrypted_part().consumed(), 0U);
  EXPECT_EQ(buf.decrypted_part().len(), 0U);
  EXPECT_EQ(buf.decrypted_part().consumed(), 0U);
  EXPECT_TRUE(buf.empty());
}

TEST_F(ConnReadBufTest, EncryptedPtrReturnsBufferStart) {
  EXPECT_EQ(buf.encrypted_ptr().data(), encrypted.data());
  EXPECT_EQ(buf.encrypted_ptr().size(), kPart);
}

TEST_F(ConnReadBufTest, EncryptedPtrAdvancesAfterCommit) {
  buf.commit_encrypted(100);
  EXPECT_EQ(buf.encrypted_ptr().data(), encrypted.data() + 100);
  EXPECT_EQ(buf.encrypted_ptr().size(), kPart - 100);
}

TEST_F(ConnReadBufTest, EncryptedPtrIsNullWhenFull) {
  buf.commit_encrypted(kPart);
  EXPECT_EQ(buf.encrypted_ptr().data(), nullptr);
  EXPECT_TRUE(buf.encrypted_ptr().empty());
  EXPECT_NE(buf.decrypted_ptr().data(), nullptr) << "the other part has room";
}

TEST_F(ConnReadBufTest, CommitUpdatesLen) {
  buf.commit_encrypted(10);
  buf.commit_encrypted(32);
  EXPECT_EQ(buf.encrypted_part().len(), 42U);
  EXPECT_DEATH(buf.commit_encrypted(kPart), "bytes <= memory_.size");
}

TEST_F(ConnReadBufTest, GetEncryptedReturnsCorrectSlice) {
  put_encrypted("client hello");
  EXPECT_EQ(text_of(buf.encrypted()), "client hello");
  EXPECT_EQ(buf.encrypted().data(), encrypted.data()) << "a view, not a copy";
}

TEST_F(ConnReadBufTest, ConsumeEncryptedAdvancesConsumed) {
  put_encrypted("client hello");
  buf.consume_encrypted(7);
  EXPECT_EQ(buf.encrypted_part().consumed(), 7U);
  EXPECT_EQ(text_of(buf.encrypted()), "hello");
  EXPECT_DEATH(buf.consume_encrypted(6), "bytes <= len_ - consumed_");
}

TEST_F(ConnReadBufTest, DecryptedPtrReturnsBufferStart) {
  EXPECT_EQ(buf.decrypted_ptr().data(), decrypted.data());
  EXPECT_EQ(buf.decrypted_ptr().size(), kPart);
}

TEST_F(ConnReadBufTest, DecryptedCommitUpdatesLen) {
  buf.commit_decrypted(17);
  EXPECT_EQ(buf.decrypted_part().len(), 17U);
  EXPECT_EQ(buf.encrypted_part().len(), 0U);
}

TEST_F(ConnReadBufTest, GetDecryptedReturnsCorrectSlice) {
  put_decrypted("GET / HTTP/1.1");
  EXPECT_EQ(text_of(buf.decrypted()), "GET / HTTP/1.1");
  EXPECT_EQ(buf.decrypted().data(), decrypted.data());
}

TEST_F(ConnReadBufTest, ConsumeDecryptedAdvancesConsumed) {
  put_decrypted("GET / HTTP/1.1");
  buf.consume_decrypted(4);
  EXPECT_EQ(buf.decrypted_part().consumed(), 4U);
  EXPECT_EQ(text_of(buf.decrypted()), "/ HTTP/1.1");
}

TEST_F(ConnReadBufTest, CompactMovesUnconsumedToStart) {
  put_encrypted("0123456789");
  put_decrypted("abcdefghij");
  buf.consume_encrypted(6);
  buf.consume_decrypted(8);
  EXPECT_EQ(buf.compact(), 6U);
  EXPECT_EQ(text_of(buf.encrypted()), "6789");
  EXPECT_EQ(buf.encrypted().data(), encrypted.data());
  EXPECT_EQ(text_of(buf.decrypted()), "ij");
  EXPECT_EQ(buf.decrypted().data(), decrypted.data());
}

TEST_F(ConnReadBufTest, CompactResetsCounters) {
  put_decrypted("abcdefghij");
  buf.consume_decrypted(8);
  static_cast<void>(buf.compact());
  EXPECT_EQ(buf.decrypted_part().consumed(), 0U);
  EXPECT_EQ(buf.decrypted_part().len(), 2U);
  EXPECT_EQ(buf.decrypted_ptr().size(), kPart - 2);
  EXPECT_EQ(buf.compact(), 0U) << "nothing to move twice";
}

TEST_F(ConnReadBufTest, FullCycleEncryptDecrypt) {
  // "Decryption" here is a bit flip, piece by piece, like records.
  std::string sent;
  std::string seen;
  for (int round = 0; round < 1000; ++round) {
    const std::string piece(1 + static_cast<std::size_t>(round) * 7 % 900,
                            static_cast<char>('a' + round % 26));
    sent += piece;
    put_encrypted(piece);
    const std::span<const std::byte> raw = buf.encrypted();
    const std::size_t size =
        raw.size() < buf.decrypted_ptr().size() ? raw.size() : buf.decrypted_ptr().size();
    std::span<std::byte> out = buf.decrypted_ptr();
    for (std::size_t i = 0; i < size; ++i) out[i] = raw[i] ^ std::byte{0x20};
    buf.commit_decrypted(size);
    buf.consume_encrypted(size);
    const std::size_t use = buf.decrypted().size() / 2 + 1;
    for (const std::byte b : buf.decrypted().first(use)) {
      seen += static_cast<char>(b ^ std::byte{0x20});
    }
    buf.consume_decrypted(use);
    if (round % 10 == 9) static_cast<void>(buf.compact());
  }
  for (const std::byte b : buf.decrypted()) seen += static_cast<char>(b ^ std::byte{0x20});
  EXPECT_EQ(seen, sent);
}

TEST_F(ConnReadBufTest, PartialConsumeThenMoreData) {
  put_decrypted("hello ");
  buf.consume_decrypted(3);
  put_decrypted("world");
  EXPECT_EQ(text_of(buf.decrypted()), "lo world");
  buf.consume_decrypted(8);
  EXPECT_TRUE(buf.empty());
  EXPECT_EQ(buf.decrypted_ptr().size(), kPart) << "an emptied part is whole again";
}

TEST_F(ConnReadBufTest, DetachNeedsAnEmptyBuffer) {
  put_decrypted("x");
  EXPECT_DEATH(buf.detach(), "empty");
  buf.consume_decrypted(1);
  buf.detach();
  EXPECT_FALSE(buf.attached());
  EXPECT_EQ(buf.decrypted_ptr().data(), nullptr);
}

}  // namespace
}  // namespace weir::inline v0::inline server
