#include "launch/agent/host_service.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/base64.h"
#include "base/json.h"
#include "launch/agent/machine_clean.h"
#include "launch/agent/own_address.h"
#include "launch/agent/task_program.h"
#include "launch/bundle/bundle_cache.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr int kProbeTimeoutMs = 5000;
constexpr std::chrono::days kFilesKept{7};

// Where the bundle (ssh_connection.cc), copied files and the folders of tasks are.
std::string find_cache_folder() {
  const std::string cache = own_variable("XDG_CACHE_HOME");
  return (cache.empty() ? own_variable("HOME") + "/.cache" : cache) + "/pscloud";
}

// The address of this machine by which the launcher came, as sshd has it: "client port server port".
std::string address_by_ssh() {
  const std::string text = own_variable("SSH_CONNECTION");
  const size_t first = text.find(' '), second = text.find(' ', first + 1), third = text.find(' ', second + 1);
  if (third == std::string::npos) return "";
  return text.substr(second + 1, third - second - 1);
}

std::string list_json(const char* name, const auto& texts) {
  JsonWriter json;
  json.begin_object().key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  return json.end_array().end_object().text();
}

Result<std::string> check_programs(const JsonValue& question) {
  std::set<std::string> wrong;
  for (const JsonValue& value : question["specs"].items()) {
    const TaskSpec spec = TRY(parse_task_spec(value));
    if (auto found = task_program(spec, {}, {}); !found) wrong.insert(found.error().message);
  }
  return list_json("wrong", wrong);
}

Result<std::string> probe_others(const JsonValue& question) {
  std::vector<Address> addresses;
  for (const JsonValue& value : question["addresses"].items()) addresses.push_back(TRY(parse_address(value.text())));
  return list_json("wrong", probe(addresses, kProbeTimeoutMs));
}

}  // namespace

HostService::HostService()
    : cache_folder_(find_cache_folder()), own_bundle_(hold_own_bundle()), files_(cache_folder_ + "/files") {}

Result<std::string> HostService::hello(const JsonValue& question) const {
  // Once for each use of the machine: what earlier ones have left takes no part of it.
  prune_bundles(cache_folder_, std::chrono::file_clock::now());
  files_.prune(std::chrono::file_clock::now() - kFilesKept);
  const auto self = identify_process(::getpid());
  if (!self) return unavailable("/proc does not show this process");
  std::string address = question["interface"].text();
  if (address.empty()) address = address_by_ssh();
  JsonWriter json;
  json.begin_object().field("host", own_host_name()).field("process", self->text()).field("cache", cache_folder_);
  json.field("address", TRY(own_address(address)));
  std::error_code ignored;
  json.field("has_folder", fs::is_directory(question["folder"].text(), ignored));
  return json.end_object().text();
}

Result<std::string> HostService::listen(const JsonValue& question) {
  probed_ = TRY(listen_for_probes(question["host"].text()));
  JsonWriter json;
  json.begin_object().field("address", probed_->address.text());
  return json.end_object().text();
}

Result<std::string> HostService::missing(const JsonValue& question) const {
  std::set<std::string> hashes;
  for (const ShippedFile& file : TRY(parse_shipped(question["files"]))) {
    if (!files_.has(file)) hashes.insert(file.hash);
  }
  return list_json("missing", hashes);
}

Result<std::string> HostService::put(const JsonValue& question) {
  const auto piece = parse_base64(question["piece"].text());
  if (!piece) return corrupt("a piece of a file is not base64");
  TRY(files_.put(question["hash"].text(), *piece, question["last"].truth()));
  return std::string("{}");
}

Result<std::string> HostService::try_answer(const std::string& what, const JsonValue& question) {
  if (what == "hello") return hello(question);
  if (what == "programs") return check_programs(question);
  if (what == "listen") return listen(question);
  if (what == "probe") return probe_others(question);
  if (what == "quiet") return std::string("{}");
  if (what == "missing") return missing(question);
  if (what == "put") return put(question);
  if (what == "place") {
    for (const JsonValue& folder : question["folders"].items()) {
      TRY(files_.place(TRY(parse_shipped(question["files"])), folder.text()));
    }
    return std::string("{}");
  }
  if (what == "clean") return list_json("left", clean_machine(TRY(parse_remains(question["remains"]))));
  return invalid("an agent cannot answer '{}'", what);
}

std::string HostService::answer(const JsonValue& question) {
  const std::string& what = question["what"].text();
  if (what != "probe" && what != "listen") probed_.reset();  // all have had their try
  auto answer = try_answer(what, question);
  if (answer) return *std::move(answer);
  JsonWriter json;
  json.begin_object().field("error", answer.error().message);
  return json.end_object().text();
}

}  // namespace pscloud
