#include "launch/job_certificates.h"

#include <algorithm>
#include <chrono>

#include "net/certificate.h"

namespace pscloud {
namespace {

constexpr std::chrono::days kJobDaysMax{365};  // a connection that is made later finds certificates that have ended

// What our nodes call it; a chief or an evaluator is none of them.
Role node_role(TaskRole role) {
  switch (role) {
    case TaskRole::kScheduler: return Role::kScheduler;
    case TaskRole::kServer: return Role::kServer;
    default: return Role::kWorker;
  }
}

bool says_how_to_trust(const Variables& variables) {
  return std::ranges::any_of(variables, [](const auto& variable) {
    return variable.first == "PSCLOUD_TLS_DIR" || variable.first == "PSCLOUD_INSECURE";
  });
}

bool runs_our_node(const RoleSpec& role) {
  return std::ranges::any_of(role.commands, [](const std::vector<std::string>& command) {
    return command.size() >= 2 && command[0] == "pscloud" && command[1] == "node";
  });
}

}  // namespace

bool wants_certificates(const Job& job) {
  const auto says = [](const RoleSpec& role) { return says_how_to_trust(role.environment); };
  const auto is_scheduler = [&](const RoleSpec& role) {
    return job.framework == Framework::kPscloud && role.role == TaskRole::kScheduler && role.count > 0;
  };
  const bool ours = std::ranges::any_of(job.roles, runs_our_node) || std::ranges::any_of(job.roles, is_scheduler);
  return ours && !says_how_to_trust(job.environment) && std::ranges::none_of(job.roles, says);
}

Result<> add_certificates(Job& job) {
  std::vector<NodeName> nodes;
  for (const RoleSpec& role : job.roles) nodes.push_back({node_role(role.role), role_name(role.role)});
  const std::vector<NodePems> issued = TRY(issue_for_job(job.run.empty() ? "job" : job.run, nodes, kJobDaysMax));
  for (size_t i = 0; i < issued.size(); ++i) {
    std::vector<TaskFile>& secrets = job.roles[i].secrets;
    secrets.push_back({"tls/ca.pem", issued[i].ca, "PSCLOUD_TLS_DIR", true});
    secrets.push_back({"tls/node.pem", issued[i].certificate, "", false});
    secrets.push_back({"tls/node.key", issued[i].key, "", false});
  }
  return {};
}

}  // namespace pscloud
