#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "launch/task.h"

namespace pscloud {

// Reads one object of a user's file, field by field, and then says which of its names nobody asked for. A field that is
// not there, or null, leaves what it is read into as it was. Errors are kInvalid, "file:line:column: ...".
class JsonFields {
 public:
  // `what` is the object's name in messages, "a host". kInvalid if `value` is no object.
  static Result<JsonFields> of(const JsonValue& value, std::string_view file, std::string_view what);

  bool has(std::string_view name);
  const JsonValue& value(std::string_view name);

  Result<> read(std::string_view name, std::string& text);
  Result<> read(std::string_view name, bool& truth);
  Result<> read(std::string_view name, int& number, int low, int high);
  Result<> read(std::string_view name, double& number, double low, double high);
  Result<> read(std::string_view name, std::vector<std::string>& texts);
  Result<> read(std::string_view name, Variables& variables);
  Result<> read(std::string_view name, std::vector<TaskRole>& roles);
  // A number of bytes, or "512M", "8G".
  Result<> read_bytes(std::string_view name, uint64_t& bytes);

  // kInvalid at the first name that was not asked for, with the one that was probably meant.
  Result<> finish() const;

  // An error at a value of the file.
  template <class... Args>
  Error wrong(const JsonValue& at, fmt::format_string<Args...> text, Args&&... args) const {
    return invalid("{}:{}: {}", file_, at.place(), fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  JsonFields(const JsonValue& value, std::string_view file, std::string_view what);
  // The field if it is there; kInvalid if it is of another kind.
  Result<const JsonValue*> find(std::string_view name, JsonValue::Kind kind);

  const JsonValue& object_;
  const std::string file_;
  const std::string what_;
  std::set<std::string, std::less<>> asked_;
};

// "NAME", as variables of the environment are called.
bool is_variable_name(std::string_view name);

// "512M", "8G", "1.5T", "4096": powers of 1024; a B or iB behind them changes nothing.
bool parse_bytes(std::string_view text, uint64_t& bytes);

}  // namespace pscloud
