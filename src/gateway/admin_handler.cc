#include "admin_handler.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "weir/experimental/http/field.h"

namespace weir::inline v0::gateway {
namespace {

// A browser must not guess the content type, load other resources, or show it in a frame.
constexpr std::string_view kNoScripts =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::string_view kOwnScripts =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

AdminPage notice(std::uint16_t status, std::string text) {
  AdminPage page{.status = status, .content_type = "text/plain", .body = std::move(text)};
  if (status == 503) page.fields.push_back({.name = "retry-after", .value = "1"});
  return page;
}
AdminPage busy_page() {
  return notice(503, "pages asked for before are not read yet; try again\n");
}
AdminPage too_large_page() {
  return notice(413, "the body may have " + std::to_string(kAdminBodyMax) + " bytes\n");
}
AdminPage watched_page() {
  return notice(503, std::to_string(AdminWatchers::kMost) +
                         " watchers are connected, as many as there may be; close one\n");
}

/// The first value of a field, in any case.
std::string_view field(const ServerRequest& request, std::string_view name) noexcept {
  for (const http::HeaderView& one : *request.headers) {
    if (http::equals_ignore_case(one.name, name)) return one.value;
  }
  return {};
}

/// The process is asked for only where it matters.
AdminPeer peer_of(const ServerStream& stream, std::string_view method) {
  if (stream.peer().family != io::Family::kUnix) return {};
  AdminPeer peer{.unix_socket = true, .process = {}};
  if (method == "POST") peer.process = stream.local_peer();
  return peer;
}

AdminRequest request_of(const ServerStream& stream, const ServerRequest& request) {
  const std::string_view target = request.meta.path;
  const std::size_t mark = std::min(target.find('?'), target.size());
  return {.method = request.meta.method,
          .path = target.substr(0, mark),
          .query = target.substr(std::min(mark + 1, target.size())),
          .host = request.meta.authority,
          .accept = field(request, "accept"),
          .accept_encoding = field(request, "accept-encoding"),
          .if_none_match = field(request, "if-none-match"),
          .last_event_id = field(request, "last-event-id"),
          .origin = field(request, "origin"),
          .content_type = field(request, "content-type"),
          .authorization = field(request, "authorization"),
          .sec_fetch_site = field(request, "sec-fetch-site"),
          .peer = peer_of(stream, request.meta.method)};
}

}  // namespace

/// The texts of the request live here: the views of the first callback end with it.
struct AdminHandler::Asked {
  explicit Asked(const AdminRequest& given) : request(given) {
    for (std::string_view* view : views()) {
      texts.emplace_back(*view);
    }
    std::size_t i = 0;
    for (std::string_view* view : views()) *view = texts[i++];
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  AdminRequest request;
  std::string body;

 private:
  std::array<std::string_view*, 12> views() noexcept {
    return {&request.method,        &request.path,          &request.query,
            &request.host,          &request.accept,        &request.accept_encoding,
            &request.if_none_match, &request.last_event_id, &request.origin,
            &request.content_type,  &request.authorization, &request.sec_fetch_site};
  }
  std::deque<std::string> texts;
};

/// What the stream's request has led to: a body to wait for, a page, or a watcher.
struct AdminHandler::Reply {
  AdminPage page;
  ServerStream* stream = nullptr;
  TimePoint since{};
  std::size_t sent = 0;
  ListHook<Reply> hook;
  Kind kind = Kind::kOther;
  bool begun = false;
  bool listed = false;  // its page is counted
  std::unique_ptr<Asked> asked;
  std::unique_ptr<AdminWatcher> watcher;

