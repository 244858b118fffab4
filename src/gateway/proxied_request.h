#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/intrusive_list.h"
#include "weir/base/time.h"
#include "weir/control/admission_controller.h"
#include "weir/control/admission_request.h"
#include "weir/control/permit.h"
#include "weir/control/ticket.h"
#include "weir/control/waiter.h"
#include "weir/experimental/io/loop.h"
#include "weir/experimental/server/handler.h"
#include "weir/experimental/server/stream.h"
#include "weir/policy/priority.h"
#include "weir/policy/slow_upload.h"

#include "counters.h"
#include "local_answer.h"
#include "policy/recorded_decision.h"
#include "request_log.h"
#include "tunnel.h"
#include "upstream/call.h"
#include "used_rules.h"

namespace weir::inline v0::gateway {

class GatewayLoop;
class LoopUpstream;
struct UpstreamPlace;
struct Caller;
class RequestId;
struct Intent;
struct Route;

/// One request that the gateway forwards, from its head to the last byte of its response.
///
///   state      meaning                                           ends with
///   kJudged    admission decides                                 the states below, or answered
///   kReceiving its body is received first; it has a ticket       its last byte, or disconnect
///   kWaiting   in the waiting room; its body is not read         grant, refusal, or disconnect
///   kActive    a call to the upstream                            its end, on either side
///   kLeaving   the client disconnected while a grant is posted   collecting that permit
///   kLingering the client left; the upstream works on it         the answer's head, or kLingerMax
///
/// A body that is received first is complete when the request asks for its place, and is sent as a
/// whole. Bytes of others are read from the client only as fast as the upstream accepts them, and
/// the other way round. Bytes that are held are charged to the ticket or the permit.
/// Thread-safety: its loop's thread; the waiter's callback only posts a task.
/// Lifetime: a place in the loop's slab; ends itself by GatewayLoop::release().
class ProxiedRequest final : public Handler, public upstream::CallEvents {
 public:
  ProxiedRequest(GatewayLoop& home, ServerStream& stream, LoopUpstream& to) noexcept;
  ProxiedRequest(const ProxiedRequest&) = delete;
  ProxiedRequest& operator=(const ProxiedRequest&) = delete;
  ~ProxiedRequest() override;

  /// Asks admission, then sends, waits or answers. The object may be destroyed when it returns.
  void begin(const ServerRequest& request, const Route& route, const Caller& caller,
             const Intent& intent);

  // For UploadList and ReceivedFirstList.
  /// Ends the request if judge_upload() finds its client too slow. True: this object is destroyed.
  bool yield_if_slow(const SlowUploadRule& rule);
  /// Ends the request for others that find no place. This object is destroyed.
  void yield_place();
  [[nodiscard]] UploadState upload_state() const noexcept;
  /// Memory that its body needs if it is received first.
  [[nodiscard]] std::uint64_t received_first_bytes() const noexcept {
    return received_first_bytes_;
  }
  /// Its place is held for its client alone: more of the body is awaited, and nothing else.
  [[nodiscard]] bool waits_for_its_client() const noexcept;
  /// Whether its body is to be read after its admission, while it holds a place of the limit.
  [[nodiscard]] bool uploads() const noexcept {
    return streams_body() && !upgrade_ && !stream_route_;
  }
  [[nodiscard]] bool grpc() const noexcept { return form_ == AnswerForm::kGrpc; }
  [[nodiscard]] Priority priority() const noexcept { return priority_; }
  [[nodiscard]] std::uint64_t source() const noexcept { return source_; }
  [[nodiscard]] UpstreamPlace& place() const noexcept;
  [[nodiscard]] bool waits_for_a_permit() const noexcept {
    return waiter_.state() == Waiter::State::kWaiting;
  }
  [[nodiscard]] ScopeId scope() const noexcept;
  ListHook<ProxiedRequest> upload_hook;   // while its body is not complete, if it has a permit
  ListHook<ProxiedRequest> receive_hook;  // the same, if its body is received first

  // For GatewayLoop, if it is a tunnel.
  /// The gateway drains: ends both directions between two frames, with a Close frame.
  void go_away() noexcept;
  /// The time for that is over.
  void cut_tunnel() noexcept;
  ListHook<ProxiedRequest> tunnel_hook;

  void on_headers(ServerStream& stream, const ServerRequest& request) override;
  void on_body(ServerStream& stream, const http::BodyChunk& chunk) override;
  void on_trailers(ServerStream& stream, const http::HeaderList& trailers) override;
  void on_writable(ServerStream& stream) override;
  void on_finished(ServerStream& stream) override;
  void on_abort(ServerStream& stream, CloseReason reason) override;

 private:
  enum class State : std::uint8_t { kJudged, kReceiving, kWaiting, kActive, kLeaving, kLingering };

  bool on_upstream_interim(const upstream::ResponseHead& head) override;
  bool on_upstream_head(const upstream::ResponseHead& head) override;
  std::size_t on_upstream_body(std::string_view bytes) override;
  bool on_upstream_trailers(const http::HeaderList& trailers) override;
  void on_upstream_complete() override;
  void on_upstream_received() override;
  void on_upstream_blocked() override;
  void on_upstream_writable() override;
  void on_upstream_failed(upstream::UpstreamFailure failure) override;
  void on_upstream_held() override;
  bool may_leave_hold() override;

