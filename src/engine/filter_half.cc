#include <bit>

#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Both formats round to the nearest value, ties to even, and refuse what they cannot hold as a finite number.

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
struct Float16 {
  static constexpr std::string_view kName = "float16";
  static constexpr std::string_view kAdvice = "float16 ends at 65504; bfloat16 reaches as far as float";
  static constexpr uint16_t kExponentMask = 0x7c00;

  static constexpr uint32_t kOverflow = 0x477ff000;   // 65520: halfway to 65536, rounds up to it
  static constexpr uint32_t kSubnormal = 0x38800000;  // below 2^-14

  static bool fits(uint32_t bits) { return (bits & 0x7fffffff) < kOverflow; }

  static uint16_t from_float(uint32_t bits) {
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude < kSubnormal) {
      // Floats in [0.5, 1) are multiples of 2^-24, the step of subnormal halves: the addition rounds to it.
      const float sum = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
    }
    // A carry out of the fraction goes into the exponent, as it should.
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
  }

  static uint32_t to_float(uint16_t half) {
    const uint32_t sign = uint32_t{half} << 16 & 0x80000000;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude < 0x400) return sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    return sign | ((magnitude << 13) + (112u << 23));
  }
};

// The upper half of a float.
struct Bfloat16 {
  static constexpr std::string_view kName = "bfloat16";
  static constexpr std::string_view kAdvice = "bfloat16 ends at 3.3895e38";
  static constexpr uint16_t kExponentMask = 0x7f80;

  static bool fits(uint32_t bits) { return (bits & 0x7fffffff) < 0x7f7f8000; }  // from here on it rounds to infinity
  static uint16_t from_float(uint32_t bits) { return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16); }
  static uint32_t to_float(uint16_t half) { return uint32_t{half} << 16; }
};

// Values as 16-bit floats. No args.
template <class Half>
class HalfStep final : public FilterStep {
 public:
  Result<bool> apply(const FilterSpec&, PayloadDraft& draft, ByteWriter&, FilterContext) const override {
    const size_t count = draft.values.bytes().size() / sizeof(float);
    if (count == 0) return false;
    Buffer halves(count * sizeof(uint16_t));
    for (size_t i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, draft.values.bytes().data() + i * sizeof bits, sizeof bits);
      if (!Half::fits(bits))
        return invalid("{} cannot hold the {} at position {}: {}", Half::kName, std::bit_cast<float>(bits), i,
                       Half::kAdvice);
      const uint16_t half = Half::from_float(bits);
      std::memcpy(halves.data() + i * sizeof half, &half, sizeof half);
    }
    draft.values.replace(std::move(halves));
    return true;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t) const override {
    if (!args.empty()) return corrupt("{} with {} bytes of head", Half::kName, args.size());
    if (before.values == 0) return corrupt("{} in a payload that has no values", Half::kName);
    return SectionBytes{before.keys, before.values / 2};
  }

  Result<> undo(Bytes, SectionBytes before, PayloadDraft& draft, FilterContext) const override {
    Buffer plain(before.values);
    for (size_t i = 0; i < before.values / sizeof(float); ++i) {
      uint16_t half;
      std::memcpy(&half, draft.values.bytes().data() + i * sizeof half, sizeof half);
      if ((half & Half::kExponentMask) == Half::kExponentMask)
        return corrupt("{} that is not finite at position {}", Half::kName, i);
      const uint32_t bits = Half::to_float(half);
      std::memcpy(plain.data() + i * sizeof bits, &bits, sizeof bits);
    }
    draft.values.replace(std::move(plain));
    return {};
  }
};

}  // namespace

const FilterStep& float16_step() {
  static const HalfStep<Float16> step;
  return step;
}

const FilterStep& bfloat16_step() {
  static const HalfStep<Bfloat16> step;
  return step;
}

}  // namespace pscloud
