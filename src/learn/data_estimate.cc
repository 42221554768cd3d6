#include "learn/data_estimate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "data/example_reader.h"
#include "data/key_growth.h"
#include "io/file_pattern.h"
#include "io/watched_store.h"

namespace pscloud {
namespace {

constexpr int kSamplePieces = 16;
constexpr size_t kPackedSampled = 4;        // files, at most
constexpr uint64_t kPackedBytes = 4 << 20;  // of each: what has been read ahead when it ends is little beside it
constexpr size_t kSampleRows = 100;         // at a time

// Bytes as they are stored, and the examples in them.
struct Density {
  uint64_t bytes = 0;
  uint64_t examples = 0;

  double examples_in(double of_bytes) const {
    return bytes == 0 ? 0 : of_bytes * static_cast<double>(examples) / static_cast<double>(bytes);
  }
};

// What is read of files, here and there. Files that can only be read from their beginning are, some of them, and have a
// density of their own.
class DataSampler {
 public:
  DataSampler(FileStore& store, const EstimateOptions& options)
      : store_(store),
        minibatch_(options.minibatch),
        counting_(store,
                  [this](size_t bytes) {
                    bytes_read_ += bytes;
                    return Result<>();
                  }),
        reader_(counting_, make_parser(options.format, options.ignore_groups)) {}

  Result<> sample(std::span<const FileInfo> files, uint64_t bytes, uint64_t sample_bytes) {
    const uint64_t piece = std::min(bytes, sample_bytes) / kSamplePieces + 1;
    size_t at = 0;
    uint64_t before = 0;  // bytes of files before that one
    for (int i = 0; i < kSamplePieces; ++i) {
      const uint64_t place = static_cast<uint64_t>(static_cast<double>(bytes) * i / kSamplePieces);
      while (at + 1 < files.size() && before + files[at].size <= place) before += files[at++].size;
      const FileInfo& file = files[at];
      if (TRY(can_be_cut(store_, file))) {
        const uint64_t begin = place - std::min(place, before);
        TRY(read({file.uri, begin, begin + piece}));
        plain_.bytes += std::min(file.size, begin + piece) - std::min(file.size, begin);
      } else if (packed_files_.insert(file.uri).second && packed_files_.size() <= kPackedSampled) {
        const uint64_t read_before = bytes_read_;
        const bool whole = TRY(read({.uri = file.uri}));
        packed_.bytes += whole ? file.size : bytes_read_ - read_before;
      }
    }
    return {};
  }

  // In a file, on the whole.
  double examples_in(const FileInfo& file) const {
    return (is_packed(file) ? packed_ : plain_).examples_in(static_cast<double>(file.size));
  }
  const KeyGrowth& growth() const { return growth_; }
  bool has_values() const { return has_values_; }
  bool has_groups() const { return has_groups_; }
  // Work items that a file is cut into.
  double parts_of(const FileInfo& file, uint64_t of_part) const {
    return is_packed(file) ? 1 : std::ceil(static_cast<double>(file.size) / static_cast<double>(of_part));
  }
  // Different ones of a minibatch, of no more rows than were told.
  double minibatch_keys(double rows) const {
    if (static_cast<double>(first_ends_.size()) < rows) return growth_.keys_in(rows);
    const size_t count = first_ends_[std::max<size_t>(1, static_cast<size_t>(rows)) - 1];
    std::vector<Key> keys(first_keys_.begin(), first_keys_.begin() + static_cast<ptrdiff_t>(count));
    std::ranges::sort(keys);
    return static_cast<double>(std::ranges::unique(keys).begin() - keys.begin());
  }

 private:
  bool is_packed(const FileInfo& file) const { return packed_files_.contains(file.uri) || plain_.bytes == 0; }