  // Before the call to the upstream.
  void take_note(const ServerRequest& request, const Caller& caller, const Actor& actor);
  void note_limit() noexcept;  // the one in force when it was decided about
  void begin_record(const AdmissionRequest& ask) noexcept;
  /// The numbers when it was decided.
  void record_numbers() noexcept;
  /// Once, at its end.
  void record(policy::DecisionEnd end, GatewayReason reason) noexcept;
  [[nodiscard]] Reason enter(const AdmissionRequest& ask);
  [[nodiscard]] bool may_ask();
  [[nodiscard]] Reason settle(Entered entered);
  [[nodiscard]] bool write_head(const ServerRequest& request, const Caller& caller,
                                const Intent& intent, const RequestId& id);
  void proceed();
  void on_ready();
  void launch();
  void begin_stream() noexcept;

  // A body that is received first.
  [[nodiscard]] bool may_receive_first(const ServerRequest& request,
                                       const Route& route) const noexcept;
  [[nodiscard]] Reason take_ticket(const AdmissionRequest& ask);
  void receive_first(std::uint64_t length);
  void receive(const http::BodyChunk& chunk);
  void use_ticket();
  /// Its body is forwarded as it comes; that of a tunnel has no end.
  [[nodiscard]] bool streams_body() const noexcept { return has_body_ && !received_first_; }

  // Ways to end.
  void refuse(GatewayReason refusal);
  void fail(upstream::UpstreamFailure failure);
  [[nodiscard]] Duration advised_wait() const noexcept;
  void answer(LocalAnswer answer);
  /// Tells a gRPC client in trailers how a response ended that had begun. False: they cannot be
  /// sent now.
  [[nodiscard]] bool end_with_status(const LocalAnswer& answer);
  /// Trailers: the first `before` fields in the loop's storage, then those of the answer.
  [[nodiscard]] SendResult send_status(const LocalAnswer& answer, std::size_t before);
  LocalAnswer note_missing_status() noexcept;
  /// Answers for an endpoint whose answer is not gRPC.
  void translate(const upstream::ResponseHead& head);
  void leave();
  [[nodiscard]] bool may_linger(CloseReason reason) const noexcept;
  void linger() noexcept;
  void end_linger(Outcome outcome) noexcept;
  void finish_permit(Outcome outcome) noexcept;
  void end_service(Outcome outcome) noexcept;
  void name_endpoint() noexcept;
  void time_sample() noexcept;
  struct Ending {
    std::uint16_t status = 0;
    std::string_view reason{};
    std::string_view aborted{};
  };
  void log(const Ending& ending) noexcept;

  // A request that becomes a tunnel (proxied_tunnel.cc).
  /// Whether the answer to a request for a tunnel may be forwarded.
  [[nodiscard]] bool is_proper_switch(const upstream::ResponseHead& head) const noexcept;
  void begin_tunnel();
  void end_tunnel(TunnelEnd by) noexcept;
  void pass_to_upstream(std::string_view bytes, bool last);
  [[nodiscard]] std::size_t pass_to_client(std::string_view bytes);
  void say_goodbye() noexcept;

  void end_upload() noexcept;
  void head_taken(const upstream::ResponseHead& head);
  /// Charges the bytes that count now. False: they exceed a budget, and the request is ending.
  bool charge() noexcept;
  [[nodiscard]] std::uint64_t bytes_to_charge() const noexcept;
  void over_budget(Reason reason);

  GatewayLoop& home_;
  LoopUpstream& to_;
  ServerStream* stream_;
  RulesUse rules_;
  const Route* route_ = nullptr;
  Ticket ticket_;
  Permit permit_;
  Waiter waiter_;
  io::Task ready_;
  upstream::Call call_;
  upstream::Call::Start start_;
  std::uint64_t source_ = 0;  // a keyed hash of the client's address
  TimePoint received_at_{};
  TimePoint asked_at_{};
  TimePoint reading_since_{};  // its body
  Duration waited_{};
  Duration upstream_time_{};
  std::uint64_t max_body_ = 0;
  std::uint64_t reserved_ = 0;  // announced bytes of the request's body
  std::uint64_t received_first_bytes_ = 0;
  std::uint64_t untaken_ = 0;  // response bytes that did not fit the client's connection
  std::uint16_t status_ = 0;   // of the upstream's response
  State state_ = State::kJudged;
  Priority priority_ = Priority::kNormal;
  Outcome outcome_ = Outcome::kIgnored;
  upstream::UpstreamFailure failure_ = upstream::UpstreamFailure::kNone;
  std::optional<EndedBy> slow_;     // the slow side, if a timeout ended it
  Reason cut_ = Reason::kAdmitted;  // the budget that ended it after its response had begun
  AnswerForm form_ = AnswerForm::kText;
  bool has_body_ = false;
  bool upgrade_ = false;
  bool stream_route_ = false;    // the route says that it is a stream
  bool received_first_ = false;  // its body, before it asked for a place
  bool takes_interim_ = false;   // the client understands 1xx
  bool announced_ = false;       // the whole body counts, not only the bytes held
  bool request_ended_ = false;
  bool response_ended_ = false;
  bool no_status_ = false;  // the answer to a gRPC call ended without one
  Tunnel tunnel_;
  bool recorded_ = false;
  bool granted_ = false;  // it had a permit
  policy::RecordedDecision decision_;
  RequestNote note_;
};

}  // namespace weir::inline v0::gateway
