#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// JSON that was read (RFC 8259). Made for two uses: a file of the user's, whose mistakes are named by place, and an
// answer of another program, of which a few fields are wanted: `reply["Status"]["State"].text()` is empty if any of it
// is missing or something else.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, JsonValue>;

  // kInvalid begins with "line:column: ". Nested at most 64 deep; a name stands once in an object.
  static Result<JsonValue> parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }

  // What it holds, or else nothing: empty, `otherwise`.
  const std::string& text() const;  // of a string
  bool truth(bool otherwise = false) const;
  double number(double otherwise = 0) const;
  int64_t integer(int64_t otherwise = 0) const;                    // `otherwise` if it has a fraction or is too large
  const std::vector<JsonValue>& items() const { return items_; }   // of an array
  const std::vector<Member>& members() const { return members_; }  // of an object, as they were written

  // A member of an object; null if there is none.
  const JsonValue& operator[](std::string_view name) const;

  // Where it begins, "3:17", for messages.
  std::string place() const;

 private:
  friend class JsonParser;

  Kind kind_ = Kind::kNull;
  bool truth_ = false;
  uint32_t line_ = 0;
  uint32_t column_ = 0;
  std::string text_;  // of a string; as it was written, of a number
  std::vector<JsonValue> items_;
  std::vector<Member> members_;
};

// "a string", "an object", for messages.
const char* json_kind_name(JsonValue::Kind kind);

}  // namespace pscloud
