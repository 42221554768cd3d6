#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pscloud {

// Writes JSON: begin and end must pair, keys only inside objects. Text is escaped; NaN and infinities become null.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth);
  JsonWriter& value(double number);
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(int64_t{number}); }
  JsonWriter& value(uint32_t number) { return value(uint64_t{number}); }
  JsonWriter& null();

  template <class T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  const std::string& text() const { return text_; }

 private:
  void separate();

  std::string text_;
  bool first_ = true;  // nothing yet at this level, or a key waits for its value
};

}  // namespace pscloud
