#include "base/check.h"
#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Adds a normal draw to every value, to zeros too: a zero that stays zero would tell that the row was not used.
// Nothing to undo. It is listed all the same, so that who reads a payload knows its values are not exact. No args.
class NoiseStep final : public FilterStep {
 public:
  Result<bool> apply(const FilterSpec& spec, PayloadDraft& draft, ByteWriter&, FilterContext context) const override {
    if (draft.values.bytes().empty()) return false;
    CHECK(context.random, "noise is random");
    Buffer noisy = Buffer::copy_of(draft.values.bytes());
    for (size_t i = 0; i < noisy.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, noisy.data() + i, sizeof value);
      value += context.random->normal(spec.mean, spec.stddev);
      std::memcpy(noisy.data() + i, &value, sizeof value);
    }
    draft.values.replace(std::move(noisy));
    return true;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t) const override {
    if (!args.empty()) return corrupt("noise with {} bytes of head", args.size());
    if (before.values == 0) return corrupt("noise in a payload that has no values");
    return before;
  }

  Result<> undo(Bytes, SectionBytes, PayloadDraft&, FilterContext) const override { return {}; }
};

}  // namespace

const FilterStep& noise_step() {
  static const NoiseStep step;
  return step;
}

}  // namespace pscloud
