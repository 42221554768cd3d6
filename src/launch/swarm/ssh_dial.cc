#include "launch/swarm/ssh_dial.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

#include "base/text.h"
#include "launch/host/ssh_logins.h"

namespace pscloud {
namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-:%").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<std::function<Result<>(Fd)>> ssh_dial(const std::string& address) {
  const Error wrong = invalid("'{}' is no address like ssh://user@host or ssh://user@host:22", address);
  constexpr std::string_view kScheme = "ssh://";
  std::string_view rest = address;
  if (!rest.starts_with(kScheme)) return wrong;
  rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::vector<std::string> ssh{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    if (!is_plain(rest.substr(0, at))) return wrong;
    ssh.insert(ssh.end(), {"-l", std::string(rest.substr(0, at))});
    rest.remove_prefix(at + 1);
  }
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && !rest.ends_with(']')) {
    int port = 0;
    if (!parse_number(rest.substr(colon + 1), 1, 65535, port)) return wrong;
    ssh.insert(ssh.end(), {"-p", std::to_string(port)});
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (!is_plain(rest)) return wrong;
  ssh.insert(ssh.end(), {"--", std::string(rest)});
  return dial_by(std::move(ssh));
}

std::function<Result<>(Fd)> dial_by(std::vector<std::string> ssh) {
  ssh.insert(ssh.end(), {"docker", "system", "dial-stdio"});
  auto logins = std::make_shared<SshLogins>(std::move(ssh));
  return [logins](const Fd& connection) { return logins->carry(connection); };
}

}  // namespace pscloud
