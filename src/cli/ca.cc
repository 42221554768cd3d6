#include <fmt/chrono.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/verb.h"
#include "net/certificate.h"

namespace pscloud {
namespace {

constexpr const char* kCaAbout = R"(Makes the certificates by which the nodes of a cluster know each other.

  pscloud ca init ca --cluster blue                        once, somewhere safe
  pscloud ca issue ca --role scheduler --out tls/scheduler
  pscloud ca issue ca --role server --out tls/server
  pscloud ca issue ca --role worker --out tls/worker
  pscloud node --role server --tls-dir tls/server ...      on each node, its own

Copy to a node only the directory issued for it. Whoever has ca.key can join.)";

constexpr Role kRoles[] = {Role::kScheduler, Role::kServer, Role::kWorker};

std::string date(time_t time) { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time)); }
std::string date_time(time_t time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time)); }

// A full disk is no cluster that cannot be reached.
int fail_here(const Error& error) {
  const int code = fail(error);
  return code == kExitUnreachable ? kExitFailed : code;
}

struct InitFlags {
  std::string dir;
  std::string cluster;
  int days = 365;
};

int init(const InitFlags& flags) {
  const auto made = make_ca(flags.dir, flags.cluster, std::chrono::days(flags.days));
  if (!made) return fail_here(made.error());
  const auto info = read_certificate(flags.dir + "/ca.pem");
  if (!info) return fail_here(info.error());
  fmt::print("made a CA for cluster {} in {}, valid until {}\n", info->cluster, flags.dir, date(info->not_after));
  fmt::print("  ca.key stays there and secret; `pscloud ca issue` makes what the nodes need\n");
  return kExitDone;
}

struct IssueFlags {
  std::string dir;
  std::string out;
  std::string role;
  std::string name;
  int days = 30;
  std::optional<int64_t> seconds;  // instead of days
};

int issue(const IssueFlags& flags) {
  Role role = Role::kWorker;
  for (const Role each : kRoles) {
    if (flags.role == role_name(each)) role = each;
  }
  const std::string name = flags.name.empty() ? flags.role : flags.name;
  const std::chrono::seconds validity =
      flags.seconds ? std::chrono::seconds(*flags.seconds) : std::chrono::days(flags.days);
  const auto issued = issue_certificate(flags.dir, flags.out, role, name, validity);
  if (!issued) return fail_here(issued.error());
  const auto info = read_certificate(flags.out + "/node.pem");
  if (!info) return fail_here(info.error());
  const NodeIdentity identity{info->cluster, role, info->name};
  fmt::print("issued {} to {}, valid until {}\n", identity.uri(), flags.out, date(info->not_after));
  return kExitDone;
}

struct ShowFlags {
  std::string file;
  bool json = false;
};

int show(const ShowFlags& flags) {
  const auto info = read_certificate(flags.file);
  if (!info) return fail_here(info.error());
  const bool expired = info->not_after < ::time(nullptr);
  if (flags.json) {
    JsonWriter writer;
    writer.begin_object().field("subject", info->subject).field("cluster", info->cluster).field("role", info->role);
    writer.field("name", info->name).field("not_before", date_time(info->not_before));
    writer.field("not_after", date_time(info->not_after)).field("expired", expired);
    writer.field("fingerprint_sha256", info->fingerprint_sha256).end_object();
    fmt::print("{}\n", writer.text());
    return kExitDone;
  }
  fmt::print("subject      {}\n", escape_controls(info->subject));
  fmt::print("cluster      {}\n", info->cluster);
  fmt::print("role         {}\n", info->role);
  if (!info->name.empty()) fmt::print("name         {}\n", info->name);
  fmt::print("not before   {}\n", date_time(info->not_before));
  fmt::print("not after    {}{}\n", date_time(info->not_after), expired ? "  (expired)" : "");
  fmt::print("fingerprint  sha256 {}\n", info->fingerprint_sha256);
  return kExitDone;
}

// A verb of `ca` whose flags live as long as its action.
template <class Flags>
std::shared_ptr<Flags> add(CLI::App& verb, Action& action, int (*run)(const Flags&)) {
  auto flags = std::make_shared<Flags>();
  verb.callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return flags;
}

}  // namespace

void add_ca(CLI::App& verb, Action& action) {
  const CLI::Range days_range(1, 36500);

  CLI::App& init_verb = *verb.add_subcommand("init", "make the certificate authority of a cluster")->group("Verbs");
  const auto init_flags = add(init_verb, action, init);
  init_verb.add_option("dir", init_flags->dir, "directory to make")->required()->type_name("DIR");
  init_verb.add_option("--cluster", init_flags->cluster, "name of the cluster: A-Z a-z 0-9 . _ -")
      ->required()
      ->type_name("NAME");
  init_verb.add_option("--days", init_flags->days, "how long it is valid [365]")->check(days_range)->type_name("N");

  CLI::App& issue_verb = *verb.add_subcommand("issue", "make the certificate of a node")->group("Verbs");
  const auto issue_flags = add(issue_verb, action, issue);
  issue_verb.add_option("dir", issue_flags->dir, "directory of the CA")->required()->type_name("DIR");
  std::vector<std::string> roles;
  for (const Role role : kRoles) roles.emplace_back(role_name(role));
  issue_verb.add_option("--role", issue_flags->role, "what the node is: scheduler, server or worker")
      ->required()
      ->check(CLI::IsMember(roles))
      ->type_name("ROLE");
  issue_verb.add_option("--name", issue_flags->name, "name of the node, for logs [its role]")->type_name("NAME");
  issue_verb.add_option("--out", issue_flags->out, "directory to write, for --tls-dir of the node")
      ->required()
      ->type_name("DIR");
  issue_verb.add_option("--days", issue_flags->days, "how long it is valid, the CA's end at most [30]")
      ->check(days_range)
      ->type_name("N");
  // For tests of what happens at the end of a certificate: a negative number makes one that has ended.
  issue_verb.add_option("--valid-seconds", issue_flags->seconds)->group("");

  CLI::App& show_verb = *verb.add_subcommand("show", "say what a certificate is")->group("Verbs");
  const auto show_flags = add(show_verb, action, show);
  show_verb.add_option("file", show_flags->file, "ca.pem or node.pem")->required()->type_name("FILE");
  show_verb.add_flag("--json", show_flags->json, "for programs");
  verb.footer(kCaAbout);  // last, or the verbs above would inherit it
}

}  // namespace pscloud
