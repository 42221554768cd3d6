// A worker for the tests that kill processes while nothing is copied: it pushes ones to every row of a dense table from
// memory that the server reads in place, several pushes at a time, and says after each how many have been acknowledged.
// Told to look, it reads the table in the server's memory. It joins by its environment and goes on until its stdin
// ends.
//
//   lent_worker push        says "acked N"; at most N + 4 have been begun
//   lent_worker look        for each line "LOW HIGH" on stdin says "ok", or what is wrong
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <string>

#include "pscloud/environment.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

constexpr uint64_t kRows = 2'000'000;
constexpr uint64_t kPartRows = (1 << 20) / sizeof(float);  // what takes effect at once
constexpr size_t kWindow = 3;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

bool stdin_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

Result<> push(Worker& worker, const Table& table) {
  const LentFloats ones = TRY(worker.lend(kRows));
  std::ranges::fill(ones.values, 1.0f);
  std::deque<Ticket> tickets;
  for (uint64_t acked = 0; !stdin_ended();) {
    tickets.push_back(worker.push_rows(table, 0, ones.values));
    if (tickets.size() <= kWindow) continue;
    TRY(tickets.front().wait());
    tickets.pop_front();
    say(fmt::format("acked {}", ++acked));
  }
  for (const Ticket& ticket : tickets) TRY(ticket.wait());
  return {};
}

// Every row has the pushes that were acknowledged, and perhaps some that were under way, each once and whole.
std::string judge(const TableView& view, double low, double high) {
  for (const TableView::Run& run : view.runs()) {
    for (size_t i = 0; i < run.values.size(); ++i) {
      const float value = run.values[i];
      if (value < low || value > high || value != std::floor(value)) {
        return fmt::format("row {} is {}", run.first_row + i, value);
      }
      if (i % kPartRows != 0 && value != run.values[i - 1]) {
        return fmt::format("row {} is {} after {}", run.first_row + i, value, run.values[i - 1]);
      }
    }
  }
  return "ok";
}

Result<> look(Worker& worker, const Table& table) {
  say("ready");
  for (double low = 0, high = 0; std::cin >> low >> high;) {
    const TableView view = TRY(worker.view(table));
    if (view.runs().empty() || view.runs().front().versions.empty()) return invalid("the view is a copy");
    say(judge(view, low, high));
  }
  return {};
}

Result<> run(const std::string& what) {
  NodeOptions options;
  TRY(apply_environment(process_environment(), options));
  const auto worker = TRY(Worker::join(options));
  if (worker->transport() != "shm") return invalid("it goes over {}", worker->transport());
  const Table table = TRY(worker->create_table({.name = "lent", .kind = TableKind::kDense, .rows = kRows}));
  TRY(what == "push" ? push(*worker, table) : look(*worker, table));
  return worker->leave();
}

}  // namespace
}  // namespace pscloud

int main(int argc, char** argv) {
  const auto done = pscloud::run(argc > 1 ? argv[1] : "push");
  if (done) return 0;
  fmt::print(stderr, "lent_worker: {}\n", done.error().message);
  return 1;
}