  // False if it was left before its end, as a whole file may be.
  Result<bool> read(const FilePart& part) {
    const bool is_whole = part.end == FilePart{}.end;
    Density& density = is_whole ? packed_ : plain_;
    const uint64_t read_before = bytes_read_;
    TRY(reader_.open(part));
    while (true) {
      const RowSlice rows = TRY(reader_.next(kSampleRows));
      if (rows.rows() == 0) return true;
      density.examples += rows.rows();
      has_values_ = has_values_ || !rows.values.empty();
      has_groups_ = has_groups_ || !rows.groups.empty();
      for (size_t i = 0; i < rows.rows(); ++i) {
        const size_t begin = (i == 0 ? rows.first : rows.ends[i - 1]) - rows.first;
        const std::span<const Key> keys = rows.keys.subspan(begin, rows.ends[i] - rows.first - begin);
        if (first_ends_.size() < minibatch_) {
          first_keys_.insert(first_keys_.end(), keys.begin(), keys.end());
          first_ends_.push_back(first_keys_.size());
        }
        growth_.add(keys);
      }
      if (is_whole && bytes_read_ - read_before > kPackedBytes) return false;
    }
  }

  FileStore& store_;
  const uint32_t minibatch_;
  uint64_t bytes_read_ = 0;
  WatchedStore counting_;
  ExampleReader reader_;
  KeyGrowth growth_;
  std::vector<Key> first_keys_;     // of a minibatch, and
  std::vector<size_t> first_ends_;  // of its rows
  bool has_values_ = false;
  bool has_groups_ = false;
  Density plain_;
  Density packed_;
  std::set<std::string> packed_files_;
};

}  // namespace

Result<DataEstimate> estimate_data(FileStore& store, std::span<const std::string> patterns,
                                   const EstimateOptions& options) {
  const DataSelection& selection = options.selection;
  std::vector<FileInfo> files = TRY(find_files(store, patterns));
  if (selection.files_per_worker_max < files.size()) {
    const uint64_t most = selection.files_per_worker_max * static_cast<uint64_t>(options.workers);
    files.resize(std::min<uint64_t>(files.size(), most));
  }
  DataEstimate estimate{.files = files.size()};
  for (const FileInfo& file : files) estimate.bytes += file.size;
  DataSampler sampler(store, options);
  TRY(sampler.sample(files, estimate.bytes, options.sample_bytes));
  const KeyGrowth& growth = sampler.growth();
  estimate.sampled = growth.rows();
  if (estimate.sampled == 0) return invalid("{}: no examples in the first of these files", files.front().uri);

  double examples = 0;
  for (const FileInfo& file : files) {
    examples += std::min(sampler.examples_in(file), static_cast<double>(selection.lines_per_file_max));
  }
  examples =
      std::min(examples, static_cast<double>(selection.end)) - std::min(examples, static_cast<double>(selection.begin));
  estimate.examples = examples * selection.replica;
  estimate.features = static_cast<double>(growth.features()) / static_cast<double>(estimate.sampled);
  const uint64_t of_part = part_bytes(estimate.bytes, static_cast<uint64_t>(options.workers));
  for (const FileInfo& file : files) estimate.parts += sampler.parts_of(file, of_part) * selection.replica;
  estimate.parts = std::max(1.0, estimate.parts);
  estimate.keys = growth.keys_in(examples);
  estimate.common_keys = growth.keys_in(examples, options.common_above / selection.replica);
  estimate.embedded_keys = growth.keys_in(examples, options.embedded_above / selection.replica);
  const double share = estimate.examples / std::min<double>(options.workers, estimate.parts);
  estimate.worker_keys = growth.keys_in(std::min(examples, share));
  estimate.minibatch = std::clamp<double>(estimate.examples / estimate.parts, 1, options.minibatch);
  estimate.minibatch_keys = std::min(estimate.keys, sampler.minibatch_keys(estimate.minibatch));
  estimate.has_values = sampler.has_values();
  estimate.has_groups = sampler.has_groups();
  return estimate;
}

}  // namespace pscloud
