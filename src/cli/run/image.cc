#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/verb.h"
#include "io/aws_signature.h"
#include "io/file_store.h"
#include "launch/bundle/image_archive.h"
#include "launch/swarm/docker_engine.h"
#include "launch/swarm/registry_auth.h"

namespace pscloud {
namespace {

constexpr const char* kBuildAbout = R"(Makes an image that holds this program and the libraries it needs, and nothing
else, and gives it to the Docker engine that DOCKER_HOST names:

  pscloud image build pscloud
  pscloud image build registry.example/team/pscloud:1 --push
  pscloud image build pscloud --load ssh://node1 --load ssh://node2
  pscloud image build pscloud --output pscloud.tar

Without a registry each node of a swarm needs the image for itself: --load,
once for each. The same program makes the same image, byte by byte.)";

struct BuildCommand {
  std::string name;
  std::vector<std::string> hosts;
  std::string output;
  bool push = false;
};

Result<> build(const BuildCommand& command) {
  TRY(check_image_name(command.name));
  std::vector<EngineAddress> engines;
  for (const std::string& host : command.hosts) engines.push_back(TRY(find_engine(host)));
  if (engines.empty() && (command.output.empty() || command.push)) engines.push_back(TRY(find_engine("")));
  const ImageSpec spec = TRY(own_image(command.name));
  const std::string archive = TRY(image_archive(spec));
  const ImageName name = split_image_name(command.name);
  fmt::print("{}:{}  {:.1f} MB  sha256 {:.12}\n", name.repository, name.tag, static_cast<double>(archive.size()) / 1e6,
             sha256_hex(archive));
  if (!command.output.empty()) {
    const auto store = make_local_store();
    const auto output = TRY(store->create(command.output));
    TRY(output->write(archive));
    TRY(output->commit());
    fmt::print("written to {}\n", command.output);
  }
  for (const EngineAddress& address : engines) {
    DockerEngine engine(address);
    TRY(engine.load_image(archive));
    fmt::print("loaded at {}\n", address.text);
  }
  if (!command.push) return {};
  DockerEngine engine(engines.front());
  TRY(engine.push_image(name.repository, name.tag, TRY(registry_auth(name.registry))));
  fmt::print("pushed to {}\n", name.registry.empty() ? "Docker Hub" : name.registry);
  return {};
}

int run_build(const BuildCommand& command) {
  if (const auto built = build(command); !built) return fail(built.error());
  return kExitDone;
}

}  // namespace

void add_image(CLI::App& verb, Action& action) {
  verb.require_subcommand(1);
  CLI::App& build = *verb.add_subcommand("build", "make it, and give it to Docker engines")->group("Verbs");
  const auto command = std::make_shared<BuildCommand>();
  build.add_option("name", command->name, "of the image, with its registry, perhaps :TAG")
      ->type_name("NAME")
      ->required();
  build.add_option("--load", command->hosts, "an engine to give it to: ssh://host, unix://..., tcp://...")
      ->type_name("HOST")
      ->allow_extra_args(false);
  build.add_flag("--push", command->push, "to the registry of its name, through the first engine");
  build.add_option("--output", command->output, "a file for `docker load`, in place of an engine")->type_name("FILE");
  build.footer(kBuildAbout);
  build.callback([command, &action] { action = [command] { return run_build(*command); }; });
}

}  // namespace pscloud
