#include "launch/swarm/registry_auth.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"
#include "io/file_store.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

constexpr const char* kDockerHub = "https://index.docker.io/v1/";
constexpr uint64_t kConfigBytesMax = 1 << 20;

std::string config_path() {
  const std::string folder = own_variable("DOCKER_CONFIG");
  return (folder.empty() ? own_variable("HOME") + "/.docker" : folder) + "/config.json";
}

}  // namespace

Result<std::string> registry_auth(std::string_view registry) {
  const std::string nobody = base64_url("{}");
  const std::string path = config_path();
  const auto store = make_local_store();
  const auto input = store->open(path, {});
  if (!input) return nobody;
  const std::string text = TRY(read_all(**input, kConfigBytesMax).at(path));
  const JsonValue config = TRY(JsonValue::parse(text).at(path));
  const std::string_view server = registry.empty() ? kDockerHub : registry;
  const JsonValue& entry = config["auths"][server];
  const auto login = parse_base64(entry["auth"].text());
  if (!login || login->find(':') == std::string::npos) return nobody;
  const size_t colon = login->find(':');
  JsonWriter json;
  json.begin_object().field("username", login->substr(0, colon)).field("password", login->substr(colon + 1));
  json.field("serveraddress", server).end_object();
  return base64_url(json.text());
}

}  // namespace pscloud
