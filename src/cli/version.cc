#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/exit_code.h"
#include "cli/verb.h"
#include "launch/process/own_program.h"
#include "net/certificate.h"

namespace pscloud {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

int print_version(bool json) {
  const std::string build = std::string(PSCLOUD_SANITIZERS).empty()
                                ? PSCLOUD_BUILD_TYPE
                                : fmt::format("{}, sanitizers {}", PSCLOUD_BUILD_TYPE, PSCLOUD_SANITIZERS);
  const std::initializer_list<const char*> features = {"inproc", "shm", "tcp", "tls", "http", "lz4", "zstd"};
  if (json) {
    JsonWriter writer;
    writer.begin_object().field("version", program_version()).field("compiler", compiler()).field("build", build);
    writer.field("openssl", openssl_version()).key("features").begin_array();
    for (const char* feature : features) writer.value(feature);
    writer.end_array().end_object();
    fmt::print("{}\n", writer.text());
    return kExitDone;
  }
  fmt::print("pscloud {}\n", program_version());
  fmt::print("compiler  {}\nbuild     {}\nopenssl   {}\nfeatures ", compiler(), build, openssl_version());
  for (const char* feature : features) fmt::print(" {}", feature);
  fmt::print("\n");
  return kExitDone;
}

}  // namespace

const char* program_version() { return own_version(); }

void add_version(CLI::App& verb, Action& action) {
  const auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "for programs");
  verb.callback([json, &action] { action = [json] { return print_version(*json); }; });
}

}  // namespace pscloud
