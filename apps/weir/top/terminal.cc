#include "terminal.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "frame_writer.h"

namespace weir::app::top {
namespace {

// What the handler of a fatal signal needs: it cannot look for an object.
termios g_before{};
volatile std::sig_atomic_t g_is_entered = 0;

constexpr int kFatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void put_back() {
  static_cast<void>(!::write(STDOUT_FILENO, kLeaveScreen.data(), kLeaveScreen.size()));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &g_before);
}

/// Only calls that a handler may make. The signal comes again, with its usual effect.
void on_fatal(int number) {
  if (g_is_entered != 0) put_back();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, number);
  return set;
}

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  int value = 0;
  if (text != nullptr) {
    const std::string_view digits = text;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  return value;
}

}  // namespace

Terminal::~Terminal() {
  leave();
}

bool Terminal::enter() {
  if (::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &g_before) != 0) return false;
  const sigset_t set = watched_signals();
  if (!signals_) {
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = io::Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    for (const int number : kFatal) std::signal(number, on_fatal);
  }
  termios raw = g_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  entered_ = true;
  g_is_entered = 1;
  return write(kEnterScreen);
}

void Terminal::leave() {
  if (!entered_) return;
  entered_ = false;
  g_is_entered = 0;
  put_back();
}

void Terminal::suspend() {
  leave();
  ::raise(SIGSTOP);
  static_cast<void>(enter());
}

bool Terminal::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (put < 0 && errno == EAGAIN) {
      // The terminal shares a non-blocking description with somebody: wait for it a while.
      pollfd one{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      if (::poll(&one, 1, 1000) <= 0) return true;
    } else if (put == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

Terminal::Signal Terminal::next_signal() const {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != sizeof info) return Signal::kNone;
  return info.ssi_signo == SIGWINCH ? Signal::kResized : Signal::kEnd;
}

ScreenSize screen_size() {
  ScreenSize size;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    return {window.ws_col, window.ws_row};
  }
  const int cols = number_in_environment("COLUMNS");
  const int rows = number_in_environment("LINES");
  if (cols > 0) size.cols = cols;
  if (rows > 0) size.rows = rows;
  return size;
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    std::string locale = text;
    for (char& c : locale) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace weir::app::top
