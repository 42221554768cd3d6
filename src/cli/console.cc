#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "base/fd.h"
#include "cli/console_tunnel.h"
#include "cli/exit_code.h"
#include "cli/private_file.h"
#include "cli/signals.h"
#include "cli/stop_process.h"
#include "cli/verb.h"
#include "console/api.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"
#include "launch/run_folder.h"
#include "net/address.h"
#include "net/http_server.h"
#include "net/secret.h"

namespace pscloud {
namespace {

constexpr const char* kConsoleAbout = R"(Shows the runs of this user in a browser: what runs where, what each task
writes as it comes, charts of what was measured; it can stop runs. Ctrl-C ends
it; runs go on without it.

It can be reached from this machine only, and by whoever has the token, which is
new each time. The address that is printed has it behind '#', where browsers
keep it to themselves; a file of mode 0600 beside the folder of runs has it too
(docs/controller.md). From another machine:

  ssh -L 8080:127.0.0.1:PORT this-machine

With --controller RUN it is the page of the controller that looks after that run,
on this machine too: what the browser asks goes there through ssh, or over TLS.)";

constexpr size_t kConsoleBodyMax = 1 << 20;
constexpr int kConsoleStreams = 32;

struct ConsoleCommand {
  int port = 0;
  bool open = false;
  ControllerFlags controller;
};

// Removed at the end.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() { ::unlink(path.c_str()); }
};

// A command line is for everybody on this machine to read: the browser is given a file that leads to the address.
Result<> open_browser(const std::string& url, const std::string& path) {
  TRY(write_private_file(path, fmt::format("<!doctype html>\n<meta charset=\"utf-8\">\n<title>pscloud</title>\n"
                                           "<meta http-equiv=\"refresh\" content=\"0; url={}\">\n",
                                           url)));
  SpawnSpec spec;
  spec.environment = inherited_environment();
  const auto program = find_program("xdg-open", variable_of(spec.environment, "PATH"));
  if (!program) return not_found("there is no 'xdg-open' on this machine: open the address yourself");
  spec.program = *program;
  spec.arguments = {"xdg-open", path};
  spec.own_session = true;
  TRY(spawn(spec));
  return {};
}

// The page of a controller, which has runs and a token of its own.
int show_controller(const ConsoleCommand& command) {
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  const TemporaryFile page_file{
      fmt::format("{}/console-of-{}.html", std::filesystem::path(*runs).parent_path().string(), ::getpid())};
  return serve_controller(command.controller, command.port, [&](const std::string& url) {
    fmt::print("{}\n", url);
    std::fflush(stdout);
    if (!command.open) return;
    if (const auto opened = open_browser(url, page_file.path); !opened) {
      fmt::print(stderr, "pscloud: {}\n", opened.error().message);
    }
  });
}

int run_console(const ConsoleCommand& command) {
  if (!command.controller.controller.empty()) return show_controller(command);
  Signals signals;
  const auto runs = find_runs_folder();
  if (!runs) return fail(runs.error());
  const std::string home = std::filesystem::path(*runs).parent_path().string();
  StopProcesses stops;
  ApiOptions options;
  options.runs = *runs;
  options.token = make_secret();
  options.version = program_version();
  options.clean = [&](const std::string& run) { return stops.begin(run, fmt::format("{}/{}", *runs, run)); };
  const Api api(options);
  HttpServerOptions http;
  http.address = fmt::format("127.0.0.1:{}", command.port);
  http.body_bytes_max = kConsoleBodyMax;
  http.streams_max = kConsoleStreams;
  const auto server = HttpServer::start(http, [&](const HttpCall& call) { return api.answer(call); });
  if (!server) return fail(server.error());
  const std::string address = (*server)->address();
  const TemporaryFile token_file{fmt::format("{}/console-{}.token", home, parse_address(address)->port)};
  const TemporaryFile page_file{fmt::format("{}/console-{}.html", home, parse_address(address)->port)};
  if (const auto wrote = write_private_file(token_file.path, options.token + "\n"); !wrote) return fail(wrote.error());
  const std::string url = fmt::format("http://{}/#token={}", address, options.token);
  fmt::print("{}\n", url);
  std::fflush(stdout);
  fmt::print(stderr, "pscloud: the console is at this address until Ctrl-C; its token is in {}\n", token_file.path);
  if (command.open) {
    if (const auto opened = open_browser(url, page_file.path); !opened) {
      fmt::print(stderr, "pscloud: {}\n", opened.error().message);
    }
  }
  std::promise<void> ended;
  signals.watch([&](int) { ended.set_value(); });
  ended.get_future().wait();
  (*server)->stop();
  return kExitDone;
}

}  // namespace

void add_console(CLI::App& verb, Action& action) {
  const auto command = std::make_shared<ConsoleCommand>();
  verb.add_option("--port", command->port, "of 127.0.0.1 [a free one]")->type_name("PORT")->check(CLI::Range(0, 65535));
  verb.add_flag("--open", command->open, "in the browser of this desktop");
  add_controller_flags(verb, command->controller);
  verb.footer(kConsoleAbout);
  verb.callback([command, &action] { action = [command] { return run_console(*command); }; });
}

}  // namespace pscloud
