#include "dns_channel.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ares.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <uv.h>

#include "weir/base/assert.h"

#include "loop_impl.h"

namespace weir::inline v0::io {

/// A socket of c-ares, which opens and closes it itself. It ends in the callback of uv_close().
struct DnsChannel::WatchedSocket {
  uv_poll_t poll{};
  DnsChannel* owner = nullptr;
  int fd = -1;
};

namespace {

constexpr Duration kHostsTtl = std::chrono::seconds(5);

struct PendingQuery {
  DnsChannel* channel = nullptr;
  DnsType type = DnsType::kA;
  std::function<void(DnsResult)> done;
};

DnsError error_of(int status) noexcept {
  switch (status) {
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
      return DnsError::kNotFound;
    case ARES_ENODATA:
      return DnsError::kNoRecords;
    case ARES_ETIMEOUT:
    case ARES_EDESTRUCTION:
    case ARES_ECANCELLED:
      return DnsError::kTimeout;
    case ARES_EBADRESP:
      return DnsError::kBadAnswer;
    default:
      return DnsError::kServFail;
  }
}

std::string servers_of(const DnsConfig& config) {
  std::string all;
  for (const std::string& server : config.servers) all += (all.empty() ? "" : ",") + server;
  return all;
}

DnsResult addresses_of(const hostent* host, Family family) {
  if (host == nullptr) return unexpected(DnsError::kNoRecords);
  DnsRecords out;
  out.ttl = kHostsTtl;
  for (char* const* at = host->h_addr_list; *at != nullptr; ++at) {
    Address address;
    address.family = family;
    std::copy_n(*at, family == Family::kV4 ? 4 : 16, address.ip.begin());
    if (std::find(out.addresses.begin(), out.addresses.end(), address) == out.addresses.end()) {
      out.addresses.push_back(address);
    }
  }
  if (out.empty()) return unexpected(DnsError::kNoRecords);
  return out;
}

}  // namespace

struct DnsChannel::Glue {
  /// c-ares wants to know when this socket is readable or writable; neither: it closes it now.
  static void on_interest(void* user, ares_socket_t fd, int readable, int writable) {
    DnsChannel& self = *static_cast<DnsChannel*>(user);
    const auto found = std::find_if(self.sockets_.begin(), self.sockets_.end(),
                                    [fd](const WatchedSocket* one) { return one->fd == fd; });
    const int events = (readable != 0 ? UV_READABLE : 0) | (writable != 0 ? UV_WRITABLE : 0);
    if (events == 0) {
      if (found != self.sockets_.end()) unwatch(self, found);
      return;
    }
    WatchedSocket* socket = found != self.sockets_.end() ? *found : watch(self, fd);
    if (socket == nullptr) return;  // the query times out
    WEIR_ASSERT(uv_poll_start(&socket->poll, events, on_ready) == 0);
  }

  static WatchedSocket* watch(DnsChannel& self, int fd) {
    auto made = std::make_unique<WatchedSocket>();
    if (uv_poll_init(&self.loop_.impl().uv, &made->poll, fd) != 0) return nullptr;
    made->poll.data = made.get();
    made->owner = &self;
    made->fd = fd;
    self.sockets_.push_back(made.get());
    return made.release();
  }

  static void unwatch(DnsChannel& self, std::vector<WatchedSocket*>::iterator at) {
    WatchedSocket* socket = *at;
    self.sockets_.erase(at);
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->poll), [](uv_handle_t* handle) {
      const std::unique_ptr<WatchedSocket> ended(static_cast<WatchedSocket*>(handle->data));
    });
  }

  static void on_ready(uv_poll_t* poll, int status, int events) {
    const WatchedSocket& socket = *static_cast<WatchedSocket*>(poll->data);
    DnsChannel& self = *socket.owner;
    const int fd = socket.fd;
    // After an error c-ares finds it by reading or writing.
    const bool read = status != 0 || (events & UV_READABLE) != 0;
    const bool write = status != 0 || (events & UV_WRITABLE) != 0;
    ares_process_fd(self.channel_, read ? fd : ARES_SOCKET_BAD, write ? fd : ARES_SOCKET_BAD);
    self.set_timer();
  }

  static void on_answer(void* user, int status, int /*timeouts*/, unsigned char* bytes, int size) {
    const std::unique_ptr<PendingQuery> query(static_cast<PendingQuery*>(user));
    DnsChannel& self = *query->channel;
    --self.outstanding_;
    self.timeouts_ = status == ARES_ETIMEOUT ? self.timeouts_ + 1 : 0;
    if (status != ARES_SUCCESS) return query->done(unexpected(error_of(status)));
    const auto message = std::as_bytes(std::span(bytes, static_cast<std::size_t>(size)));
    query->done(parse_dns_answer(
        message, query->type,
        {.records_max = self.config_.records_max, .seed = self.config_.subset_seed}));
  }
};

