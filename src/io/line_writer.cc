#include "weir/experimental/io/line_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/experimental/io/fd.h"

namespace weir::inline v0::io {
namespace {

constexpr std::chrono::milliseconds kGather{20};
constexpr int kPollMs = 100;
constexpr int kPatiencePolls = 10;        // one second, while stopping
constexpr std::size_t kPipeBytes = 4096;  // a writable pipe accepts at least this

struct Lines {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;
};

}  // namespace

struct LineWriter::Impl {
  explicit Impl(const Options& given) : options(given) {
    filling.bytes = std::make_unique<char[]>(options.buffer_bytes);
    writing.bytes = std::make_unique<char[]>(options.buffer_bytes);
  }

  /// Thread only. `opened` is empty for the standard descriptors, which must not be closed.
  void use(Fd opened) noexcept {
    owned = std::move(opened);
    fd = owned ? owned.get() : options.path == "-" ? STDOUT_FILENO : STDERR_FILENO;
    struct stat facts {};
    regular = ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
  }

  [[nodiscard]] bool standard() const noexcept {
    return options.path == "-" || options.path == "!";
  }

  [[nodiscard]] Result<Fd, std::errc> open_path() const noexcept {
    constexpr mode_t kMode = 0640;
    // Non-blocking: for a FIFO without a reader, open fails instead of blocking.
    Fd opened(::open(options.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK,
                     kMode));
    if (!opened) return unexpected(static_cast<std::errc>(errno));
    return opened;
  }

  void run() noexcept {
    static_cast<void>(::pthread_setname_np(::pthread_self(), "weir-log"));
    hold_back_broken_pipes();
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return filling.size > 0 || stopping || next; });
      if (!stopping) hurry.wait_for(lock, kGather, [this] { return stopping; });
      Fd opened = std::move(next);
      std::swap(filling, writing);
      const bool last = stopping && writing.size == 0;
      lock.unlock();
      if (opened) use(std::move(opened));
      put_out();
      if (last) return;
      lock.lock();
    }
  }

  /// SIGPIPE goes to the thread that writes; if it is blocked there, write returns EPIPE instead.
  static void hold_back_broken_pipes() noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    static_cast<void>(::pthread_sigmask(SIG_BLOCK, &set, nullptr));
  }

  [[nodiscard]] bool writable() noexcept {
    for (int polls = 0;;) {
      pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
      if (::poll(&one, 1, kPollMs) == 1) return (one.revents & POLLOUT) != 0;
      const std::lock_guard lock(mutex);
      if (stopping && ++polls >= kPatiencePolls) return false;
    }
  }

  void put_out() noexcept {
    std::size_t done = 0;
    while (done < writing.size) {
      std::size_t piece = writing.size - done;
      if (!regular) {
        piece = std::min(piece, kPipeBytes);
        if (!writable()) break;
      }
      const ssize_t n = ::write(fd, writing.bytes.get() + done, piece);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (errno != EINTR && errno != EAGAIN) {
        break;  // a full disk or a closed pipe: these lines are lost, later ones may be written
      }
    }
    if (done < writing.size) count_lost({writing.bytes.get() + done, writing.size - done});
    writing.size = 0;
  }

  void count_lost(std::string_view rest) noexcept {
    const std::lock_guard lock(mutex);
    const auto lines = static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
    stats.dropped += lines;
    stats.written -= std::min(lines, stats.written);
  }

  const Options options;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable hurry;
  Lines filling;  // under mutex
  Lines writing;  // thread only
  Stats stats;
  Fd owned;
  int fd = -1;
  bool regular = false;
  Fd next;  // under mutex; replaces `owned`
  bool stopping = false;
  std::thread thread;
};

Result<std::unique_ptr<LineWriter>, std::errc> LineWriter::open(const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  Fd opened;
  if (!impl->standard()) {
    Result<Fd, std::errc> file = impl->open_path();
    if (!file) return unexpected(file.error());
    opened = std::move(*file);
  }
  impl->use(std::move(opened));
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<LineWriter>(new LineWriter(std::move(impl)));
}

LineWriter::LineWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LineWriter::~LineWriter() {
  stop();
}

bool LineWriter::write(std::string_view line) noexcept {
  bool first = false;
  {
    const std::lock_guard lock(impl_->mutex);
    Lines& lines = impl_->filling;
    if (impl_->stopping || line.size() + 1 > impl_->options.buffer_bytes - lines.size) {
      ++impl_->stats.dropped;
      return false;
    }
    first = lines.size == 0;
    std::memcpy(lines.bytes.get() + lines.size, line.data(), line.size());
    lines.size += line.size();
    lines.bytes[lines.size++] = '\n';
    ++impl_->stats.written;
  }
  if (first) impl_->wake.notify_one();
  return true;
}

Result<void, std::errc> LineWriter::reopen() noexcept {
  if (impl_->standard()) return {};
  Result<Fd, std::errc> file = impl_->open_path();
  if (!file) return unexpected(file.error());
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->next = std::move(*file);
  }
  impl_->wake.notify_one();
  return {};
}

void LineWriter::stop() noexcept {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  impl_->hurry.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
}

LineWriter::Stats LineWriter::stats() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

}  // namespace weir::inline v0::io
