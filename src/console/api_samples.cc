#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "console/api_parts.h"
#include "console/reply.h"

namespace pscloud {
namespace {

// More than so much of a file is not read for one answer: pieces of it are, evenly spread.
constexpr uint64_t kSamplesReadMax = 32 << 20;
constexpr uint64_t kSamplePieces = 256;
constexpr size_t kSeriesMax = 4000;
constexpr int64_t kPointsShown = 2000;
constexpr int64_t kPointsShownMax = 20000;

struct Point {
  int64_t unix_ms = 0;
  double value = 0;
};
using SeriesName = std::pair<std::string, std::string>;  // task, name

class SeriesSet {
 public:
  void take(const Sample& sample) {
    name_.first = sample.task;
    name_.second = sample.name;
    auto found = series_.find(name_);
    if (found == series_.end()) {
      if (series_.size() >= kSeriesMax) return;
      found = series_.emplace(name_, std::vector<Point>()).first;
    }
    found->second.push_back({sample.unix_ms, sample.value});
  }

  // Each with `max` points at most, evenly chosen, the first and the last among them; all in the order of time.
  void write(JsonWriter& json, size_t max) const {
    struct Row {
      const SeriesName* series;
      Point point;
    };
    std::vector<Row> rows;
    for (const auto& [name, points] : series_) {
      const size_t count = std::min(points.size(), max);
      for (size_t i = 0; i < count; ++i) {
        const size_t at = count == 1 ? points.size() - 1 : i * (points.size() - 1) / (count - 1);
        rows.push_back({&name, points[at]});
      }
    }
    std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.point.unix_ms; });
    for (const Row& row : rows) {
      json.begin_array().value(row.point.unix_ms).value(row.series->first).value(row.series->second);
      json.value(row.point.value).end_array();
    }
  }

 private:
  std::map<SeriesName, std::vector<Point>> series_;
  SeriesName name_;  // kept, so that a look-up costs no memory
};

}  // namespace

HttpReply samples_reply(const RunFolder& folder, const HttpCall& call) {
  const auto after = number_of(call, "after_unix_ms", 0, 0, INT64_MAX);
  if (!after) return error_reply(after.error());
  const auto max = number_of(call, "max", kPointsShown, 1, kPointsShownMax);
  if (!max) return error_reply(max.error());
  const std::string path = folder.path(kSampleFile);
  struct stat info {};
  const uint64_t end = ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  const uint64_t begin = *after > 0 ? find_sample_time(path, end, *after) : 0;
  SeriesSet series;
  const auto take = [&](const Sample& sample) {
    if (sample.unix_ms > *after) series.take(sample);
  };
  if (end - begin <= kSamplesReadMax) {
    read_samples(path, begin, end, take);
  } else {
    // The last piece ends at the end: what is newest is always told.
    const uint64_t piece = kSamplesReadMax / kSamplePieces;
    for (uint64_t i = 0; i < kSamplePieces; ++i) {
      const uint64_t at = begin + (end - begin - piece) / (kSamplePieces - 1) * i;
      read_samples(path, at, i + 1 == kSamplePieces ? end : at + piece, take);
    }
  }
  JsonWriter json;
  json.begin_object().key("columns").begin_array().value("unix_ms").value("task").value("name").value("value");
  json.end_array().key("rows").begin_array();
  series.write(json, static_cast<size_t>(*max));
  return json_reply(json.end_array().end_object().text());
}

}  // namespace pscloud
