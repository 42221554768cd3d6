#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "cli/agreement.h"
#include "cli/cloud/cluster_verb.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "io/file_store.h"
#include "launch/cloud/cloud_survey.h"
#include "launch/cloud/cloud_up.h"

namespace pscloud {
namespace {

constexpr uint64_t kSetupBytesMax = 16384;

constexpr const char* kUpAbout = R"(Makes machines of Amazon EC2 that `--on NAME` then runs jobs on:

  pscloud cluster up blue --nodes 3 --instance c5.xlarge
  pscloud cluster up blue --nodes 5 --instance c5.xlarge --spot --max-price 0.08
  pscloud cluster up blue --nodes 5 --servers 2 --servers-instance r5.xlarge \
      --workers-instance c5.4xlarge --placement
  pscloud cluster up blue --nodes 3 --instance c5.xlarge --swarm   tasks are containers
  pscloud cluster up blue --nodes 3 --instance c5.xlarge --plan    only says

  pscloud cluster up blue --nodes 3 --instance c5.xlarge --controller
  pscloud run --on blue --detach ...      and the laptop may be closed

With --spot, or different types, one machine (--servers) is for servers and the
scheduler, on demand, and the others are for workers.)";

struct UpCommand {
  CloudRequest request;
  std::string provider = "ec2";
  std::string region;
  std::string endpoint;
  std::string setup_file;
  std::string idle = "1h";
  std::string life = "24h";
  int timeout_s = 900;
  int settle_s = 10;
  bool plan = false;
  bool yes = false;
  bool json = false;
};

Result<> complete(UpCommand& command) {
  if (command.provider != "ec2") return invalid("--provider {}: there is ec2 only", command.provider);
  command.request.idle_s = TRY(parse_duration(command.idle).at("--idle"));
  command.request.life_s = TRY(parse_duration(command.life).at("--life"));
  if (command.setup_file.empty()) return {};
  const auto store = make_local_store();
  const auto input = TRY(store->open(command.setup_file, {}));
  command.request.setup = TRY(read_all(*input, kSetupBytesMax).at(command.setup_file));
  if (!command.request.setup.starts_with("#!")) {
    return invalid("{}: a set-up script begins with #! and the program that runs it", command.setup_file);
  }
  return {};
}

void print_up(const CloudState& state, bool json) {
  if (json) {
    fmt::print("{}", cloud_state_json(state));
    return;
  }
  const std::string& name = state.plan.name;
  for (const CloudMachine& machine : state.machines) {
    fmt::print("{:<12} {:<20} {:<16} {}\n", machine.name, machine.instance, machine.private_address,
               machine.public_address);
  }
  fmt::print(stderr, "pscloud: cluster {} is up: `pscloud run --on {} ...`, `pscloud cluster down {}`\n", name, name,
             name);
}

int run_up(UpCommand command) {
  if (const auto complete_command = complete(command); !complete_command) return fail(complete_command.error());
  const Interruption interruption;
  auto api =
      AwsApi::open({.cancelled = interruption.cancelled(), .region = command.region, .endpoint = command.endpoint});
  if (!api) return fail(api.error());
  const auto plan = survey_cloud(*api, command.request, new_cloud_id());
  if (interruption.happened()) return fail_interrupted();
  if (!plan) return fail(plan.error());
  if (!command.json) {
    fmt::print(command.plan ? stdout : stderr, "{}", cloud_plan_text(*plan));
  } else if (command.plan) {
    fmt::print("{}\n", cloud_plan_json(*plan));
  }
  if (const auto allowed = check_quotas(*plan); !allowed) return fail(allowed.error());
  if (command.plan) return kExitDone;
  if (!command.yes && (::isatty(STDIN_FILENO) == 0 || command.json)) {
    return fail_usage("nobody is there to be asked", "-y says that all of it may be made; nothing was made");
  }
  if (!command.yes && !agrees("\nmake this? [y/N] ", STDIN_FILENO, interruption.cancelled())) {
    fmt::print(stderr, "pscloud: nothing was made\n");
    return interruption.happened() ? kExitInterrupted : kExitFailed;
  }
  const auto say = [](std::string_view line) { fmt::print(stderr, "pscloud: {}\n", escape_controls(line)); };
  const auto state = bring_up(*plan, {.say = say,
                                      .cancelled = interruption.cancelled(),
                                      .timeout = std::chrono::seconds(command.timeout_s),
                                      .settle = std::chrono::seconds(command.settle_s)});
  if (!state) {
    // The end of a machine's log has lines of its own.
    const std::string& text = state.error().message;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      fmt::print(stderr, "{}{}\n", at == 0 ? "pscloud: " : "    ", escape_controls(text.substr(at, end - at)));
      at = end + 1;
    }
    return interruption.happened() ? kExitInterrupted : exit_code(state.error().code);
  }
  print_up(*state, command.json);
  return kExitDone;
}

}  // namespace

