#include "hedged_attempt.h"

#include <utility>

#include "weir/base/assert.h"

namespace weir::inline v0::grpc {

HedgedAttempt::HedgedAttempt(Setup setup)
    : call(setup.call),
      link(std::move(setup.link)),
      number(setup.number),
      hedge(setup.hedge),
      item(nullptr, this) {
  for (std::size_t i = 0; i < kTags; ++i) {
    tags_[i] = {.kind = static_cast<HedgedTag::Kind>(i), .owner = this};
  }
  item.priority = setup.priority;
  item.bytes = setup.bytes;
}

void* HedgedAttempt::out(HedgedTag::Kind kind) noexcept {
  out_ |= 1U << static_cast<unsigned>(kind);
  return &tags_[static_cast<std::size_t>(kind)];
}

void HedgedAttempt::start(const Request& request, ::grpc::CompletionQueue& queue) {
  context_.set_deadline(request.deadline);
  for (const auto& [key, value] : request.options.metadata) context_.AddMetadata(key, value);
  if (request.options.priority != Priority::kNormal) {
    context_.AddMetadata("x-weir-priority", std::string(name_of(request.options.priority)));
  }
  if (request.attempt > 1) context_.AddMetadata("x-weir-attempt", std::to_string(request.attempt));
  stream_ = link->stub.PrepareCall(&context_, request.method, &queue);
  stream_->StartCall(out(HedgedTag::Kind::kHeaders));
  stream_->Read(&response, out(HedgedTag::Kind::kMessage));
  stream_->Finish(&status, out(HedgedTag::Kind::kStatus));
}

void HedgedAttempt::write(const ::grpc::ByteBuffer& message, TimePoint now) {
  WEIR_ASSERT(!written());
  written_at = now;
  ::grpc::WriteOptions last;
  last.set_last_message();
  stream_->Write(message, last, out(HedgedTag::Kind::kRequest));
}

void HedgedAttempt::returned(HedgedTag::Kind kind, bool ok) {
  WEIR_ASSERT(is_out(kind));
  out_ &= ~(1U << static_cast<unsigned>(kind));
  if (kind == HedgedTag::Kind::kMessage) has_message = ok;
}

void HedgedAttempt::cancel() {
  if (started() && !std::exchange(cancelled_, true)) context_.TryCancel();
}

}  // namespace weir::inline v0::grpc
