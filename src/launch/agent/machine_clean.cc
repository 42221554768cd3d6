#include "launch/agent/machine_clean.h"

#include <fmt/format.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "base/json.h"
#include "launch/agent/task_runner.h"
#include "launch/process/processes.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr int kAgentMarginMs = 5000;
constexpr int kProcessesTimeoutMs = 10000;

bool wait_for_end(const ProcessIdentity& process, int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (is_alive(process)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<ProcessIdentity> noted_processes(const MachineRemains& remains) {
  std::vector<ProcessIdentity> found;
  for (const std::string& task : remains.tasks) {
    std::ifstream file(fs::path(remains.folder) / task / kProcessFile);
    std::string line;
    if (!std::getline(file, line)) continue;
    const auto process = parse_process_identity(line);
    if (process && is_alive(*process)) found.push_back(*process);
  }
  return found;
}

void read_texts(const JsonValue& array, std::vector<std::string>& texts) {
  for (const JsonValue& item : array.items()) texts.push_back(item.text());
}

void write_texts(JsonWriter& json, const char* name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

}  // namespace

std::string remains_json(const MachineRemains& remains) {
  JsonWriter json;
  json.begin_object().field("job", remains.job).field("agent", remains.agent).field("folder", remains.folder);
  write_texts(json, "tasks", remains.tasks);
  write_texts(json, "folders", remains.folders);
  return json.field("grace_ms", remains.grace_ms).end_object().text();
}

Result<MachineRemains> parse_remains(const JsonValue& value) {
  MachineRemains remains;
  remains.job = value["job"].text();
  // It is looked for by this name: without one, everybody's would be found.
  if (remains.job.empty()) return corrupt("what is left of a job has no name");
  remains.agent = value["agent"].text();
  remains.folder = value["folder"].text();
  read_texts(value["tasks"], remains.tasks);
  read_texts(value["folders"], remains.folders);
  remains.grace_ms = static_cast<int>(std::clamp<int64_t>(value["grace_ms"].integer(), 0, 3600 * 1000));
  return remains;
}

std::vector<std::string> clean_machine(const MachineRemains& remains) {
  std::vector<std::string> left;
  if (const auto agent = parse_process_identity(remains.agent); agent && is_alive(*agent)) {
    ::kill(agent->pid, SIGTERM);
    if (!wait_for_end(*agent, remains.grace_ms + kAgentMarginMs)) ::kill(agent->pid, SIGKILL);
    if (!wait_for_end(*agent, kAgentMarginMs)) left.push_back(fmt::format("the agent, process {}", agent->pid));
  }
  for (const ProcessIdentity& process : noted_processes(remains)) ::kill(-process.pid, SIGKILL);
  const std::string mark = fmt::format("{}={}/", kTaskMark, remains.job);
  const auto marked = [&] { return processes_with_entry(mark, true); };
  if (!kill_all(marked, kProcessesTimeoutMs)) {
    for (const ProcessIdentity& process : marked()) left.push_back(fmt::format("process {}", process.pid));
  }
  std::vector<fs::path> folders(remains.folders.begin(), remains.folders.end());
  for (const std::string& task : remains.tasks) {
    if (!remains.folder.empty()) folders.push_back(fs::path(remains.folder) / task);
  }
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::remove_all(folder, error);
    if (error) left.push_back(fmt::format("the folder '{}': {}", folder.string(), error.message()));
  }
  if (!remains.folder.empty()) ::rmdir(remains.folder.c_str());  // if nobody else uses it
  return left;
}

}  // namespace pscloud
