// Examples as protobuf messages, as dmlc's parameter server has them:
//
//   message Slot { optional int32 id = 1; repeated uint64 key = 2 [packed]; repeated float val = 3 [packed]; }
//   message Example { repeated Slot slot = 1; }
//
// Slot 0 has the label as its value; each other is a group of features: keys with values, keys alone (each counts 1),
// or values alone (the key is group * 2^32 + place). Read by hand: three fields go straight to where they are wanted.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "data/parser_makers.h"

namespace pscloud {
namespace {

enum WireType : uint32_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };
constexpr uint64_t kSlotField = 1;
constexpr uint64_t kIdField = 1;
constexpr uint64_t kKeyField = 2;
constexpr uint64_t kValueField = 3;

// What is left of a message. Each read says whether it was there, and goes behind it.
struct Wire {
  const char* at;
  const char* end;

  bool empty() const { return at == end; }
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at++);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return shift < 63 || byte <= 1;
    }
    return false;
  }
  bool number(float& value) {
    if (end - at < static_cast<ptrdiff_t>(sizeof value)) return false;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return true;
  }
  bool delimited(Wire& inner) {
    uint64_t length = 0;
    if (!varint(length) || length > static_cast<uint64_t>(end - at)) return false;
    inner = {at, at + length};
    at += length;
    return true;
  }
  bool skip(uint64_t wire_type) {
    uint64_t number = 0;
    Wire inner{};
    switch (wire_type) {
      case kVarint: return varint(number);
      case kLengthDelimited: return delimited(inner);
      case kEightBytes:
      case kFourBytes: {
        const ptrdiff_t size = wire_type == kEightBytes ? 8 : 4;
        if (end - at < size) return false;
        at += size;
        return true;
      }
      default: return false;  // groups are no more
    }
  }
};

class ProtoParser final : public Parser {
 public:
  explicit ProtoParser(bool ignore_groups) : ignore_groups_(ignore_groups) {}
  bool reads_records() const override { return true; }

 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    Wire example{at, end};
    bool labelled = false;
    float label = 0;
    while (!example.empty()) {
      const char* const field_at = example.at;
      uint64_t tag = 0;
      if (!example.varint(tag)) return {field_at, kNoMessage};
      if (tag != (kSlotField << 3 | kLengthDelimited)) {
        if (!example.skip(tag & 7)) return {field_at, kNoMessage};
        continue;
      }
      Wire slot{};
      const size_t first = block.keys.size();
      uint64_t id = 0;
      if (!example.delimited(slot) || !read_slot(slot, id, block)) return {field_at, kNoMessage};
      const size_t keys = block.keys.size() - first;
      if (id == 0) {
        if (keys > 0 || values_.size() != 1 || labelled) return {field_at, "slot 0 must be one label"};
        labelled = true;
        label = values_.front();
        continue;
      }
      if (id >= kGroupsMax) return {field_at, fmt::format("a group must be below {}", kGroupsMax)};
      if (keys > 0 && !values_.empty() && values_.size() != keys) {
        return {field_at, fmt::format("slot {} has {} keys and {} values", id, keys, values_.size())};
      }
      if (keys == 0) {
        for (uint64_t place = 0; place < values_.size(); ++place) block.keys.push_back(id << 32 | place);
      }
      add_values(first, block);
      if (!ignore_groups_) block.groups.resize(block.keys.size(), static_cast<uint16_t>(id));
    }
    if (!labelled) return {at, "the label is missing"};
    block.end_row(label);
    return {};
  }

  // Its keys go to the block, its values are kept.
  bool read_slot(Wire slot, uint64_t& id, RowBlock& block) {
    values_.clear();
    while (!slot.empty()) {
      uint64_t tag = 0;
      if (!slot.varint(tag)) return false;
      Wire packed{};
      uint64_t key = 0;
      float value = 0;
      switch (tag) {
        case kIdField << 3 | kVarint:
          if (!slot.varint(id)) return false;
          break;
        case kKeyField << 3 | kLengthDelimited:
          if (!slot.delimited(packed)) return false;
          while (!packed.empty()) {
            if (!packed.varint(key)) return false;
            block.keys.push_back(key);
          }
          break;
        case kKeyField << 3 | kVarint:  // not packed: protobuf reads both
          if (!slot.varint(key)) return false;
          block.keys.push_back(key);
          break;
        case kValueField << 3 | kLengthDelimited:
          if (!slot.delimited(packed)) return false;
          while (!packed.empty()) {
            if (!packed.number(value) || !std::isfinite(value)) return false;
            values_.push_back(value);
          }
          break;
        case kValueField << 3 | kFourBytes:
          if (!slot.number(value) || !std::isfinite(value)) return false;
          values_.push_back(value);
          break;
        default:
          if (!slot.skip(tag & 7)) return false;
      }
    }
    return true;
  }

  // The block has values once one feature has: those before it are 1.
  void add_values(size_t first, RowBlock& block) const {
    if (values_.empty() && block.values.empty()) return;
    block.values.resize(first, 1);
    block.values.insert(block.values.end(), values_.begin(), values_.end());
    block.values.resize(block.keys.size(), 1);
  }

  static constexpr const char* kNoMessage = "no message of protobuf";

  const bool ignore_groups_;
  std::vector<float> values_;  // of a slot
};

}  // namespace

std::unique_ptr<Parser> make_proto_parser(bool ignore_groups) { return std::make_unique<ProtoParser>(ignore_groups); }

}  // namespace pscloud
