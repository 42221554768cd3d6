#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Values as integers of `num_bytes` bytes in [-M, M], M = 2^(8*num_bytes-1) - 1, of scale / M each, where scale is the
// largest magnitude of the payload. y = x * M / scale is rounded to floor(y + u) with u uniform in [0, 1): its mean
// is y, so errors of many pushes cancel, and zero stays zero.
// Args: u8 num_bytes, f32 scale.
class FixedPointStep final : public FilterStep {
 public:
  Result<bool> apply(const FilterSpec& spec, PayloadDraft& draft, ByteWriter& args,
                     FilterContext context) const override {
    const size_t count = draft.values.bytes().size() / sizeof(float);
    if (count == 0) return false;
    CHECK(context.random, "fixed_point rounds at random");
    const std::byte* plain = draft.values.bytes().data();
    const float scale = TRY(largest_magnitude(plain, count));
    args.put(spec.num_bytes);
    args.put(scale);

    const auto steps = static_cast<double>(code_max(spec.num_bytes));
    const double to_code = scale > 0 ? steps / scale : 0;
    Buffer codes(count * spec.num_bytes);
    std::byte* out = codes.data();
    for (size_t i = 0; i < count; ++i, out += spec.num_bytes) {
      const double exact = load(plain, i) * to_code;
      // The clamp is for the last bit of the product only.
      const auto code = static_cast<int32_t>(std::clamp(std::floor(exact + context.random->uniform()), -steps, steps));
      std::memcpy(out, &code, spec.num_bytes);
    }
    draft.values.replace(std::move(codes));
    return true;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t) const override {
    const Args read = TRY(read_args(args));
    if (before.values == 0) return corrupt("fixed_point in a payload that has no values");
    return SectionBytes{before.keys, before.values / sizeof(float) * read.num_bytes};
  }

  Result<> undo(Bytes args, SectionBytes before, PayloadDraft& draft, FilterContext) const override {
    const Args read = TRY(read_args(args));
    const int32_t limit = code_max(read.num_bytes);
    const double step = static_cast<double>(read.scale) / limit;
    const int unused_bits = 32 - 8 * read.num_bytes;
    const std::byte* codes = draft.values.bytes().data();
    Buffer plain(before.values);
    for (size_t i = 0; i < before.values / sizeof(float); ++i) {
      uint32_t raw = 0;
      std::memcpy(&raw, codes + i * read.num_bytes, read.num_bytes);
      const int32_t code = static_cast<int32_t>(raw << unused_bits) >> unused_bits;  // extends the sign
      if (code < -limit) return corrupt("fixed_point code {} at position {}", code, i);
      const auto value = static_cast<float>(code * step);
      std::memcpy(plain.data() + i * sizeof value, &value, sizeof value);
    }
    draft.values.replace(std::move(plain));
    return {};
  }

 private:
  struct Args {
    uint8_t num_bytes;
    float scale;
  };
  static Result<Args> read_args(Bytes args) {
    ByteReader reader(args);
    Args read;
    read.num_bytes = reader.get<uint8_t>();
    read.scale = reader.get<float>();
    TRY(reader.finish("the head of fixed_point"));
    if (read.num_bytes < 1 || read.num_bytes > 3 || !std::isfinite(read.scale) || read.scale < 0)
      return corrupt("fixed_point with {} bytes and scale {}", read.num_bytes, read.scale);
    return read;
  }

  static int32_t code_max(int num_bytes) { return (int32_t{1} << (8 * num_bytes - 1)) - 1; }

  static float load(const std::byte* floats, size_t i) {
    float value;
    std::memcpy(&value, floats + i * sizeof value, sizeof value);
    return value;
  }

  static Result<float> largest_magnitude(const std::byte* floats, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; ++i) {
      const float value = load(floats, i);
      if (!std::isfinite(value)) return invalid("fixed_point cannot code the {} at position {}", value, i);
      largest = std::max(largest, std::abs(value));
    }
    return largest;
  }
};

}  // namespace

const FilterStep& fixed_point_step() {
  static const FixedPointStep step;
  return step;
}

}  // namespace pscloud
