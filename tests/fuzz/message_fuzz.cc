// The decoders of messages: the first byte of the input chooses the message, the rest are its bytes. A message has only
// one encoding, so what decodes must encode to the very bytes it came from.
#include <algorithm>

#include "base/check.h"
#include "engine/message.h"

namespace pscloud {
namespace {

template <class Message>
void run(Bytes bytes) {
  const auto decoded = decode<Message>(bytes);
  if (!decoded) {
    CHECK(decoded.error().code == Code::kCorrupt);
    return;
  }
  const SharedBuffer again = encode(*decoded);
  CHECK(std::ranges::equal(again->span(), bytes));
  CHECK(decode<Message>(again->span()).has_value());
}

constexpr void (*kDecoders[])(Bytes) = {
    run<JoinMessage>,       run<View>,           run<HeartbeatMessage>, run<LeaveMessage>,      run<TextMessage>,
    run<SyncReplyMessage>,  run<ErrorMessage>,   run<TableSpec>,        run<OfferWorkMessage>,  run<TakenMessage>,
    run<FinishWorkMessage>, run<YesNoMessage>,   run<TallyMessage>,     run<TallyReplyMessage>, run<ScanMessage>,
    run<ScannedRows>,       run<SetRowsMessage>, run<PauseWorkMessage>};

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  pscloud::kDecoders[data[0] % std::size(pscloud::kDecoders)](std::as_bytes(std::span(data, size).subspan(1)));
  return 0;
}
