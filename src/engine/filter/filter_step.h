#pragma once

#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "engine/filter/filter.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace pscloud {

// The inside of encode_payload() and decode_payload(): what each filter implements.

// Keys or values while filters work on them: the caller's memory at first, a filter's own buffer later.
class Section {
 public:
  explicit Section(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes() const { return bytes_; }
  bool replaced() const { return replaced_; }
  // What a filter has made of it; empties the section.
  SharedBuffer take() {
    auto all = std::make_shared<Buffer>(std::move(storage_));
    const std::span<std::byte> used = all->span().first(bytes_.size());
    bytes_ = {};
    return std::make_shared<const Buffer>(used, std::move(all));
  }
  void replace(Buffer buffer) {
    const size_t size = buffer.size();
    replace(std::move(buffer), size);
  }
  // Only the first `size` bytes of `buffer` count.
  void replace(Buffer buffer, size_t size) {
    storage_ = std::move(buffer);
    bytes_ = std::as_const(storage_).span().first(size);
    replaced_ = true;
  }
  // Bytes that somebody else keeps.
  void refer_to(Bytes bytes) { bytes_ = bytes; }

 private:
  Bytes bytes_;
  Buffer storage_;
  bool replaced_ = false;
};

struct SectionBytes {
  size_t keys = 0;
  size_t values = 0;
};

struct PayloadDraft {
  Section keys;
  Section values;
  size_t rows = 0;

  // Set by key caching. Sender: a signature the cache has from now on, or one it needs no longer. Receiver: one it does
  // not have, or the list that it has; `keys` are then the same.
  std::optional<Hash128> new_signature;
  std::optional<Hash128> last_use;
  std::optional<Hash128> unknown_signature;
  KeyList known_keys{};
};

class FilterStep {
 public:
  virtual ~FilterStep() = default;

  // Sender: changes the sections and writes to `args` what undo() must know. False if there was nothing to do: then
  // the sections are as before and the receiver never hears of this filter.
  virtual Result<bool> apply(const FilterSpec& spec, PayloadDraft& draft, ByteWriter& args,
                             FilterContext context) const = 0;

  // Receiver, before anything is undone: the sizes that apply() made of `before`. kCorrupt if it cannot have been.
  virtual Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t rows) const = 0;

  // Receiver: the sections have the sizes that sizes_after() told and get those of `before` again.
  virtual Result<> undo(Bytes args, SectionBytes before, PayloadDraft& draft, FilterContext context) const = 0;
};

// Null for a kind that is none.
const FilterStep* find_filter_step(FilterKind kind);

const FilterStep& key_caching_step();
const FilterStep& lz4_step();
const FilterStep& zstd_step();
const FilterStep& fixed_point_step();
const FilterStep& float16_step();
const FilterStep& bfloat16_step();
const FilterStep& drop_zeros_step();
const FilterStep& noise_step();

}  // namespace pscloud
