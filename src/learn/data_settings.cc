#include "learn/data_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/suggest.h"
#include "data/file_part.h"
#include "learn/config.pb.h"

namespace pscloud {

using PS::LM::DataConfig;

namespace {
constexpr uint64_t kPartBytesMax = 64 << 20;
constexpr uint64_t kPartBytesMin = 1 << 20;
constexpr uint64_t kPartsWanted = 64;
constexpr uint64_t kPartsMax = 100000;
}  // namespace

namespace {

TextFormat text_format(DataConfig::TextFormat format) {
  switch (format) {
    case DataConfig::DENSE: return TextFormat::kDense;
    case DataConfig::SPARSE: return TextFormat::kSparse;
    case DataConfig::SPARSE_BINARY: return TextFormat::kSparseBinary;
    case DataConfig::ADFEA: return TextFormat::kAdfea;
    case DataConfig::LIBSVM: return TextFormat::kLibsvm;
    case DataConfig::TERAFEA: return TextFormat::kTerafea;
    case DataConfig::VW: return TextFormat::kVw;
    case DataConfig::CRITEO: return TextFormat::kCriteo;
  }
  CHECK(false, "text format {}", static_cast<int>(format));
}

}  // namespace

Result<TextFormat> text_format(const DataConfig& data, const char* field) {
  if (data.format() == DataConfig::PROTO) return TextFormat::kProto;
  if (data.format() != DataConfig::TEXT) {
    return invalid("{}.format is {}; TEXT and PROTO can be read", field, DataConfig::DataFormat_Name(data.format()));
  }
  return text_format(data.text());
}

Result<TextFormat> text_format_named(const std::string& name) {
  DataConfig::TextFormat format;
  if (DataConfig::TextFormat_Parse(name, &format)) return text_format(format);
  const std::string& proto = DataConfig::DataFormat_Name(DataConfig::PROTO);
  if (name == proto) return TextFormat::kProto;
  std::vector<std::string> known{proto};
  for (int i = 0; i < DataConfig::TextFormat_descriptor()->value_count(); ++i) {
    known.push_back(DataConfig::TextFormat_descriptor()->value(i)->name());
  }
  const std::string near = suggest(name, known);
  return invalid("no format {}{}; there are {}", name, near.empty() ? "" : fmt::format("; did you mean {}?", near),
                 fmt::join(known, ", "));
}

Result<> check_data(const DataConfig& data, const char* field) {
  if (data.file_size() == 0) return invalid("{}.file is missing: where are the data?", field);
  const auto refuse = [&](const char* name) { return invalid("{}.{} is not supported yet", field, name); };
  if (data.has_range()) return refuse("range");
  if (data.has_hdfs()) return refuse("hdfs");
  if (data.max_num_files_per_worker() >= 0) return refuse("max_num_files_per_worker");
  if (data.max_num_lines_per_file() >= 0) return refuse("max_num_lines_per_file");
  if (data.shuffle()) return refuse("shuffle");
  if (data.replica() != 1) return refuse("replica");
  return {};
}

Result<std::vector<std::string>> cut_into_items(FileStore& store, std::span<const FileInfo> files) {
  uint64_t bytes = 0;
  for (const FileInfo& file : files) bytes += file.size;
  const uint64_t fair = std::clamp(bytes / kPartsWanted, kPartBytesMin, kPartBytesMax);
  std::vector<std::string> items;
  for (const FilePart& part : TRY(cut_files(store, files, std::max(fair, bytes / kPartsMax + 1)))) {
    items.push_back(to_text(part));
  }
  return items;
}

}  // namespace pscloud
