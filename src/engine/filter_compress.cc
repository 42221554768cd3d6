#include <lz4.h>
#include <zstd.h>

#include "engine/filter_step.h"

namespace pscloud {
namespace {

// Zstandard's fastest ordinary level: the network is the slower side only up to about its speed.
constexpr int kZstdLevel = 1;

// Compresses keys and values each on its own: they have nothing in common, and a pull has only one of them.
// Args, for keys then values: u32 plain bytes, u32 stored bytes. Equal means stored as they are, since a section that
// would not become smaller is left alone.
class CompressStep : public FilterStep {
 public:
  Result<bool> apply(const FilterSpec&, PayloadDraft& draft, ByteWriter& args, FilterContext) const override {
    bool smaller = false;
    for (Section* section : {&draft.keys, &draft.values}) {
      const size_t plain_bytes = section->bytes().size();
      args.put(static_cast<uint32_t>(plain_bytes));
      if (plain_bytes > 1) {
        Buffer stored(plain_bytes - 1);
        if (const size_t size = compress(section->bytes(), stored.span()); size > 0) {
          section->replace(std::move(stored), size);
          smaller = true;
        }
      }
      args.put(static_cast<uint32_t>(section->bytes().size()));
    }
    return smaller;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t) const override {
    ByteReader reader(args);
    SectionBytes plain, stored;
    plain.keys = reader.get<uint32_t>();
    stored.keys = reader.get<uint32_t>();
    plain.values = reader.get<uint32_t>();
    stored.values = reader.get<uint32_t>();
    TRY(reader.finish("the head of a compressor"));
    if (plain.keys != before.keys || plain.values != before.values)
      return corrupt("compressed {} and {} bytes of keys and values where {} and {} must be", plain.keys, plain.values,
                     before.keys, before.values);
    const auto possible = [](size_t small, size_t large) { return small <= large && (small > 0 || large == 0); };
    if (!possible(stored.keys, plain.keys) || !possible(stored.values, plain.values))
      return corrupt("sections of {} and {} bytes compressed to {} and {}", plain.keys, plain.values, stored.keys,
                     stored.values);
    return stored;
  }

  Result<> undo(Bytes, SectionBytes before, PayloadDraft& draft, FilterContext) const override {
    TRY(restore(draft.keys, before.keys).at("compressed keys"));
    TRY(restore(draft.values, before.values).at("compressed values"));
    return {};
  }

 private:
  // Bytes written; 0 if it does not fit.
  virtual size_t compress(Bytes from, std::span<std::byte> to) const = 0;
  // True if exactly all of `to` was filled.
  virtual bool decompress(Bytes from, std::span<std::byte> to) const = 0;

  Result<> restore(Section& section, size_t plain_bytes) const {
    if (section.bytes().size() == plain_bytes) return {};
    Buffer plain(plain_bytes);
    if (!decompress(section.bytes(), plain.span())) return corrupt("damaged");
    section.replace(std::move(plain));
    return {};
  }
};

class Lz4Step final : public CompressStep {
  static char* chars(std::byte* bytes) { return reinterpret_cast<char*>(bytes); }
  static const char* chars(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }

  // Sizes are far below the 2 GB that an int can count: kPlainBytesMax.
  size_t compress(Bytes from, std::span<std::byte> to) const override {
    return static_cast<size_t>(LZ4_compress_default(chars(from.data()), chars(to.data()), static_cast<int>(from.size()),
                                                    static_cast<int>(to.size())));
  }
  bool decompress(Bytes from, std::span<std::byte> to) const override {
    const int size = LZ4_decompress_safe(chars(from.data()), chars(to.data()), static_cast<int>(from.size()),
                                         static_cast<int>(to.size()));
    return size >= 0 && static_cast<size_t>(size) == to.size();
  }
};

class ZstdStep final : public CompressStep {
  size_t compress(Bytes from, std::span<std::byte> to) const override {
    const size_t size = ZSTD_compress(to.data(), to.size(), from.data(), from.size(), kZstdLevel);
    return ZSTD_isError(size) ? 0 : size;
  }
  bool decompress(Bytes from, std::span<std::byte> to) const override {
    const size_t size = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
    return !ZSTD_isError(size) && size == to.size();
  }
};

}  // namespace

const FilterStep& lz4_step() {
  static const Lz4Step step;
  return step;
}

const FilterStep& zstd_step() {
  static const ZstdStep step;
  return step;
}

}  // namespace pscloud
