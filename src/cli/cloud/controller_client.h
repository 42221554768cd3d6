#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json_value.h"
#include "io/http_client.h"
#include "launch/host/ssh_tunnel.h"
#include "pscloud/error.h"

namespace CLI {
class App;
}

namespace pscloud {

// What a verb takes that can ask a controller, or a console, instead of looking at this machine.
struct ControllerFlags {
  std::string controller;  // empty: none
  std::string token_file;
  std::string ca_file;
};
void add_controller_flags(CLI::App& verb, ControllerFlags& flags);

// How a controller is reached. Kept for each that was started from here, in a file of mode 0600 below `controllers`
// beside the folder of runs, under the name of its run.
struct ControllerAccess {
  std::string url;
  std::string token;
  std::string ca_pem;  // the only authority that is believed; empty: the system's
  // In the cloud, whose controller answers on the loopback of its machine, and is reached through ssh; empty: directly.
  std::string cluster;
};
Result<> keep_access(const std::string& name, const ControllerAccess& access);
// By that name or by a URL; the token of another URL is in a file or in $PSCLOUD_TOKEN, never on a command line.
Result<ControllerAccess> find_access(const ControllerFlags& flags);
// The way to one that is reached through ssh; null for others.
Result<std::unique_ptr<SshTunnel>> open_tunnel(const ControllerAccess& access);

// Asks the API of docs/controller.md.
class ControllerClient {
 public:
  static Result<ControllerClient> open(const ControllerFlags& flags);

  Result<JsonValue> get(const std::string& path);
  Result<JsonValue> post(const std::string& path);
  // Bytes of a log from `offset` on, a megabyte at most; empty if it has no more now.
  Result<std::string> read_log(const std::string& run, const std::string& task, uint64_t offset);

 private:
  ControllerClient(ControllerAccess access, std::unique_ptr<SshTunnel> tunnel);
  Result<HttpResponse> send(const char* method, const std::string& path, const HttpHeaders& headers);

  ControllerAccess access_;
  std::unique_ptr<SshTunnel> tunnel_;  // outlives the client
  std::unique_ptr<HttpClient> http_;
};

}  // namespace pscloud
