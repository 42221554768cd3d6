#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pscloud/error.h"

// Numbers in messages and files are little endian, as are the machines we build for.
static_assert(std::endian::native == std::endian::little);

namespace pscloud {

using Bytes = std::span<const std::byte>;

// Bytes on their way to or from the network. Not zeroed when made: payloads are large and filled at once.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size)
      : own_(std::make_unique_for_overwrite<std::byte[]>(size)), data_(own_.get()), size_(size) {}
  enum Whose : uint8_t {
    kOurs,
    kPeers,     // another process may change it at any time
    kBorrowed,  // only as it is during the call that gets it: who needs it longer copies
  };
  // Memory of somebody else, there as long as `keeper` lives.
  Buffer(std::span<std::byte> memory, std::shared_ptr<void> keeper, Whose whose = kOurs)
      : keeper_(std::move(keeper)), data_(memory.data()), size_(memory.size()), whose_(whose) {}
  static Buffer copy_of(Bytes bytes) {
    Buffer buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return buffer;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool is_peers() const { return whose_ == kPeers; }
  bool is_borrowed() const { return whose_ == kBorrowed; }
  std::span<std::byte> span() { return {data_, size_}; }
  Bytes span() const { return {data_, size_}; }

 private:
  std::unique_ptr<std::byte[]> own_;
  std::shared_ptr<void> keeper_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  Whose whose_ = kOurs;
};

// Shared, because a request is kept for sending again while the network still reads it. Null means no bytes.
using SharedBuffer = std::shared_ptr<const Buffer>;

// Bytes of somebody else as a buffer, without a copy.
inline SharedBuffer share(Bytes bytes, std::shared_ptr<const void> keeper, Buffer::Whose whose = Buffer::kOurs) {
  // A shared buffer is const again.
  return std::make_shared<const Buffer>(std::span(const_cast<std::byte*>(bytes.data()), bytes.size()),
                                        std::const_pointer_cast<void>(std::move(keeper)), whose);
}

template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T>
Bytes bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Builds a small message.
class ByteWriter {
 public:
  template <Scalar T>
  void put(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  void put_raw(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // Length (u32), then the bytes.
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    put_raw(bytes_of(text));
  }

  // So many bytes will come.
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

  size_t size() const { return bytes_.size(); }
  Bytes bytes() const { return bytes_; }
  SharedBuffer share() const { return std::make_shared<const Buffer>(Buffer::copy_of(bytes_)); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what a ByteWriter built, trusting nothing. After the first short read or wrong length every further
// read gives zeros and ok() is false: check once at the end, and before believing a count.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  template <Scalar T>
  T get() {
    T value{};
    const Bytes raw = get_raw(sizeof value);
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  Bytes get_raw(size_t size) {
    if (size > bytes_.size()) {
      fail();
      return {};
    }
    const Bytes result = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return result;
  }
  std::string get_text(size_t max_bytes) {
    const auto size = get<uint32_t>();
    if (size > max_bytes) fail();
    const Bytes raw = get_raw(ok_ ? size : 0);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  // A count of things that take at least `each_bytes`: 0 and not ok if so many cannot follow.
  size_t get_count(size_t each_bytes) {
    const auto count = get<uint32_t>();
    if (count > bytes_.size() / each_bytes) fail();
    return ok_ ? count : 0;
  }

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size(); }
  // kCorrupt unless everything was read and nothing is left.
  Result<> finish(std::string_view what) const {
    if (!ok_) return corrupt("{} is cut short or has a length that cannot be", what);
    if (!bytes_.empty()) return corrupt("{} has {} bytes too many", what, bytes_.size());
    return {};
  }

 private:
  void fail() {
    ok_ = false;
    bytes_ = {};
  }

  Bytes bytes_;
  bool ok_ = true;
};

}  // namespace pscloud
