// A worker that counts, for the tests of whole clusters: it pushes +1 and says on stdout, a JSON object a line, what
// it knows, so that a test can tell after kill -9 what must have arrived and what may have. It joins by its environment
// (docs/node-environment.md) and goes on until its stdin ends.
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "pscloud/environment.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

constexpr Key kOwn = Key{1} << 63;  // each tag has a key of its own from here; keys below are shared

// --name value; every name is here with its default.
struct Flags {
  std::map<std::string, std::string> texts = {{"consistency", "async"}, {"table", "counter"}, {"wrong", ""}};
  std::map<std::string, uint64_t> numbers = {
      {"tag", 0},      // who we are, for the key of our own
      {"tags", 1},     // how many of them to pull at the end
      {"keys", 8},     // shared ones
      {"pause", 1},    // ms between pushes
      {"report", 10},  // acknowledged pushes between two lines
      {"window", 4},   // pushes under way
  };

  Result<> read(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = std::string(argv[i]).substr(std::string(argv[i]).starts_with("--") ? 2 : 0);
      const std::string value = i + 1 < argc ? argv[i + 1] : "";
      if (texts.contains(name)) {
        texts[name] = value;
        continue;
      }
      const auto number = numbers.find(name);
      if (number == numbers.end()) return invalid("there is no flag {}", argv[i]);
      if (std::from_chars(value.data(), value.data() + value.size(), number->second).ptr == value.data())
        return invalid("{} needs a number", argv[i]);
    }
    return {};
  }
};

void say(const JsonWriter& json) {
  fmt::print("{}\n", json.text());
  std::fflush(stdout);
}

Result<Consistency> consistency_of(const std::string& text) {
  if (text == "async") return Consistency::async();
  if (text == "bsp") return Consistency::bsp();
  if (text.starts_with("ssp:")) return Consistency::ssp(static_cast<uint32_t>(std::stoul(text.substr(4))));
  return invalid("consistency is '{}': choose async, bsp or ssp:n", text);
}

bool stdin_ended(int wait_ms) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, wait_ms) > 0;
}

// Pushes until stdin ends. Each line holds until the next one: so many pushes have been acknowledged, and at most so
// many have been made.
Result<uint64_t> count(Worker& worker, const Table& table, const Flags& flags) {
  std::vector<Key> keys(flags.numbers.at("keys"));
  std::iota(keys.begin(), keys.end(), Key{0});
  keys.push_back(kOwn + flags.numbers.at("tag"));
  const std::vector<float> ones(keys.size(), 1.0f);
  const bool clocked = table.spec.consistency.kind != Consistency::Kind::kAsync;
  const uint64_t window = clocked ? 0 : flags.numbers.at("window");
  const uint64_t report = flags.numbers.at("report");

  uint64_t acked = 0;
  std::deque<Ticket> tickets;
  const auto take_one = [&]() -> Result<> {
    TRY(tickets.front().wait());
    tickets.pop_front();
    if (clocked) TRY(worker.clock().wait());
    if (++acked % report != 0) return {};
    JsonWriter json;
    json.begin_object().field("event", "acked").field("acked", acked);
    say(json.field("issued_most", acked + report + window).end_object());
    return {};
  };
  while (!stdin_ended(static_cast<int>(flags.numbers.at("pause")))) {
    tickets.push_back(worker.push(table, keys, ones));
    if (tickets.size() > window) TRY(take_one());
  }
  while (!tickets.empty()) TRY(take_one());
  return acked;
}

// Says what an error of wrong use tells its caller.
template <class T>
void say_wrong(const char* what, const Result<T>& result) {
  JsonWriter json;
  json.begin_object().field("event", "wrong").field("what", what).field("refused", !result.has_value());
  if (!result) json.field("code", static_cast<int>(result.error().code)).field("text", result.error().message);
  say(json.end_object());
}

void use_wrongly(Worker& worker, const Table& table) {
  const auto push = [&](const Table& to, std::vector<Key> keys, std::vector<float> values) {
    return worker.push(to, keys, values).wait();
  };
  say_wrong("unknown_table", worker.open_table("nowhere"));
  Table never = table;
  never.id = table_id(never.spec.name = "never made");
  say_wrong("table_not_opened", push(never, {1}, {1}));
  say_wrong("unsorted_keys", push(table, {2, 1}, {1, 1}));
  say_wrong("repeated_keys", push(table, {1, 1}, {1, 1}));
  say_wrong("width", push(table, {1, 2}, {1, 1, 1}));
  say_wrong("nan", push(table, {1}, {std::nanf("")}));
  TableSpec spec = table.spec;
  spec.width = 2;
  say_wrong("another_spec", worker.create_table(spec));
  TableSpec large{.name = "large", .kind = TableKind::kDense, .rows = uint64_t{1} << 28};
  say_wrong("dense_too_large", worker.create_table(large));
  // A sparse table meets its limit when it grows.
  const auto small = worker.create_table({.name = "small", .width = 64});
  std::vector<Key> keys(1000);
  const std::vector<float> ones(keys.size() * 64, 1.0f);
  Result<> grown;
  for (Key first = 0; small && grown && first < 1000000; first += keys.size()) {
    std::iota(keys.begin(), keys.end(), first);
    grown = worker.push(*small, keys, ones).wait();
  }
  say_wrong("sparse_too_large", grown);
}

Result<> run(int argc, char** argv) {
  Flags flags;
  TRY(flags.read(argc, argv));
  NodeOptions options;
  TRY(apply_environment(process_environment(), options));
  const auto worker = TRY(Worker::join(options));
  set_log_name(fmt::format("worker {}", worker->rank()));
  say(JsonWriter().begin_object().field("event", "joined").field("rank", worker->rank()).end_object());

  const Consistency consistency = TRY(consistency_of(flags.texts["consistency"]));
  const Table table = TRY(worker->create_table({.name = flags.texts["table"], .consistency = consistency}));
  if (!flags.texts["wrong"].empty()) use_wrongly(*worker, table);
  const uint64_t acked = TRY(count(*worker, table, flags));
  // From here nobody pushes. Not with clocks: one who waits here does not end its clock, and the others wait for that;
  // there the totals of the last one to end are those that count.
  if (consistency.kind == Consistency::Kind::kAsync) TRY(worker->barrier());

  std::vector<Key> keys(flags.numbers["keys"] + flags.numbers["tags"]);
  std::iota(keys.begin(), keys.end(), Key{0});
  for (size_t i = flags.numbers["keys"]; i < keys.size(); ++i) keys[i] = kOwn + (i - flags.numbers["keys"]);
  std::vector<float> values(keys.size());
  TRY(worker->pull(table, keys, values).wait());
  JsonWriter json;
  json.begin_object().field("event", "done").field("acked", acked).key("shared").begin_array();
  for (size_t i = 0; i < flags.numbers["keys"]; ++i) json.value(double{values[i]});
  json.end_array().key("own").begin_array();
  for (size_t i = flags.numbers["keys"]; i < values.size(); ++i) json.value(double{values[i]});
  TRY(worker->leave());
  say(json.end_array().end_object());
  return {};
}

}  // namespace
}  // namespace pscloud

int main(int argc, char** argv) {
  const auto done = pscloud::run(argc, argv);
  if (done) return 0;
  fmt::print(stderr, "counter_worker: {}\n", done.error().message);
  switch (done.error().code) {  // as `pscloud` ends
    case pscloud::Code::kInvalid:
    case pscloud::Code::kNotFound: return 2;
    case pscloud::Code::kUnavailable:
    case pscloud::Code::kTimeout: return 3;
    default: return 1;
  }
}
