#include "learn/read_meter.h"

#include <utility>
#include <vector>

namespace pscloud {
namespace {

constexpr std::chrono::seconds kBetweenTelling{1};

// Places in the tally.
enum ReadPlace : uint32_t { kReadExamples, kReadBytes, kReadTold, kReadPlaces };

}  // namespace

ReadMeter::ReadMeter(Worker& worker, std::string name, uint64_t bytes_all, ShowReading show, const Clock& clock)
    : worker_(worker),
      name_(std::move(name)),
      bytes_all_(bytes_all),
      show_(std::move(show)),
      clock_(clock),
      start_(clock.now()),
      next_(start_),
      told_since_(start_ - kBetweenTelling) {}

Result<> ReadMeter::note(uint64_t examples, uint64_t stored_bytes) {
  if (!show_) return {};
  unreported_ += examples;
  const Time now = clock_.now();
  if (now < next_) return {};
  next_ = now + kBetweenTelling;
  const std::vector<Addend> mine{
      {kReadExamples, static_cast<double>(std::exchange(unreported_, 0))},
      {kReadBytes, static_cast<double>(stored_bytes - std::exchange(bytes_reported_, stored_bytes))}};
  const std::vector<double> sums = TRY(worker_.tally(name_, mine, 0, kReadPlaces));
  if (sums[kReadTold] != told_) {
    told_ = sums[kReadTold];
    told_since_ = now;
    return {};
  }
  if (now - told_since_ < kBetweenTelling) return {};
  // Nobody has told it for long enough. Of those who see that at the same time, the first to count itself does.
  const std::vector<Addend> one{{kReadTold, 1}};
  const double before = std::exchange(told_, TRY(worker_.tally(name_, one, kReadTold, 1)).front());
  told_since_ = now;
  if (told_ != before + 1) return {};
  show_({.seconds = in_seconds(now - start_),
         .examples = static_cast<uint64_t>(sums[kReadExamples]),
         .bytes = static_cast<uint64_t>(sums[kReadBytes]),
         .bytes_all = bytes_all_});
  return {};
}

}  // namespace pscloud
