#include "launch/swarm/container_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/text.h"
#include "io/file_store.h"
#include "launch/contract/contract.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

std::string secret_path(const TaskFile& file) {
  constexpr std::string_view kOfFlag = "secrets/";  // --secret NAME
  std::string_view name = file.name;
  if (name.starts_with(kOfFlag)) name.remove_prefix(kOfFlag.size());
  return fmt::format("{}/{}", kContainerSecrets, name);
}

}  // namespace

int64_t parse_unix_us(const std::string& time) {
  std::tm parts{};
  const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  int64_t us = 0;
  if (*rest == '.') {
    ++rest;
    for (int64_t unit = 100000; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) us += unit * (*rest - '0');
  }
  if (std::string_view(rest) != "Z") return 0;
  return int64_t{::timegm(&parts)} * 1000000 + us;
}

ContainerTask container_task(const Plan& plan, const ClusterView& view, const PlannedTask& task) {
  const TaskSpec& spec = task.spec;
  const TaskContract contract = contract_of(plan.framework, view, spec.id, plan.run);
  ContainerTask container;
  container.name = spec.id.text();
  container.image = task.image;
  container.arguments = spec.command;
  container.arguments.insert(container.arguments.end(), contract.arguments.begin(), contract.arguments.end());
  for (const Variables* more : {&contract.variables, &spec.environment}) {
    for (const auto& [name, value] : *more) put_variable(container.variables, name, value);
  }
  for (const TaskFile& file : spec.files) {
    const std::string path = secret_path(file);
    container.secrets.push_back({path, file.content});
    if (file.variable.empty()) continue;
    put_variable(container.variables, file.variable, file.name_folder ? fs::path(path).parent_path().string() : path);
  }
  return container;
}

Result<std::vector<ContainerMount>> container_mounts(const Cluster& cluster) {
  std::vector<ContainerMount> mounts;
  for (const auto& [name, value] : cluster.options) {
    if (name != "mount") continue;
    ContainerMount mount;
    std::string_view text = value;
    if (text.ends_with(":ro")) {
      mount.read_only = true;
      text.remove_suffix(3);
    }
    const size_t colon = text.find(':');
    mount.source = text.substr(0, colon);
    mount.target = colon == std::string_view::npos ? text : text.substr(colon + 1);
    if (mount.source.empty() || !mount.target.starts_with('/') || mount.target.find(':') != std::string::npos) {
      return invalid("{}:mount={}: SOURCE:/PATH or SOURCE:/PATH:ro, where SOURCE is a path of the nodes or a volume",
                     cluster.target, value);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<ContainerUser> parse_container_user(std::string_view text) {
  ContainerUser parsed;
  const size_t colon = text.find(':');
  const bool good =
      parse_number<int64_t>(text.substr(0, colon), 0, INT32_MAX, parsed.user) &&
      (colon == std::string_view::npos || parse_number<int64_t>(text.substr(colon + 1), 0, INT32_MAX, parsed.group));
  if (good) return parsed;
  return invalid("'{}' is no user of a container: numbers, such as 1000 or 1000:1000", text);
}

Result<> check_containers(const Plan& plan, std::string_view kind) {
  for (const PlannedTask& task : plan.tasks) {
    const std::string id = task.spec.id.text();
    if (task.image.empty()) {
      return invalid("{} has no image, and {} runs nothing else: name one by --image; `pscloud image build` makes ours",
                     id, kind);
    }
    const auto refuse = [&](std::string_view what) {
      return invalid("{} of {} is not UTF-8, and {} takes nothing else: put the bytes into a file or a secret", what,
                     id, kind);
    };
    for (const std::string& word : task.spec.command) {
      if (!is_utf8(word)) return refuse(fmt::format("the argument '{}'", escape_controls(word)));
    }
    for (const auto& [name, value] : task.spec.environment) {
      if (!is_utf8(name) || !is_utf8(value)) return refuse(fmt::format("the variable {}", escape_controls(name)));
    }
  }
  return {};
}

Result<std::vector<ContainerTask::File>> container_files(const Plan& plan, uint64_t bytes_max) {
  std::vector<ContainerTask::File> files;
  const auto store = make_local_store();
  for (const std::string& path : plan.files) {
    const auto input = TRY(store->open(path, {}).at(path));
    auto content = read_all(*input, bytes_max);
    if (!content) {
      return invalid(
          "{}: {}; the cluster takes files of {} KB at most, larger ones belong into the image or on a volume", path,
          content.error().message, bytes_max / 1000);
    }
    std::string target = fmt::format("{}/{}", kContainerFiles, fs::path(path).filename().string());
    if (std::ranges::find(files, target, &ContainerTask::File::path) != files.end()) {
      return invalid("{}: another file is called so, too, and both would be {}", path, target);
    }
    files.push_back({std::move(target), *std::move(content)});
  }
  return files;
}

}  // namespace pscloud
