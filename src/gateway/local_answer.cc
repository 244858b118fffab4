#include "local_answer.h"

#include <cstring>

#include "weir/base/assert.h"
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
          .request_id = {}};
}

LocalAnswer answer_for(upstream::UpstreamFailure failure) noexcept {
  const FailureMeaning meaning = meaning_of(failure);
  return {.status = meaning.http,
          .reason = name_of(failure),
          .sentence = meaning.sentence,
          .retry_after = {},
          .request_id = {}};
}

AnswerForm wanted_form(const http::HeaderList& headers) noexcept {
  constexpr std::string_view kJson = "json";
  const std::string_view accept = headers.value(http::FieldId::kAccept);
  return accept.find(kJson) == std::string_view::npos ? AnswerForm::kText : AnswerForm::kJson;
}

LocalAnswerText::LocalAnswerText(const LocalAnswer& answer, AnswerForm form) noexcept
    : status_(answer.status) {
  const bool json = form == AnswerForm::kJson;
  add_field("content-type", json ? "application/json" : "text/plain; charset=utf-8");
  add_field("x-weir-reason", answer.reason);
  if (!answer.request_id.empty()) add_field("x-request-id", answer.request_id);
  std::string_view retry_ms;
  if (answer.retry_after) {
    retry_ms_ = NumberText(retry_after_millis(*answer.retry_after));
    retry_s_ = NumberText(retry_after_seconds(*answer.retry_after));
    retry_ms = retry_ms_.view();
    add_field("x-weir-retry-after-ms", retry_ms);
    add_field("retry-after", retry_s_.view());
  }
  if (status_ == 405) add_field("allow", "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
  // Reasons and sentences are constants of this program: nothing in them needs escaping.
  if (json) {
    add_body(R"({"reason":")");
    add_body(answer.reason);
    add_body(R"(","message":")");
    add_body(answer.sentence);
    add_body("\"");
    if (!retry_ms.empty()) {
      add_body(R"(,"retry_after_ms":)");
      add_body(retry_ms);
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
  const SendResult result = stream.send_response(text.head(), text.body(), BodyLife::kCall);
  if (result == SendResult::kSent || result == SendResult::kClosed) return true;
  stream.send_503();
  return false;
}

}  // namespace weir::inline v0::gateway
