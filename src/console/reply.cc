#include "console/reply.h"

#include "base/json.h"
#include "base/text.h"

namespace pscloud {
namespace {

int status_of(Code code) {
  switch (code) {
    case Code::kInvalid: return 400;
    case Code::kNotFound: return 404;
    case Code::kTimeout: return 504;
    case Code::kUnavailable: return 503;
    case Code::kCorrupt:
    case Code::kFailed: return 500;
  }
  return 500;
}

}  // namespace

HttpReply json_reply(std::string text, int status) {
  text += '\n';
  return {.status = status, .content_type = "application/json", .body = std::move(text)};
}

HttpReply error_reply(int status, std::string_view message) {
  JsonWriter json;
  return json_reply(json.begin_object().field("error", message).end_object().text(), status);
}

HttpReply error_reply(const Error& error) { return error_reply(status_of(error.code), error.message); }

Result<int64_t> number_of(const HttpCall& call, std::string_view name, int64_t otherwise, int64_t low, int64_t high) {
  const std::string* text = call.find_query(name);
  if (text == nullptr) return otherwise;
  int64_t number = 0;
  if (!parse_number(*text, low, high, number)) {
    return invalid("{}={}: it must be a number from {} to {}", name, escape_controls(*text), low, high);
  }
  return number;
}

}  // namespace pscloud
