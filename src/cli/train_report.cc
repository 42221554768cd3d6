#include "cli/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace pscloud {
namespace {

// 1234567 as "1.2M".
std::string short_count(double count) {
  for (const auto& [size, letter] : {std::pair{1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}) {
    if (count >= size) return fmt::format("{:.1f}{}", count / size, letter);
  }
  return fmt::format("{:.0f}", count);
}

}  // namespace

std::string online_table_header() { return " sec  examples     loss     auc  accuracy     |w|_0  updt ratio"; }

std::string online_table_line(const OnlineProgress& progress) {
  return fmt::format("{:4d}  {:.2e}  {:.3e}  {:.4f}    {:.4f}  {:.2e}    {:.2e}",
                     static_cast<int64_t>(progress.seconds), static_cast<double>(progress.examples),
                     progress.mean_loss(), progress.mean_auc(), progress.accuracy(),
                     static_cast<double>(progress.nonzero), progress.update_ratio());
}

std::string live_line(const OnlineProgress& progress) {
  const double rate = static_cast<double>(progress.examples) / std::max(progress.seconds, 1e-9);
  std::string text =
      fmt::format("{} examples, {}/s", short_count(static_cast<double>(progress.examples)), short_count(rate));
  if (progress.bytes == 0 || progress.bytes_all == 0) return text;
  const double share = std::min(1.0, static_cast<double>(progress.bytes) / static_cast<double>(progress.bytes_all));
  return text + fmt::format(", {:.0f}% done, {:.0f} s left", share * 100, progress.seconds * (1 - share) / share);
}

std::string encode_progress(const OnlineProgress& p) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", p.seconds, p.examples, p.loss, p.auc, p.right, p.bad_lines,
                     p.bytes, p.bytes_all, p.nonzero, p.change.change2, p.change.weights2);
}

Result<OnlineProgress> decode_progress(const std::string& line) {
  OnlineProgress p;
  std::istringstream words(line);
  words >> p.seconds >> p.examples >> p.loss >> p.auc >> p.right >> p.bad_lines >> p.bytes >> p.bytes_all >>
      p.nonzero >> p.change.change2 >> p.change.weights2;
  if (!words) return corrupt("a worker said \"{}\"", line);
  return p;
}

}  // namespace pscloud
