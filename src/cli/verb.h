#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace pscloud {

// What a command line asks for; gives the exit code (exit_code.h).
using Action = std::function<int()>;

// A verb declares its flags on `verb` and sets `action` when it is chosen (App::callback). To add one: a file with an
// add_...() below, and a line in the table of command_line.cc. A verb of verbs, such as `ca`, adds its own to `verb`.
void add_bench(CLI::App& verb, Action& action);
void add_ca(CLI::App& verb, Action& action);
void add_cluster(CLI::App& verb, Action& action);
void add_connect(CLI::App& verb, Action& action);
void add_console(CLI::App& verb, Action& action);
void add_controller(CLI::App& verb, Action& action);
void add_cp(CLI::App& verb, Action& action);
void add_data(CLI::App& verb, Action& action);
void add_down(CLI::App& verb, Action& action);
void add_evaluate(CLI::App& verb, Action& action);
void add_logs(CLI::App& verb, Action& action);
void add_image(CLI::App& verb, Action& action);
void add_ls(CLI::App& verb, Action& action);
void add_node(CLI::App& verb, Action& action);
void add_predict(CLI::App& verb, Action& action);
void add_psd_run(CLI::App& verb, Action& action);
void add_queued_task(CLI::App& verb, Action& action);
void add_rendezvous(CLI::App& verb, Action& action);
void add_run(CLI::App& verb, Action& action);
void add_sim(CLI::App& verb, Action& action);
void add_status(CLI::App& verb, Action& action);
void add_stop(CLI::App& verb, Action& action);
void add_task(CLI::App& verb, Action& action);
void add_train(CLI::App& verb, Action& action);
void add_version(CLI::App& verb, Action& action);

// "0.1.0".
const char* program_version();

}  // namespace pscloud
