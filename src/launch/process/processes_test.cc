#include "launch/process/processes.h"

#include <gtest/gtest.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "launch/process/spawn.h"

namespace pscloud {
namespace {

pid_t start_sleep(const std::string& entry) {
  SpawnSpec process;
  process.program = "/bin/sleep";
  process.arguments = {"sleep", "1000"};
  process.environment = {"A=1", entry};
  return spawn(process).value();
}

TEST(Processes, AProcessIsItselfUntilItEnds) {
  const pid_t pid = start_sleep("B=2");
  const auto process = identify_process(pid);
  ASSERT_TRUE(process);
  EXPECT_TRUE(is_alive(*process));
  const auto read_back = parse_process_identity(process->text());
  ASSERT_TRUE(read_back);
  EXPECT_TRUE(is_alive(*read_back));
  // The same number at another time is another process.
  EXPECT_FALSE(is_alive({pid, process->started + "0"}));
  ::kill(pid, SIGKILL);
  while (identify_process(pid)) ::usleep(1000);  // a corpse is no process
  EXPECT_FALSE(is_alive(*process));
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(identify_process(pid));
  for (const char* text : {"", "7", "x y", "7 ", "-1 x"}) EXPECT_FALSE(parse_process_identity(text)) << text;
}

TEST(Processes, AreFoundByWhatTheyWereGivenAndKilled) {
  const std::string entry = "PSCLOUD_TEST_MARK=" + std::to_string(::getpid());
  const pid_t first = start_sleep(entry + "/a"), second = start_sleep(entry + "/b");
  EXPECT_EQ(processes_with_entry(entry + "/a", false).size(), 1u);
  EXPECT_EQ(processes_with_entry(entry, false).size(), 0u);
  EXPECT_EQ(processes_with_entry(entry + "/", true).size(), 2u);
  EXPECT_TRUE(kill_all([&] { return processes_with_entry(entry + "/", true); }, 10000));
  for (const pid_t pid : {first, second}) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
  }
}

// Such a process has no environment for a moment: one look of a few hundred would miss it.
TEST(Processes, OneThatIsJustBecomingAnotherProgramIsFoundToo) {
  const std::string entry = "PSCLOUD_TEST_MARK=" + std::to_string(::getpid());
  SpawnSpec process;
  process.program = "/bin/sh";
  process.arguments = {"sh", "-c", R"(exec "$0" -c "$1" "$0" "$1")", "/bin/sh", R"(exec "$0" -c "$1" "$0" "$1")"};
  process.environment = {entry};
  const pid_t pid = spawn(process).value();
  int found = 0;
  constexpr int kLooks = 20000;
  for (int look = 0; look < kLooks; ++look) found += has_entry(pid, entry, false) ? 1 : 0;
  EXPECT_EQ(found, kLooks);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(Processes, ChildrenOfChildrenAreOursToo) {
  SpawnSpec process;
  process.program = "/bin/sh";
  process.arguments = {"sh", "-c", "sleep 1000 & wait"};
  process.own_session = true;
  const pid_t pid = spawn(process).value();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (own_descendants().size() < 2 && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  EXPECT_EQ(own_descendants().size(), 2u);
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(Processes, ProgramsAreFoundAsAShellFindsThem) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin").value(), "/bin/sh");
  EXPECT_EQ(find_program("./x", "/bin").value(), "./x");
  EXPECT_FALSE(find_program("sh", "/nowhere"));
  EXPECT_FALSE(find_program("", "/bin"));
}

TEST(Spawn, SaysWhyAProgramCannotRun) {
  SpawnSpec process;
  process.program = "/no/such/program";
  process.arguments = {"x"};
  EXPECT_EQ(spawn(process).error().code, Code::kNotFound);
  process.program = "/etc/passwd";
  EXPECT_EQ(spawn(process).error().code, Code::kInvalid);
  process.program = "/bin/true";
  process.folder = "/no/such/folder";
  EXPECT_NE(spawn(process).error().message.find("/no/such/folder"), std::string::npos);
}

TEST(Spawn, NothingRunsIfWhatComesBeforeFails) {
  SpawnSpec process;
  process.program = "/bin/sh";
  process.arguments = {"sh", "-c", "kill $PPID"};
  process.before_it_runs = [](pid_t) -> Result<> { return unavailable("no"); };
  EXPECT_EQ(spawn(process).error().message, "no");
}

}  // namespace
}  // namespace pscloud
