#include "local_answer.h"

#include <cstring>

#include "weir/base/assert.h"
#include "weir/experimental/http/grpc.h"
#include "weir/policy/retry_hint.h"

#include "upstream_answer.h"

namespace weir::inline v0::gateway {
constexpr std::array kOwnFacts = {
#define WEIR_X(enumerator, ...) ReasonFacts{__VA_ARGS__},
    WEIR_GATEWAY_REFUSALS(WEIR_X)
#undef WEIR_X
};

const ReasonFacts& GatewayReason::facts() const noexcept {
  return index_ < kReasonCount ? kReasonFacts[index_] : kOwnFacts[index_ - kReasonCount];
}

LocalAnswer answer_for(GatewayReason refusal, std::optional<Duration> retry_after) noexcept {
  const ReasonFacts& facts = refusal.facts();
  return {.status = facts.http,
          .reason = facts.name,
          .sentence = facts.sentence,
          .retry_after = facts.pushback ? retry_after : std::nullopt,
          .request_id = {},
          .grpc = facts.grpc};
}

LocalAnswer answer_for(upstream::UpstreamFailure failure) noexcept {
  const FailureMeaning meaning = meaning_of(failure);
  return {.status = meaning.http,
          .reason = name_of(failure),
          .sentence = meaning.sentence,
          .retry_after = {},
          .request_id = {},
          .grpc = meaning.grpc};
}

bool is_grpc(const ServerRequest& request) noexcept {
  return request.version == HttpVersion::k2 &&
         http::is_grpc_content_type(request.headers->value(http::FieldId::kContentType));
}

AnswerForm wanted_form(const ServerRequest& request) noexcept {
  constexpr std::string_view kJson = "json";
  if (is_grpc(request)) return AnswerForm::kGrpc;
  const std::string_view accept = request.headers->value(http::FieldId::kAccept);
  return accept.find(kJson) == std::string_view::npos ? AnswerForm::kText : AnswerForm::kJson;
}

LocalAnswerText::LocalAnswerText(const LocalAnswer& answer, AnswerForm form) noexcept
    : status_(answer.status) {
  const bool json = form == AnswerForm::kJson;
  const bool grpc = form == AnswerForm::kGrpc;
  add_field("content-type", grpc   ? "application/grpc"
                            : json ? "application/json"
                                   : "text/plain; charset=utf-8");
  add_field("x-weir-reason", answer.reason);
  if (!answer.request_id.empty()) add_field("x-request-id", answer.request_id);
  if (answer.retry_after) {
    retry_ms_ = NumberText(retry_after_millis(*answer.retry_after));
    retry_s_ = NumberText(retry_after_seconds(*answer.retry_after));
    add_field("x-weir-retry-after-ms", retry_ms_.view());
    if (!grpc) add_field("retry-after", retry_s_.view());
  }
  if (grpc) {
    write_grpc(answer);
    return;
  }
  if (status_ == 401) add_field("www-authenticate", "Bearer");  // RFC 9110 §11.6.1
  if (status_ == 405) add_field("allow", "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
  write_body(answer, json);
}

/// The message is "reason: sentence", percent-encoded; it is stored where others have their body.
void LocalAnswerText::write_grpc(const LocalAnswer& answer) noexcept {
  status_ = 200;
  grpc_ = NumberText(answer.grpc);
  add_field("grpc-status", grpc_.view());
  for (const std::string_view part : {answer.reason, std::string_view(": "), answer.sentence}) {
    for (const char c : part) c == '%' ? add_body("%25") : add_body({&c, 1});
  }
  add_field("grpc-message", {body_.data(), body_size_});
  body_size_ = 0;
  if (!answer.retry_after) return;
  add_field("grpc-retry-pushback-ms", retry_ms_.view());
  add_field("grpc-retry-after-ms", retry_ms_.view());
}

// Reasons and sentences are constants of this program: nothing in them needs escaping.
void LocalAnswerText::write_body(const LocalAnswer& answer, bool json) noexcept {
  if (json) {
    add_body(R"({"reason":")");
    add_body(answer.reason);
    add_body(R"(","message":")");
    add_body(answer.sentence);
    add_body("\"");
    if (answer.retry_after) {
      add_body(R"(,"retry_after_ms":)");
      add_body(retry_ms_.view());
    }
    add_body("}\n");
  } else {
    add_body(answer.reason);
    add_body(": ");
    add_body(answer.sentence);
    add_body("\n");
  }
}

void LocalAnswerText::add_field(std::string_view name, std::string_view value) noexcept {
  WEIR_ASSERT(field_count_ < fields_.size());
  fields_[field_count_++] = {.name = name, .value = value};
}

void LocalAnswerText::add_body(std::string_view text) noexcept {
  WEIR_ASSERT(text.size() <= body_.size() - body_size_);
  std::memcpy(body_.data() + body_size_, text.data(), text.size());
  body_size_ += text.size();
}

bool send_local(ServerStream& stream, const LocalAnswer& answer, AnswerForm form) noexcept {
  const LocalAnswerText text(answer, form);
  const SendResult result = form == AnswerForm::kGrpc
                                ? stream.send_headers(text.head(), true)
                                : stream.send_response(text.head(), text.body(), BodyLife::kCall);
  if (result == SendResult::kSent || result == SendResult::kClosed) return true;
  stream.send_503();
  return false;
}

}  // namespace weir::inline v0::gateway
