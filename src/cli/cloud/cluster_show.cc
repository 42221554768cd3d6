#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/cluster_verb.h"
#include "cli/exit_code.h"
#include "cli/table_text.h"
#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/cloud/cloud_sweep.h"
#include "launch/cloud/machine_wait.h"
#include "launch/cloud/ssh_door.h"

namespace pscloud {
namespace {

int64_t seconds_since(int64_t unix_s) { return unix_seconds_now() - unix_s; }

std::string step_of(const RunFolder& folder, const CloudState& state) {
  // Nobody is at it any more, and it is neither up nor gone.
  return state.step != "up" && state.step != "given" && !folder.is_watched() ? "broken" : state.step;
}

struct ListCommand {
  bool account = false;
  bool json = false;
  std::string region;
  std::string endpoint;
};

// A cluster that has things in the account, by its tags.
struct AccountCluster {
  std::string name;
  std::string owner;
  int machines = 0;
};

Result<std::map<std::string, AccountCluster>> ask_account(const ListCommand& command) {
  AwsApi api = TRY(AwsApi::open({.region = command.region, .endpoint = command.endpoint}));
  std::map<std::string, AccountCluster> found;
  for (const TaggedThing& thing : TRY(list_account(api))) {
    AccountCluster& cluster = found[thing.cloud_id];
    cluster.name = thing.cluster;
    cluster.owner = thing.owner;
    if (thing.kind == "instances") ++cluster.machines;
  }
  return found;
}

int show_account(const ListCommand& command) {
  const auto found = ask_account(command);
  if (!found) return fail(found.error());
  JsonWriter json;
  json.begin_object().key("clusters").begin_array();
  for (const auto& [id, cluster] : *found) {
    json.begin_object().field("id", id).field("name", cluster.name).field("owner", cluster.owner);
    json.field("machines", cluster.machines).end_object();
    if (!command.json) {
      fmt::print("{:<16}  {:<16} {:>3} machines  {}\n", id, escape_controls(cluster.name), cluster.machines,
                 escape_controls(cluster.owner));
    }
  }
  if (command.json) fmt::print("{}\n", json.end_array().end_object().text());
  if (found->empty() && !command.json) fmt::print("the account has nothing of pscloud's\n");
  return kExitDone;
}

int run_list(const ListCommand& command) {
  if (command.account) return show_account(command);
  const auto clusters = find_clusters_folder();
  if (!clusters) return fail(clusters.error());
  JsonWriter json;
  json.begin_object().key("clusters").begin_array();
  const std::vector<std::string> names = list_clouds();
  if (!names.empty() && !command.json) {
    fmt::print("{:<16} {:<8} {:>8}  {:<14} {:>5} {:>10}\n", "NAME", "STATE", "MACHINES", "ZONE", "SINCE", "$/H");
  }
  for (const std::string& name : names) {
    const auto folder = RunFolder::open(*clusters, name);
    if (!folder) continue;
    const auto state = read_cloud_state(*folder);
    if (!state) return fail(state.error());
    const auto [dollars, all] = state->plan.dollars_per_hour();
    const std::string step = step_of(*folder, *state);
    json.begin_object().field("name", name).field("id", state->plan.id).field("state", step);
    json.field("machines", state->plan.machines()).field("zone", state->plan.zone);
    json.field("made_unix", state->made_unix).field("dollars_per_hour", dollars).field("price_complete", all);
    json.end_object();
    if (command.json) continue;
    fmt::print("{:<16} {:<8} {:>8}  {:<14} {:>5} {:>10}\n", name, step, state->plan.machines(), state->plan.zone,
               age_text(state->made_unix * 1000), all ? fmt::format("{:.4f}", dollars) : "unknown");
  }
  if (command.json) fmt::print("{}\n", json.end_array().end_object().text());
  if (names.empty() && !command.json) fmt::print("no cluster: `pscloud cluster up --help` tells how to make one\n");
  return kExitDone;
}

struct ShowCommand {
  std::string name;
  bool json = false;
};

int run_show(const ShowCommand& command) {
  const auto folder = open_cloud_folder(command.name);
  if (!folder) return fail(folder.error());
  const auto state = read_cloud_state(*folder);
  if (!state) return fail(state.error());
  auto api = AwsApi::open({.region = state->plan.region, .endpoint = state->plan.endpoint});
  if (!api) return fail(api.error());
  const auto instances = list_instances(*api, state->plan.id);
  if (!instances) return fail(instances.error());
  std::map<std::string, const Ec2Instance*> by_id;
  for (const Ec2Instance& instance : *instances) by_id[instance.id] = &instance;
  const auto [dollars, all] = state->plan.dollars_per_hour();
  const double spent = dollars * static_cast<double>(seconds_since(state->made_unix)) / 3600;
  JsonWriter json;
  json.begin_object().field("name", command.name).field("id", state->plan.id);
  json.field("state", step_of(*folder, *state)).field("folder", folder->path());
  json.field("dollars_so_far", spent).field("price_complete", all);
  if (state->plan.swarm) json.field("swarm_manager", state->plan.manager());
  json.key("machines").begin_array();
  if (!command.json) {
    fmt::print("{} ({}), {} in {}, since {}; {}${:.2f} so far; its folder is {}\n", command.name,
               step_of(*folder, *state), state->plan.id, state->plan.zone, age_text(state->made_unix * 1000),
               all ? "" : "more than ", spent, folder->path());
    if (state->plan.swarm) fmt::print("a Docker Swarm, which {} manages\n", state->plan.manager());
  }
  for (const CloudMachine& machine : state->machines) {
    const auto found = by_id.find(machine.instance);
    const std::string now = found == by_id.end() ? "gone" : found->second->state;
    json.begin_object().field("name", machine.name).field("instance", machine.instance).field("state", now);
    json.field("private_address", machine.private_address).field("public_address", machine.public_address);
    json.field("spot", machine.spot).end_object();
    if (command.json) continue;
    fmt::print("{:<12} {:<20} {:<14} {:<16} {:<16} {}\n", machine.name, machine.instance, now, machine.private_address,
               machine.public_address, machine.spot ? "spot" : "on demand");
  }
  if (command.json) fmt::print("{}\n", json.end_array().end_object().text());
  return kExitDone;
}

struct KeepCommand {
  std::string name;
  bool moves = false;    // the door for ssh
  std::string ssh_from;  // to there; empty: to this machine's address
};

int run_keep(const KeepCommand& command) {
  if (command.moves) {
    const auto block = move_ssh_door(command.name, command.ssh_from);
    if (!block) return fail(block.error());
    fmt::print("{}: ssh from {}, and from nowhere else\n", command.name, *block);
  }
  const auto folder = open_cloud_folder(command.name);
  if (!folder) return fail(folder.error());
  const auto state = read_cloud_state(*folder);
  if (!state) return fail(state.error());
  std::vector<Host> hosts;
  for (const CloudMachine& machine : state->machines) hosts.push_back(host_of_machine(*folder, *state, machine));
  const std::vector<std::string> wrong = keep_machines(hosts, folder->path("ssh_config"));
  for (const std::string& line : wrong) fmt::print(stderr, "pscloud: {}\n", escape_controls(line));
  if (!wrong.empty()) {
    fmt::print(stderr,
               "  ssh is let in from {} only: if this machine has another address by now, `pscloud cluster keep {} "
               "--ssh-from`\n",
               state->plan.ssh_from, command.name);
  }
  if (wrong.empty()) {
    fmt::print("{}: {} machines go on for {} at least\n", command.name, hosts.size(),
               duration_text(state->plan.idle_s));
  }
  return wrong.empty() ? kExitDone : kExitUnreachable;
}

}  // namespace

void add_cluster_ls(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ListCommand>();
  verb.add_flag("--account", command->account, "ask EC2 what of ours the account has, also of other machines");
  verb.add_option("--region", command->region, "with --account")->type_name("NAME");
  verb.add_option("--endpoint", command->endpoint, "with --account")->type_name("URL");
  verb.add_flag("--json", command->json, "for programs");
  verb.callback([command, &action] { action = [command] { return run_list(*command); }; });
}

void add_cluster_show(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ShowCommand>();
  verb.add_option("name", command->name, "`pscloud cluster ls` lists them")->type_name("NAME")->required();
  verb.add_flag("--json", command->json, "for programs");
  verb.callback([command, &action] { action = [command] { return run_show(*command); }; });
}

void add_cluster_keep(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<KeepCommand>();
  verb.add_option("name", command->name, "`pscloud cluster ls` lists them")->type_name("NAME")->required();
  const CLI::Option* from =
      verb.add_option("--ssh-from", command->ssh_from,
                      "let ssh in from there, and no longer from where it came before [this machine's address]")
          ->type_name("BLOCK")
          ->expected(0, 1);
  verb.callback([command, from, &action] {
    command->moves = from->count() > 0;
    action = [command] { return run_keep(*command); };
  });
}

}  // namespace pscloud