DnsChannel::DnsChannel(Loop& loop, const DnsConfig& config) : loop_(loop), config_(config) {
  static const int initialised = ares_library_init(ARES_LIB_INIT_ALL);
  WEIR_ASSERT(initialised == ARES_SUCCESS);
  open();
}

DnsChannel::~DnsChannel() {
  close();
}

void DnsChannel::open() {
  ares_options options{};
  options.timeout = static_cast<int>(to_millis(config_.timeout));
  options.tries = static_cast<int>(config_.tries);
  options.sock_state_cb = Glue::on_interest;
  options.sock_state_cb_data = this;
  const int given = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
  if (ares_init_options(&channel_, &options, given) != ARES_SUCCESS) {
    channel_ = nullptr;
    return;
  }
  const std::string servers = servers_of(config_);
  if (!servers.empty() && ares_set_servers_ports_csv(channel_, servers.c_str()) != ARES_SUCCESS) {
    close();
  }
}

void DnsChannel::close() noexcept {
  loop_.cancel(timer_);
  if (channel_ == nullptr) return;
  ares_destroy(channel_);  // ends all queries and closes all sockets
  channel_ = nullptr;
  WEIR_ASSERT(sockets_.empty() && outstanding_ == 0);
}

void DnsChannel::restart() {
  close();
  timeouts_ = 0;
  open();
}

void DnsChannel::query(const Question& question, std::function<void(DnsResult)> done) {
  if (channel_ == nullptr) return done(unexpected(DnsError::kServFail));
  constexpr int kClassInternet = 1;
  auto pending = std::make_unique<PendingQuery>();
  *pending = {.channel = this, .type = question.type, .done = std::move(done)};
  ++outstanding_;
  ares_query(channel_, question.name.c_str(), kClassInternet, static_cast<int>(question.type),
             Glue::on_answer, pending.release());
  set_timer();
}

void DnsChannel::set_timer() {
  timeval wait{};
  if (channel_ == nullptr || ares_timeout(channel_, nullptr, &wait) == nullptr) {
    return loop_.cancel(timer_);
  }
  loop_.arm(timer_, std::chrono::seconds(wait.tv_sec) + std::chrono::microseconds(wait.tv_usec));
}

void DnsChannel::on_timer(TimePoint /*now*/) {
  if (channel_ == nullptr) return;
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  set_timer();
}

DnsAddresses DnsChannel::in_hosts(const std::string& name) {
  const auto look = [&](int family, Family ours) {
    hostent* found = nullptr;
    const bool ok = channel_ != nullptr &&
                    ares_gethostbyname_file(channel_, name.c_str(), family, &found) == ARES_SUCCESS;
    DnsResult result = addresses_of(ok ? found : nullptr, ours);
    if (found != nullptr) ares_free_hostent(found);
    return result;
  };
  return {.v4 = look(AF_INET, Family::kV4), .v6 = look(AF_INET6, Family::kV6)};
}

std::vector<std::string> DnsChannel::search(const std::string& name) {
  if (name.ends_with('.')) return {name};
  std::vector<std::string> domains = config_.search;
  std::ptrdiff_t dots_min = 1;
  ares_options options{};
  int set = 0;
  const bool of_system = config_.servers.empty() && channel_ != nullptr;
  if (of_system && ares_save_options(channel_, &options, &set) == ARES_SUCCESS) {
    domains.assign(options.domains, options.domains + options.ndomains);
    dots_min = options.ndots;
    ares_destroy_options(&options);
  }
  std::vector<std::string> names;
  names.reserve(domains.size() + 1);
  for (const std::string& domain : domains) names.emplace_back(name).append(".").append(domain);
  const bool as_is_first = std::count(name.begin(), name.end(), '.') >= dots_min;
  names.insert(as_is_first ? names.begin() : names.end(), name);
  return names;
}

}  // namespace weir::inline v0::io