void add_cluster_up(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<UpCommand>();
  CloudRequest& request = command->request;
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return verb.add_option(name, value, help)->type_name(type);
  };
  add("name", request.name, "of the cluster: a-z 0-9 - _", "NAME")->required();
  add("--provider", command->provider, "whose machines [ec2]", "NAME");
  add("--nodes", request.nodes, "how many machines [1]", "N")->check(CLI::PositiveNumber);
  add("--instance", request.instance, "their type: c5.xlarge, say", "TYPE");
  add("--servers", request.servers, "so many of them for servers and the scheduler alone", "N")
      ->check(CLI::NonNegativeNumber);
  add("--servers-instance", request.servers_instance, "type of those [--instance]", "TYPE");
  add("--workers-instance", request.workers_instance, "type of the others [--instance]", "TYPE");
  verb.add_flag("--spot", request.spot, "workers on spot machines, which cost less and may be taken away");
  add("--max-price", request.max_price, "of a spot machine, dollars an hour [as on demand]", "PRICE");
  verb.add_flag("--on-demand-fallback", request.on_demand_fallback,
                "for a spot machine that is taken away, if there is no other spot machine");
  add("--zone", request.zone, "availability zone [the first that has the types and capacity]", "ZONE");
  add("--subnet", request.subnet, "one of yours [one that fits is made]", "ID");
  verb.add_flag("--private", request.private_addresses, "no public addresses: this machine is in that network");
  add("--ssh-from", request.ssh_from, "who may come by ssh [this machine's address]", "BLOCK");
  verb.add_flag("--placement", request.placement, "machines near each other (a placement group)");
  add("--image", request.image, "to boot [the newest Debian 12]", "AMI");
  add("--user", request.user, "that the image logs in [known for usual images]", "NAME");
  add("--instance-profile", request.instance_profile, "role of the machines, for S3", "NAME");
  verb.add_flag("--controller", request.controller,
                "one small machine more, for runs with --detach: it takes all down at their end");
  add("--controller-instance", request.controller_instance, "its type [t3.micro]", "TYPE");
  add("--controller-profile", request.controller_profile, "its role [each run lends it keys]", "NAME");
  add("--setup", command->setup_file, "a script for each machine, run as root; no secrets in it", "FILE");
  verb.add_flag("--docker", request.docker, "a container engine on each machine");
  verb.add_flag("--swarm", request.swarm, "and a Docker Swarm of them, where tasks are containers");
  add("--idle", command->idle, "machines end themselves after so long without a word [1h]", "TIME");
  add("--life", command->life, "and after so long anyway [24h]", "TIME");
  add("--timeout", command->timeout_s, "for machines to run, and to get ready [900]", "SECONDS")
      ->check(CLI::Range(1, 86400));
  add("--settle", command->settle_s, "what was made may be listed so late, by EC2 [10]", "SECONDS")
      ->check(CLI::Range(0, 600));
  add("--region", command->region, "[as AWS_REGION or the profile says]", "NAME");
  add("--endpoint", command->endpoint, "of EC2 [as AWS_ENDPOINT_URL_EC2 says, or Amazon's]", "URL");
  verb.add_flag("--plan", command->plan, "say what would be made, and make nothing");
  verb.add_flag("-y,--yes", command->yes, "do not ask");
  verb.add_flag("--json", command->json, "for programs");
  verb.footer(kUpAbout);
  verb.callback([command, &action] { action = [command] { return run_up(*command); }; });
}

}  // namespace pscloud
