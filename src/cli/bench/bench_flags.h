#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pscloud {

// Flags that say in an error, not in the help, what may be given: a column of ranges hides what the flags are for.

// A number from `min` to `max`.
template <class T>
void add_number(CLI::App& verb, const char* name, T& value, T min, T max, const char* help,
                const char* placeholder = "N") {
  verb.add_option(name, value, help)->type_name(placeholder)->check(CLI::Range(min, max).description(""));
}

// One of `words`.
inline void add_choice(CLI::App& verb, const char* name, std::string& value, const std::vector<std::string>& words,
                       const char* help, const char* placeholder) {
  verb.add_option(name, value, help)->type_name(placeholder)->check(CLI::IsMember(words).description(""));
}

}  // namespace pscloud
