#include "learn/data_settings.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/suggest.h"
#include "learn/config.pb.h"

namespace pscloud {

using PS::LM::DataConfig;

namespace {

ExampleFormat example_format(DataConfig::TextFormat format) {
  switch (format) {
    case DataConfig::DENSE: return ExampleFormat::kDense;
    case DataConfig::SPARSE: return ExampleFormat::kSparse;
    case DataConfig::SPARSE_BINARY: return ExampleFormat::kSparseBinary;
    case DataConfig::ADFEA: return ExampleFormat::kAdfea;
    case DataConfig::LIBSVM: return ExampleFormat::kLibsvm;
    case DataConfig::TERAFEA: return ExampleFormat::kTerafea;
    case DataConfig::VW: return ExampleFormat::kVw;
    case DataConfig::CRITEO: return ExampleFormat::kCriteo;
  }
  CHECK(false, "format {}", static_cast<int>(format));
}

}  // namespace

Result<ExampleFormat> example_format(const DataConfig& data, const char* field) {
  if (data.format() == DataConfig::PROTO) return ExampleFormat::kProto;
  if (data.format() != DataConfig::TEXT) {
    return invalid("{}.format is {}; TEXT and PROTO can be read", field, DataConfig::DataFormat_Name(data.format()));
  }
  return example_format(data.text());
}

Result<ExampleFormat> example_format_named(const std::string& name) {
  DataConfig::TextFormat format;
  if (DataConfig::TextFormat_Parse(name, &format)) return example_format(format);
  const std::string& proto = DataConfig::DataFormat_Name(DataConfig::PROTO);
  if (name == proto) return ExampleFormat::kProto;
  std::vector<std::string> known{proto};
  for (int i = 0; i < DataConfig::TextFormat_descriptor()->value_count(); ++i) {
    known.push_back(DataConfig::TextFormat_descriptor()->value(i)->name());
  }
  const std::string near = suggest(name, known);
  return invalid("no format {}{}; there are {}", name, near.empty() ? "" : fmt::format("; did you mean {}?", near),
                 fmt::join(known, ", "));
}

Result<DataSelection> data_selection(const DataConfig& data, const char* field) {
  if (data.file_size() == 0) return invalid("{}.file is missing: where are the data?", field);
  if (data.has_hdfs()) return invalid("{}.hdfs: HDFS cannot be read; copy the files, or mount it", field);
  DataSelection selection;
  if (data.has_range()) {
    selection.begin = data.range().begin();
    selection.end = data.range().end();
    if (selection.begin >= selection.end) {
      return invalid("{}.range goes from {} to {}: it has no examples", field, selection.begin, selection.end);
    }
  }
  const auto limit = [&](int32_t most, const char* name, uint64_t& to) -> Result<> {
    if (most == 0) return invalid("{}.{} is 0: nothing would be left; -1 is all", field, name);
    if (most > 0) to = static_cast<uint64_t>(most);
    return {};
  };
  TRY(limit(data.max_num_files_per_worker(), "max_num_files_per_worker", selection.files_per_worker_max));
  TRY(limit(data.max_num_lines_per_file(), "max_num_lines_per_file", selection.lines_per_file_max));
  if (data.replica() < 1) return invalid("{}.replica is {}, must be 1 or more", field, data.replica());
  selection.replica = static_cast<uint32_t>(data.replica());
  selection.shuffle = data.shuffle();
  return selection;
}

Result<std::string> cache_prefix_of(const DataConfig& cache, const char* field) {
  if (cache.format() != DataConfig::BIN || cache.file_size() != 1 || cache.file(0).empty()) {
    return invalid("{} must have format: BIN and one file, the beginning of the names", field);
  }
  return cache.file(0);
}

}  // namespace pscloud
