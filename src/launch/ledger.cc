#include "launch/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/json.h"
#include "base/json_value.h"
#include "launch/process/read_to_end.h"

namespace pscloud {
namespace {

std::string write_what(const char* verb, uint64_t number, const std::string* kind,
                       const std::map<std::string, std::string>& what) {
  JsonWriter json;
  json.begin_object().field(verb, number);
  if (kind != nullptr) json.field("kind", *kind);
  json.key("what").begin_object();
  for (const auto& [name, value] : what) json.field(name, value);
  return json.end_object().end_object().text() + "\n";
}

void take_what(const JsonValue& line, LedgerEntry& entry) {
  for (const auto& [name, value] : line["what"].members()) entry.what[name] = value.text();
}

constexpr size_t kLedgerBytesMax = size_t{1} << 30;

struct LedgerContent {
  std::map<uint64_t, LedgerEntry> entries;
  uint64_t next = 1;
  size_t whole_bytes = 0;  // up to the end of the last whole line
};

Result<LedgerContent> parse_ledger(std::string_view text) {
  LedgerContent content;
  for (int number = 1;; ++number) {
    const std::string_view rest = text.substr(content.whole_bytes);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return content;  // what is behind it was cut off, or is being written
    const auto line = JsonValue::parse(rest.substr(0, end));
    if (!line) return corrupt("line {} is no line of a ledger", number);
    content.whole_bytes += end + 1;
    if (const int64_t made = (*line)["intend"].integer(); made > 0) {
      const auto key = static_cast<uint64_t>(made);
      LedgerEntry& entry = content.entries[key];
      entry = {.number = key, .kind = (*line)["kind"].text(), .what = {}};
      take_what(*line, entry);
      content.next = std::max(content.next, key + 1);
    } else if (const int64_t learned = (*line)["learn"].integer(); learned > 0) {
      const auto found = content.entries.find(static_cast<uint64_t>(learned));
      if (found != content.entries.end()) take_what(*line, found->second);
    } else {
      content.entries.erase(static_cast<uint64_t>((*line)["gone"].integer()));
    }
  }
}

std::vector<LedgerEntry> in_order(const std::map<uint64_t, LedgerEntry>& entries) {
  std::vector<LedgerEntry> result;
  for (const auto& [number, entry] : entries) result.push_back(entry);
  return result;
}

}  // namespace

Ledger::Ledger(Fd file, std::map<uint64_t, LedgerEntry> entries, uint64_t next)
    : file_(std::move(file)), entries_(std::move(entries)), next_(next) {}

Result<Ledger> Ledger::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return unavailable("{}: cannot open it: {}", path, errno_text(errno));
  const std::string text = TRY(read_to_end(file.get(), kLedgerBytesMax).at(path));
  LedgerContent content = TRY(parse_ledger(text).at(path));
  if (content.whole_bytes < text.size() && ::ftruncate(file.get(), static_cast<off_t>(content.whole_bytes)) != 0) {
    return unavailable("{}: cannot cut off its last, torn line: {}", path, errno_text(errno));
  }
  return Ledger(std::move(file), std::move(content.entries), content.next);
}

Result<std::vector<LedgerEntry>> Ledger::read(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::vector<LedgerEntry>();
  if (!file) return unavailable("{}: cannot open it: {}", path, errno_text(errno));
  const std::string text = TRY(read_to_end(file.get(), kLedgerBytesMax).at(path));
  return in_order(TRY(parse_ledger(text).at(path)).entries);
}

Result<uint64_t> Ledger::intend(const std::string& kind, std::map<std::string, std::string> what) {
  const uint64_t number = next_++;
  TRY(append(write_what("intend", number, &kind, what)));
  // Only this must be there when the machine dies: without it nobody would look for the thing.
  if (::fdatasync(file_.get()) != 0 && errno != EINVAL) {
    return unavailable("cannot write the ledger to disk: {}", errno_text(errno));
  }
  entries_[number] = {.number = number, .kind = kind, .what = std::move(what)};
  return number;
}

Result<> Ledger::learn(uint64_t number, const std::map<std::string, std::string>& more) {
  TRY(append(write_what("learn", number, nullptr, more)));
  for (const auto& [name, value] : more) entries_[number].what[name] = value;
  return {};
}

Result<> Ledger::gone(uint64_t number) {
  JsonWriter json;
  TRY(append(json.begin_object().field("gone", number).end_object().text() + "\n"));
  entries_.erase(number);
  return {};
}

std::vector<LedgerEntry> Ledger::remaining() const { return in_order(entries_); }

Result<> Ledger::append(const std::string& line) {
  // One call, so that a line is torn by a crash of the machine or a full disk only.
  const ssize_t wrote = ::write(file_.get(), line.data(), line.size());
  if (wrote == static_cast<ssize_t>(line.size())) return {};
  struct stat file {};
  if (wrote > 0 && ::fstat(file_.get(), &file) == 0 && ::ftruncate(file_.get(), file.st_size - wrote) != 0) {
    return unavailable("the disk is full, and the ledger has half a line: make room and run `pscloud down`");
  }
  return unavailable("cannot write the ledger: {}", wrote < 0 ? errno_text(errno) : "the disk is full");
}

}  // namespace pscloud
