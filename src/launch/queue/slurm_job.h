#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/plan.h"

namespace pscloud {

// What is submitted to Slurm for a plan, and how its answers read. Pure.

// Tasks that stand together in the plan and get the same of a machine.
struct SlurmComponent {
  int first = 0;  // number of the first task in the plan
  int count = 0;
  Resources resources;  // of each task
};

struct SlurmOptions {
  std::string partition = {};
  std::string account = {};
  std::string qos = {};
  std::string constraint = {};
  std::string reservation = {};
  std::string time = {};  // as sbatch takes it; empty: of the plan, or the partition's
  // Every task gets the most that any asks for: one plain job, whose tasks may share machines. The components of a
  // heterogeneous job never do, and it waits until each has its own.
  bool one_shape = false;
};

// One component if all tasks ask for the same. Who asks for nothing joins a neighbour.
std::vector<SlurmComponent> slurm_components(const Plan& plan, bool one_shape);

// One of a kind: by it the job is found again when the launcher was killed before it heard the number.
std::string slurm_job_name(const Plan& plan);

// The arguments of sbatch, which reads the script from stdin. Nothing of them goes through a shell.
std::vector<std::string> sbatch_words(const Plan& plan, const SlurmOptions& options, const std::string& output);

// Starts `agent` (argv) once for each task: it finds its number in the plan by two more arguments.
std::string slurm_script(const std::vector<SlurmComponent>& components, const std::vector<std::string>& agent);

// 'word', for sh.
std::string sh_word(std::string_view word);

// A job or a component of it, as a line of `squeue --format=kSqueueFormat` has it.
inline constexpr const char* kSqueueFormat = "%i|%T|%N|%r";
struct SlurmState {
  std::string id;      // "12", "12+1"
  std::string state;   // "RUNNING"
  std::string nodes;   // as Slurm writes lists of them; empty before it has some
  std::string reason;  // why it waits or has ended

  bool ended() const;
  bool pending() const { return state == "PENDING"; }
};
std::vector<SlurmState> parse_squeue(std::string_view text);

}  // namespace pscloud