  [[nodiscard]] std::string_view body() const noexcept {
    return page.static_body.empty() ? std::string_view(page.body) : page.static_body;
  }
};

struct AdminHandler::Unsent {
  IntrusiveList<Reply, &Reply::hook> replies;
};

AdminHandler::AdminHandler(AdminWork work, const Bounds& bounds, io::Loop& loop)
    : work_(std::move(work)),
      bounds_(bounds),
      loop_(loop),
      second_(io::Timer::Fired::to<&AdminHandler::on_second>(*this)),
      next_second_(loop.now() + work_.interval),
      unsent_(std::make_unique<Unsent>()) {
  loop_.arm(second_, next_second_);
}

AdminHandler::~AdminHandler() {
  loop_.cancel(second_);
}

AdminHandler::Kind AdminHandler::kind_of(std::string_view path) noexcept {
  if (path == "/healthz" || path == "/readyz") return Kind::kHealth;
  if (path == "/live") return Kind::kWatch;
  return path == "/metrics" ? Kind::kMetrics : Kind::kOther;
}

void AdminHandler::on_headers(ServerStream& stream, const ServerRequest& request) {
  auto made = std::make_unique<Reply>();
  Reply& reply = *made;
  reply.stream = &stream;
  reply.since = stream.loop().now();
  stream.user_data = made.release();
  const AdminRequest asked = request_of(stream, request);
  reply.kind = kind_of(asked.path);
  if (asked.method != "POST" || request.body_length == 0U) return answer(stream, asked);
  if (request.body_length.value_or(0) > kAdminBodyMax) {
    return answer_with(stream, too_large_page());
  }
  if (bodies_ >= kBodiesMax) return answer_with(stream, busy_page());
  ++bodies_;
  reply.asked = std::make_unique<Asked>(asked);
}

void AdminHandler::on_body(ServerStream& stream, const http::BodyChunk& chunk) {
  auto* reply = static_cast<Reply*>(stream.user_data);
  if (reply == nullptr || !reply->asked) return;
  if (reply->asked->body.size() + chunk.len <= kAdminBodyMax) {
    reply->asked->body.append(chunk.text());
    return;
  }
  reply->asked.reset();
  --bodies_;
  answer_with(stream, too_large_page());
}

void AdminHandler::on_complete(ServerStream& stream) {
  auto* reply = static_cast<Reply*>(stream.user_data);
  if (reply == nullptr || !reply->asked) return;
  const std::unique_ptr<Asked> asked = std::move(reply->asked);
  --bodies_;
  asked->request.body = asked->body;
  answer(stream, asked->request);
}

void AdminHandler::answer(ServerStream& stream, const AdminRequest& request) {
  Reply& reply = *static_cast<Reply*>(stream.user_data);
  if (!has_place(reply)) return answer_with(stream, busy_page());
  reply.page = work_.pages(request);
  if (reply.page.feed) return watch(reply, request.method == "HEAD");
  if (!has_bytes(reply)) reply.page = busy_page();
  answer_with(stream, std::move(reply.page));
}

void AdminHandler::answer_with(ServerStream& stream, AdminPage page) {
  Reply& reply = *static_cast<Reply*>(stream.user_data);
  reply.page = std::move(page);
  reply.page.body.shrink_to_fit();
  bytes_ += reply.page.body.size();
  unsent_->replies.push_back(reply);
  reply.listed = true;
  ++count_of(reply);
  send(stream);
}

void AdminHandler::watch(Reply& reply, bool head_only) {
  if (watchers_.full()) return answer_with(*reply.stream, watched_page());
  if (head_only) {
    reply.page.feed.reset();
    return answer_with(*reply.stream, std::move(reply.page));
  }
  reply.watcher = std::make_unique<AdminWatcher>(*reply.stream, std::move(reply.page.feed),
                                                 bounds_.message_bytes);
  watchers_.add(*reply.watcher);
  if (!begin(reply) || !reply.watcher->next_message()) cut_watcher(*reply.watcher);
}

void AdminHandler::cut_watcher(const AdminWatcher& watcher) {
  if (watcher.too_long() > 0 && work_.say && !std::exchange(said_too_long_, true)) {
    work_.say("weir: a watcher of the admin endpoint is cut off: its page has " +
              std::to_string(watcher.too_long()) + " bytes, and there is memory for " +
              std::to_string(bounds_.message_bytes) +
              " as the configuration was at the start; a restart lays out more");
  }
  cut(watcher.stream());
}

void AdminHandler::on_second(TimePoint now) {
  if (work_.every_second) work_.every_second(now);
  for (AdminWatcher* slow : watchers_.next_messages()) {
    if (slow != nullptr) cut_watcher(*slow);
  }
  next_second_ += work_.interval;
  if (next_second_ <= now) next_second_ = now + work_.interval;  // missed ones are left out
  loop_.arm(second_, next_second_);
}

std::uint32_t& AdminHandler::count_of(const Reply& reply) noexcept {
  return unsent_of_[static_cast<std::size_t>(reply.kind)];
}

bool AdminHandler::has_place(const Reply& reply) {
  while (count_of(reply) >= kPlaces[static_cast<std::size_t>(reply.kind)]) {
    if (!cut_oldest(reply, true)) return false;
  }
  return true;
}

bool AdminHandler::has_bytes(const Reply& reply) {
  const std::size_t size = reply.page.body.size();
  while (size > kSmallPage && bytes_ + size > bounds_.pages_bytes) {
    if (!cut_oldest(reply, reply.kind == Kind::kOther)) return false;  // metrics cut any
  }
  return true;
}

/// Of its kind, or of all.
bool AdminHandler::cut_oldest(const Reply& newcomer, bool same_kind) {
  for (Reply& old : unsent_->replies) {
    if (same_kind && old.kind != newcomer.kind) continue;
    if (newcomer.since - old.since < kReadGrace) return false;  // all others are younger
    cut(*old.stream);
    return true;
  }
  return false;
}

void AdminHandler::cut(ServerStream& stream) {
  drop(stream);
  stream.reset();
}

bool AdminHandler::begin(Reply& reply) {
  const AdminPage& page = reply.page;
  std::vector<ResponseField> fields = {
      {.name = "content-type", .value = page.content_type},
      {.name = "cache-control", .value = page.cache_control},
      {.name = "x-content-type-options", .value = "nosniff"},
      {.name = "referrer-policy", .value = "no-referrer"},
      {.name = "cross-origin-resource-policy", .value = "same-origin"},
      {.name = "content-security-policy", .value = page.runs_scripts ? kOwnScripts : kNoScripts}};
  for (const AdminField& one : page.fields) {
    fields.push_back({.name = one.name, .value = one.value});
  }
  std::optional<std::uint64_t> length;
  if (!reply.watcher && page.status != 304) length = reply.body().size();
  const bool whole = !reply.watcher && reply.body().empty();
  reply.begun = reply.stream->send_headers(
                    {.status = page.status, .fields = fields, .content_length = length}, whole) ==
                SendResult::kSent;
  return reply.begun;
}

void AdminHandler::send(ServerStream& stream) {
  auto* reply = static_cast<Reply*>(stream.user_data);
  if (reply == nullptr || reply->asked) return;
  if (reply->watcher) return reply->watcher->send();
  if (!reply->begun && !begin(*reply)) return;
  const std::string_view body = reply->body();
  if (reply->sent < body.size()) {
    reply->sent += stream.send_data(body.substr(reply->sent), true);
  }
}

void AdminHandler::drop(ServerStream& stream) {
  const std::unique_ptr<Reply> gone(static_cast<Reply*>(stream.user_data));
  stream.user_data = nullptr;
  if (!gone) return;
  if (gone->asked) --bodies_;
  if (gone->watcher) watchers_.remove(*gone->watcher);
  if (!gone->listed) return;
  bytes_ -= gone->page.body.size();
  --count_of(*gone);
  unsent_->replies.remove(*gone);
}

}  // namespace weir::inline v0::gateway
