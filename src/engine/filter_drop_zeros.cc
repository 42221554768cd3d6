#include <algorithm>
#include <bit>

#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Rows whose bytes are all zero cost one bit. Loses nothing: minus zero has a byte that is not zero.
// Args: u32 rows kept. Values: a bitmap of ceil(rows/8) bytes, bit i%8 of byte i/8 set if row i was kept, then these
// rows. Left out when no row or too few would be dropped to pay for the bitmap.
class DropZerosStep final : public FilterStep {
 public:
  Result<bool> apply(const FilterSpec&, PayloadDraft& draft, ByteWriter& args, FilterContext) const override {
    const Bytes plain = draft.values.bytes();
    if (plain.empty()) return false;
    const size_t row_bytes = plain.size() / draft.rows;
    const auto is_zero = [&](size_t row) {
      const Bytes bytes = plain.subspan(row * row_bytes, row_bytes);
      return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
    };

    std::vector<uint8_t> bitmap(bitmap_bytes(draft.rows));
    uint32_t kept = 0;
    for (size_t row = 0; row < draft.rows; ++row) {
      if (is_zero(row)) continue;
      bitmap[row / 8] |= static_cast<uint8_t>(1 << row % 8);
      ++kept;
    }
    Buffer small(bitmap.size() + kept * row_bytes);
    if (small.size() >= plain.size()) return false;

    std::memcpy(small.data(), bitmap.data(), bitmap.size());
    std::byte* out = small.data() + bitmap.size();
    for (size_t row = 0; row < draft.rows; ++row) {
      if (!is_kept(bitmap.data(), row)) continue;
      std::memcpy(out, plain.data() + row * row_bytes, row_bytes);
      out += row_bytes;
    }
    args.put(kept);
    draft.values.replace(std::move(small));
    return true;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t rows) const override {
    ByteReader reader(args);
    const auto kept = reader.get<uint32_t>();
    TRY(reader.finish("the head of drop_zeros"));
    if (before.values == 0) return corrupt("drop_zeros in a payload that has no values");
    if (kept > rows) return corrupt("drop_zeros kept {} of {} rows", kept, rows);
    return SectionBytes{before.keys, bitmap_bytes(rows) + kept * (before.values / rows)};
  }

  Result<> undo(Bytes args, SectionBytes before, PayloadDraft& draft, FilterContext) const override {
    const auto kept = ByteReader(args).get<uint32_t>();
    const size_t rows = draft.rows;
    const size_t row_bytes = before.values / rows;
    const auto* bitmap = reinterpret_cast<const uint8_t*>(draft.values.bytes().data());
    size_t marked = 0;
    for (size_t i = 0; i < bitmap_bytes(rows); ++i) marked += static_cast<size_t>(std::popcount(bitmap[i]));
    const bool beyond = rows % 8 != 0 && bitmap[rows / 8] >> rows % 8 != 0;
    if (marked != kept || beyond) return corrupt("drop_zeros marks {} rows and brings {}", marked, kept);

    Buffer plain(before.values);
    const std::byte* in = draft.values.bytes().data() + bitmap_bytes(rows);
    for (size_t row = 0; row < rows; ++row) {
      std::byte* out = plain.data() + row * row_bytes;
      if (is_kept(bitmap, row)) {
        std::memcpy(out, in, row_bytes);
        in += row_bytes;
      } else {
        std::memset(out, 0, row_bytes);
      }
    }
    draft.values.replace(std::move(plain));
    return {};
  }

 private:
  static size_t bitmap_bytes(size_t rows) { return (rows + 7) / 8; }
  static bool is_kept(const uint8_t* bitmap, size_t row) { return bitmap[row / 8] >> row % 8 & 1; }
};

}  // namespace

const FilterStep& drop_zeros_step() {
  static const DropZerosStep step;
  return step;
}

}  // namespace pscloud
