#include "launch/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/suggest.h"

namespace pscloud {

JsonFields::JsonFields(const JsonValue& value, std::string_view file, std::string_view what)
    : object_(value), file_(file), what_(what) {}

Result<JsonFields> JsonFields::of(const JsonValue& value, std::string_view file, std::string_view what) {
  JsonFields fields(value, file, what);
  if (!value.is(JsonValue::Kind::kObject)) {
    return fields.wrong(value, "{} must be an object, {{...}}, and is {}", what, json_kind_name(value.kind()));
  }
  return fields;
}

bool JsonFields::has(std::string_view name) { return !value(name).is(JsonValue::Kind::kNull); }

const JsonValue& JsonFields::value(std::string_view name) {
  asked_.emplace(name);
  return object_[name];
}

Result<const JsonValue*> JsonFields::find(std::string_view name, JsonValue::Kind kind) {
  const JsonValue& found = value(name);
  if (found.is(JsonValue::Kind::kNull)) return nullptr;
  if (!found.is(kind)) {
    return wrong(found, "'{}' must be {} and is {}", name, json_kind_name(kind), json_kind_name(found.kind()));
  }
  return &found;
}

Result<> JsonFields::read(std::string_view name, std::string& text) {
  if (const JsonValue* found = TRY(find(name, JsonValue::Kind::kString))) text = found->text();
  return {};
}

Result<> JsonFields::read(std::string_view name, bool& truth) {
  if (const JsonValue* found = TRY(find(name, JsonValue::Kind::kBool))) truth = found->truth();
  return {};
}

Result<> JsonFields::read(std::string_view name, int& number, int low, int high) {
  const JsonValue* found = TRY(find(name, JsonValue::Kind::kNumber));
  if (found == nullptr) return {};
  const int64_t value = found->integer(int64_t{low} - 1);
  if (value < low || value > high) return wrong(*found, "'{}' must be a whole number from {} to {}", name, low, high);
  number = static_cast<int>(value);
  return {};
}

Result<> JsonFields::read(std::string_view name, double& number, double low, double high) {
  const JsonValue* found = TRY(find(name, JsonValue::Kind::kNumber));
  if (found == nullptr) return {};
  const double value = found->number(low - 1);
  if (!(value >= low && value <= high)) return wrong(*found, "'{}' must be a number from {} to {}", name, low, high);
  number = value;
  return {};
}

Result<> JsonFields::read(std::string_view name, std::vector<std::string>& texts) {
  const JsonValue* found = TRY(find(name, JsonValue::Kind::kArray));
  if (found == nullptr) return {};
  texts.clear();
  for (const JsonValue& item : found->items()) {
    if (!item.is(JsonValue::Kind::kString)) return wrong(item, "each of '{}' must be a string", name);
    texts.push_back(item.text());
  }
  return {};
}

Result<> JsonFields::read(std::string_view name, Variables& variables) {
  const JsonValue* found = TRY(find(name, JsonValue::Kind::kObject));
  if (found == nullptr) return {};
  for (const auto& [key, value] : found->members()) {
    if (!is_variable_name(key)) return wrong(value, "'{}' is no name for '{}': letters, digits and _", key, name);
    if (!value.is(JsonValue::Kind::kString)) return wrong(value, "'{}' of '{}' must be a string", key, name);
    variables.emplace_back(key, value.text());
  }
  return {};
}

Result<> JsonFields::read(std::string_view name, std::vector<TaskRole>& roles) {
  std::vector<std::string> names;
  TRY(read(name, names));
  for (const std::string& each : names) {
    const auto role = parse_role(each);
    if (!role) return wrong(value(name), "{}", role.error().message);
    roles.push_back(*role);
  }
  return {};
}

Result<> JsonFields::read_bytes(std::string_view name, uint64_t& bytes) {
  const JsonValue& found = value(name);
  if (found.is(JsonValue::Kind::kNull)) return {};
  const int64_t number = found.integer(-1);
  if (number >= 0) {
    bytes = static_cast<uint64_t>(number);
  } else if (!parse_bytes(found.text(), bytes)) {
    return wrong(found, "'{}' must be a number of bytes, or such as \"512M\" or \"8G\"", name);
  }
  return {};
}

Result<> JsonFields::finish() const {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [name, value] : object_.members()) {
    if (asked_.contains(name)) continue;
    const std::string near = suggest(name, known);
    if (!near.empty()) return wrong(value, "{} has no '{}'; did you mean '{}'?", what_, name, near);
    return wrong(value, "{} has no '{}'; it may have: {}", what_, name, fmt::join(known, ", "));
  }
  return {};
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !digit(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c); });
}

bool parse_bytes(std::string_view text, uint64_t& bytes) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return false;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (!unit.empty()) {
    const char letter = unit.front() == 'k' ? 'K' : unit.front();
    const size_t which = kUnits.find(letter);
    if (which != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(which + 1));
      unit.remove_prefix(1);
    }
    if (!unit.empty() && unit != "B" && unit != "iB") return false;
  }
  if (number * factor >= 9e18) return false;
  bytes = static_cast<uint64_t>(number * factor);
  return true;
}

}  // namespace pscloud
