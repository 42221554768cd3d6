#include "launch/swarm/machine_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "launch/bundle/bundle.h"
#include "launch/bundle/image_archive.h"

namespace pscloud {
namespace {

constexpr std::string_view kProgram = "pscloud";
constexpr size_t kHashDigits = 32;

bool runs_only_ours(const RoleSpec& role) {
  return !role.commands.empty() && std::ranges::all_of(role.commands, [](const std::vector<std::string>& command) {
    return !command.empty() && command.front() == kProgram;
  });
}

Result<std::string> id_of_image(DockerEngine& engine, const std::string& name) {
  return TRY(engine.get(fmt::format("/images/{}/json", name)))["Id"].text();
}

}  // namespace

Result<std::string> own_image_name() { return fmt::format("{}:{}", kProgram, TRY(own_bundle()).hash); }

bool is_own_image(std::string_view name) {
  if (!name.starts_with(kProgram)) return false;
  name.remove_prefix(kProgram.size());
  return name.size() == 1 + kHashDigits && name.front() == ':' &&
         name.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

Result<> use_own_image(const Cluster& cluster, Job& job) {
  if (cluster.target != "swarm" || cluster.hosts.empty() || !cluster.image.empty()) return {};
  std::string name;
  for (RoleSpec& role : job.roles) {
    if (!role.image.empty() || !runs_only_ours(role)) continue;
    if (name.empty()) name = TRY(own_image_name());
    role.image = name;
  }
  return {};
}

Result<std::string> load_own_image(const std::vector<Host>& machines, const std::string& ssh_config,
                                   const std::string& name) {
  Mutex mutex;
  std::map<std::string, std::string> ids;  // of the image, by machine
  const auto look = [&](const Host& machine, DockerEngine& engine) -> Result<> {
    auto id = id_of_image(engine, name);
    if (!id && id.error().code == Code::kNotFound) return {};
    std::string found = TRY(std::move(id));
    MutexLock lock(mutex);
    ids[machine.name] = std::move(found);
    return {};
  };
  TRY(on_each_engine(machines, ssh_config, look));
  std::vector<Host> without;
  for (const Host& machine : machines) {
    if (!ids.contains(machine.name)) without.push_back(machine);
  }
  if (!without.empty()) {
    const ImageSpec spec = TRY(own_image(name));
    const std::string archive = TRY(image_archive(spec));
    TRY(on_each_engine(without, ssh_config, [&](const Host& machine, DockerEngine& engine) -> Result<> {
      TRY(engine.load_image(archive));
      return look(machine, engine);
    }));
  }
  std::string id;
  for (const Host& machine : machines) {
    const std::string& there = ids[machine.name];
    if (there.empty()) return unavailable("{} has not got the image {}", machine.name, name);
    if (!id.empty() && there != id) return name;  // engines of several kinds: a name is what they have in common
    id = there;
  }
  return id;
}

}  // namespace pscloud
