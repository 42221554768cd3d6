#include "engine/filter_order.h"

#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Filters of one stage exclude each other; stages follow in this order. Key caching touches keys only and may stand
// between any two of the value stages.
enum class Stage { kNoise, kValueCoder, kDropZeros, kCompressor, kKeys };

struct Place {
  FilterKind kind;
  std::string_view name;
  Stage stage;
  const FilterStep& (*step)();
};
// A new filter: its file, its kind and a line here.
constexpr Place kPlaces[] = {
    {FilterKind::kKeyCaching, "key_caching", Stage::kKeys, key_caching_step},
    {FilterKind::kLz4, "lz4", Stage::kCompressor, lz4_step},
    {FilterKind::kZstd, "zstd", Stage::kCompressor, zstd_step},
    {FilterKind::kFixedPoint, "fixed_point", Stage::kValueCoder, fixed_point_step},
    {FilterKind::kFloat16, "float16", Stage::kValueCoder, float16_step},
    {FilterKind::kBfloat16, "bfloat16", Stage::kValueCoder, bfloat16_step},
    {FilterKind::kDropZeros, "drop_zeros", Stage::kDropZeros, drop_zeros_step},
    {FilterKind::kNoise, "noise", Stage::kNoise, noise_step},
};

const Place* place_of(FilterKind kind) {
  for (const Place& place : kPlaces) {
    if (place.kind == kind) return &place;
  }
  return nullptr;
}

// May `after` follow `before`, with or without others between them?
bool may_follow(Stage before, Stage after) {
  if (before == after || before == Stage::kCompressor) return false;
  return before == Stage::kKeys || after == Stage::kKeys || before < after;
}

}  // namespace

std::string_view filter_name(FilterKind kind) {
  const Place* place = place_of(kind);
  return place ? place->name : "unknown";
}

const FilterStep* find_filter_step(FilterKind kind) {
  const Place* place = place_of(kind);
  return place ? &place->step() : nullptr;
}

Result<> check_filter_order(std::span<const FilterKind> kinds) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Place* after = place_of(kinds[i]);
    if (!after) return invalid("there is no filter of kind {}", static_cast<int>(kinds[i]));
    for (size_t j = 0; j < i; ++j) {
      const Place* before = place_of(kinds[j]);
      if (may_follow(before->stage, after->stage)) continue;
      return invalid(
          "{} cannot come after {}; the order is key_caching, noise, one of fixed_point float16 bfloat16, drop_zeros, "
          "one of lz4 zstd, each at most once",
          after->name, before->name);
    }
  }
  return {};
}

}  // namespace pscloud
