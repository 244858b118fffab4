#include "refused_connections.h"

#include <string_view>
#include <utility>

#include "canned_responses.h"
#include "http/h2/frame.h"

namespace weir::inline v0::inline server {
RefusedConnections::RefusedConnections(io::Loop& loop, std::size_t head_bytes_max)
    : loop_(loop),
      head_bytes_max_(head_bytes_max),
      timer_(io::Timer::Fired::to<&RefusedConnections::on_time>(*this)) {
  for (Entry& entry : entries_) {
    entry.owner = this;
    free_.push_back(entry);
  }
}

void RefusedConnections::add(io::Fd fd) {
  Entry* const entry = free_.front();
  if (entry == nullptr || closing_) {
    io::say_and_end(fd.get(), canned_close(503));
    return io::read_off(fd.get());
  }
  if (!entry->socket.open(loop_, std::move(fd), *entry)) return;
  free_.remove(*entry);
  entry->bytes = 0;
  entry->ended_by = entry->of_preface = 0;
  entry->answered = false;
  entry->socket.watch({.read = true, .write = false});
  wait(*entry);
}

void RefusedConnections::wait(Entry& entry) {
  entry.until = loop_.now() + kTime;
  open_.push_back(entry);
  if (!timer_.armed()) loop_.arm(timer_, entry.until);
}

void RefusedConnections::read(Entry& entry) {
  std::array<std::byte, 4096> block;
  const io::IoResult got = entry.socket.read(block);
  if (got) {
    if (!entry.answered && head_ends(entry, std::span(block).first(*got))) answer(entry);
  } else if (got.error() != io::IoError::kAgain) {
    if (!entry.answered && got.error() == io::IoError::kEof) answer(entry);
    end(entry);
  }
}

/// True also if the head is too long.
bool RefusedConnections::head_ends(Entry& entry, std::span<const std::byte> bytes) const noexcept {
  for (const std::byte byte : bytes) {
    const char next = static_cast<char>(byte);
    if (entry.bytes == entry.of_preface && entry.of_preface < http::h2::kClientPreface.size() &&
        next == http::h2::kClientPreface[entry.of_preface]) {
      ++entry.of_preface;
    }
    ++entry.bytes;
    // CR LF CR LF, or bare LFs as lenient clients send them.
    if (next == '\n') {
      if (++entry.ended_by == 2) return true;
    } else if (next != '\r') {
      entry.ended_by = 0;
    }
  }
  return entry.bytes >= head_bytes_max_;
}

void RefusedConnections::answer(Entry& entry) {
  static constexpr auto kGoaway = http::h2::refusal_frames();
  constexpr std::size_t kFirstLine = std::string_view("PRI * HTTP/2.0\r\n").size();
  const bool http2 = entry.of_preface >= kFirstLine;
  const std::string_view text = canned_close(503);
  const auto words = http2 ? std::as_bytes(std::span(kGoaway))
                           : std::as_bytes(std::span(text.data(), text.size()));
  static_cast<void>(entry.socket.write(words));  // a new socket has room for these few bytes
  entry.socket.shutdown_write();
  entry.answered = true;
  open_.remove(entry);
  wait(entry);
}

void RefusedConnections::end(Entry& entry) {
  open_.remove(entry);
  io::read_off(entry.socket.fd());
  entry.socket.close(io::Callback<>::to<&Entry::on_closed>(entry));
}

void RefusedConnections::on_closed(Entry& entry) {
  free_.push_back(entry);
  if (closing_ && free_.size() == kPlaces) std::exchange(done_, {})();
}

void RefusedConnections::on_time(TimePoint now) {
  while (!open_.empty() && open_.front()->until <= now) {
    Entry& oldest = *open_.front();
    oldest.answered ? end(oldest) : answer(oldest);
  }
  if (!open_.empty()) loop_.arm(timer_, open_.front()->until);
}

void RefusedConnections::close(io::Callback<> done) {
  closing_ = true;
  done_ = done;
  loop_.cancel(timer_);
  if (free_.size() == kPlaces) return std::exchange(done_, {})();
  while (Entry* entry = open_.front()) end(*entry);
}

}  // namespace weir::inline v0::inline server
