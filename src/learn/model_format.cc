#include "learn/model_format.h"

#include <algorithm>
#include <utility>

#include "learn/config.pb.h"
#include "learn/model_text.h"
#include "learn/row_file.h"

namespace pscloud {

using PS::LM::DataConfig;

Result<ModelOutput> model_output(const DataConfig& model) {
  if (model.format() == DataConfig::PROTO || model.file_size() != 1) {
    return invalid("model_output must have format: TEXT or BIN and one file, the beginning of the names");
  }
  return ModelOutput{model.format() == DataConfig::BIN ? ModelFormat::kBinary : ModelFormat::kText, model.file(0)};
}

Result<std::vector<std::string>> model_input(const DataConfig& model) {
  if (model.format() == DataConfig::PROTO || model.file_size() == 0) {
    return invalid("model_input must have format: TEXT or BIN and the patterns of its files");
  }
  return std::vector<std::string>(model.file().begin(), model.file().end());
}

namespace {

class TextModel final : public ModelWriter {
 public:
  explicit TextModel(std::unique_ptr<Output> output) : writer_(std::move(output)) {}
  Result<> write(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings) override {
    return writer_.write(keys, weights, embeddings);
  }
  Result<> commit() override { return writer_.commit(); }
  uint64_t weights() const override { return writer_.weights(); }

 private:
  ModelTextWriter writer_;
};

// Rows of a weight and the numbers of the embedding, which are zeros if there is none.
class BinaryModel final : public ModelWriter {
 public:
  BinaryModel(std::unique_ptr<Output> output, uint32_t dim) : writer_(std::move(output), 1 + dim), dim_(dim) {}
  Result<> write(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings) override {
    kept_.clear();
    floats_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::span<const float> embedding = embeddings.of(i);
      if (weights[i] != 0) ++weights_;
      if (weights[i] == 0 && embedding.empty()) continue;
      kept_.push_back(keys[i]);
      floats_.push_back(weights[i]);
      floats_.insert(floats_.end(), embedding.begin(), embedding.end());
      floats_.resize(kept_.size() * (1 + dim_));
    }
    return writer_.write(kept_, floats_);
  }
  Result<> commit() override { return writer_.commit(); }
  uint64_t weights() const override { return weights_; }

 private:
  RowFileWriter writer_;
  const uint32_t dim_;
  uint64_t weights_ = 0;
  std::vector<Key> kept_;
  std::vector<float> floats_;
};

}  // namespace

std::unique_ptr<ModelWriter> make_model_writer(ModelFormat format, std::unique_ptr<Output> output, uint32_t dim) {
  if (format == ModelFormat::kText) return std::make_unique<TextModel>(std::move(output));
  return std::make_unique<BinaryModel>(std::move(output), dim);
}

Result<> read_model(FileStore& store, const std::string& uri, const TakeModel& take) {
  if (!TRY(is_row_file(store, uri))) return read_model_text(store, uri, take);
  std::vector<Key> kept;
  std::vector<float> weights;
  std::vector<uint32_t> places;
  std::vector<float> embeddings;
  TRY(read_row_file(store, uri, [&](const RowFileInfo& info, auto keys, auto floats) -> Result<> {
    if (info.width != 1 && info.floats != info.width) return invalid("{}: these rows are not those of a model", uri);
    const size_t dim = info.width - 1;
    kept.clear();
    weights.clear();
    places.clear();
    embeddings.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = floats.subspan(i * info.floats, info.width);
      const auto embedding = row.subspan(1);
      const bool has_one = std::ranges::any_of(embedding, [](float one) { return one != 0; });
      if (row.front() == 0 && !has_one) continue;
      kept.push_back(keys[i]);
      weights.push_back(row.front());
      places.push_back(has_one ? static_cast<uint32_t>(embeddings.size() / dim) : Embeddings::kNone);
      if (has_one) embeddings.insert(embeddings.end(), embedding.begin(), embedding.end());
    }
    return take(kept, weights, {.dim = dim, .places = places, .values = embeddings});
  }));
  return {};
}

}  // namespace pscloud
