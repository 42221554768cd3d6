#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace pscloud {

// Values on their way: floats inside a buffer that the network reads or has filled. Cheap to copy, never written to.
class Floats {
 public:
  Floats() = default;
  // All of `buffer`, which is aligned for floats and holds a whole number of them.
  explicit Floats(SharedBuffer buffer)
      : span_(reinterpret_cast<const float*>(buffer->data()), buffer->size() / sizeof(float)),
        buffer_(std::move(buffer)) {}
  // Some floats of `buffer`.
  Floats(std::span<const float> span, SharedBuffer buffer) : span_(span), buffer_(std::move(buffer)) {}
  // A copy.
  explicit Floats(std::span<const float> values)
      : Floats(std::make_shared<const Buffer>(Buffer::copy_of(bytes_of(values)))) {}
  Floats(std::initializer_list<float> values) : Floats(std::span(values.begin(), values.size())) {}

  std::span<const float> span() const { return span_; }
  operator std::span<const float>() const { return span_; }  // NOLINT(google-explicit-constructor)
  const float* data() const { return span_.data(); }
  size_t size() const { return span_.size(); }
  bool empty() const { return span_.empty(); }
  float operator[](size_t i) const { return span_[i]; }
  auto begin() const { return span_.begin(); }
  auto end() const { return span_.end(); }
  friend bool operator==(const Floats& a, std::span<const float> b) { return std::ranges::equal(a.span_, b); }
  // From now on in memory that no other process can change.
  void own() {
    if (buffer_ && buffer_->is_peers()) *this = Floats(span_);
  }
  // Just these floats as a buffer, without a copy; null for none.
  SharedBuffer share() const {
    if (empty() || bytes_of(span_).size() == buffer_->size()) return empty() ? nullptr : buffer_;
    return pscloud::share(bytes_of(span_), buffer_);
  }

 private:
  std::span<const float> span_;
  SharedBuffer buffer_;
};

}  // namespace pscloud
