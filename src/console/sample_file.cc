#include "console/sample_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace pscloud {
namespace {

constexpr size_t kSamplePieceBytes = 1 << 20;
constexpr size_t kSampleLineMax = 1000;
// Samples of two tasks may be out of order by so much.
constexpr int64_t kSampleDisorderMs = 60000;

Fd open_samples(const std::string& path) { return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

// The first whole line behind a place.
std::optional<Sample> sample_behind(const Fd& file, uint64_t at, std::string& buffer) {
  buffer.resize(2 * kSampleLineMax);
  const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
  std::string_view text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (true) {
    const size_t begin = text.find('\n');
    if (begin == std::string_view::npos) return std::nullopt;
    text.remove_prefix(begin + 1);
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    if (const auto sample = parse_sample(text.substr(0, end))) return sample;
  }
}

}  // namespace

std::optional<Sample> parse_sample(std::string_view line) {
  if (line.size() > kSampleLineMax) return std::nullopt;
  std::string_view fields[4];
  for (int i = 0; i < 3; ++i) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(0, comma);
    line.remove_prefix(comma + 1);
  }
  fields[3] = line;
  Sample sample{.task = fields[1], .name = fields[2]};
  if (!parse_number<int64_t>(fields[0], 0, INT64_MAX, sample.unix_ms)) return std::nullopt;
  const auto [end, error] = std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), sample.value);
  if (error != std::errc() || end != fields[3].data() + fields[3].size() || !std::isfinite(sample.value)) {
    return std::nullopt;
  }
  return sample;
}

void read_samples(const std::string& path, uint64_t begin, uint64_t end,
                  const std::function<void(const Sample& sample)>& take) {
  const Fd file = open_samples(path);
  if (!file) return;
  // From one byte before: if that ends a line, the first line is whole.
  uint64_t at = begin > 0 ? begin - 1 : 0;
  bool whole = begin == 0;
  std::string buffer(kSamplePieceBytes, '\0');
  size_t kept = 0;  // of a line whose end was not read yet
  while (at < end) {
    const size_t wanted = std::min<uint64_t>(buffer.size() - kept, end - at);
    const ssize_t got = ::pread(file.get(), buffer.data() + kept, wanted, static_cast<off_t>(at));
    if (got <= 0) return;
    at += static_cast<uint64_t>(got);
    std::string_view text(buffer.data(), kept + static_cast<size_t>(got));
    for (size_t line_end = 0; (line_end = text.find('\n')) != std::string_view::npos;) {
      const auto sample = whole ? parse_sample(text.substr(0, line_end)) : std::nullopt;
      if (sample) take(*sample);
      whole = true;
      text.remove_prefix(line_end + 1);
    }
    if (text.size() == buffer.size()) text = {};  // no sample has such a line
    kept = text.size();
    std::copy(text.begin(), text.end(), buffer.begin());
  }
}

uint64_t find_sample_time(const std::string& path, uint64_t bytes, int64_t unix_ms) {
  const Fd file = open_samples(path);
  if (!file) return 0;
  std::string buffer;
  uint64_t low = 0;
  uint64_t high = bytes;
  while (high - low > kSamplePieceBytes / 4) {
    const uint64_t middle = low + (high - low) / 2;
    const auto sample = sample_behind(file, middle, buffer);
    if (sample && sample->unix_ms < unix_ms - kSampleDisorderMs) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace pscloud
