#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace pscloud {

// What the caller can do about an error. Few, because each must lead to a different reaction.
enum class Code {
  kInvalid,      // the request can never succeed as written: fix it
  kNotFound,     // the thing named does not exist
  kUnavailable,  // a peer or service cannot be reached now: retry later
  kTimeout,      // no answer in time; the effect is unknown
  kCorrupt,      // bytes read are not what was written
  kFailed,       // the job as a whole has failed: start it again
};

struct Error {
  Code code;
  std::string message;  // for a person: what, why and what to do; names the thing
};

// A value or an Error. Ask before use; TRY below passes the error on.
template <class T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result() = default;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}

  // The same result, its message opened with where it happened.
  Result at(std::string_view place) && {
    if (!*this) this->error().message = fmt::format("{}: {}", place, this->error().message);
    return std::move(*this);
  }
};

template <class... Args>
Error invalid(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kInvalid, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Error not_found(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kNotFound, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Error unavailable(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kUnavailable, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Error timed_out(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kTimeout, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Error corrupt(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kCorrupt, fmt::format(text, std::forward<Args>(args)...)};
}

template <class... Args>
Error job_failed(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kFailed, fmt::format(text, std::forward<Args>(args)...)};
}

namespace detail {
template <class T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
}  // namespace detail
}  // namespace pscloud

#define PSCLOUD_NAME2(a, b) a##b
#define PSCLOUD_NAME(a, b) PSCLOUD_NAME2(a, b)
// Returns by value inside: a reference into the temporary would dangle.
#define PSCLOUD_TRY(result, ...)                   \
  __extension__({                                  \
    auto result = (__VA_ARGS__);                   \
    if (!result) return std::move(result.error()); \
    ::pscloud::detail::take(std::move(result));    \
  })
// The value of a Result, or return its error from this function.
#define TRY(...) PSCLOUD_TRY(PSCLOUD_NAME(result_, __COUNTER__), __VA_ARGS__)
