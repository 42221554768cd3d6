#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/json.h"
#include "console/api_parts.h"
#include "console/byte_range.h"
#include "console/reply.h"

namespace pscloud {
namespace {

constexpr uint64_t kAtOnceBytes = 64 << 10;  // more than that is a stream
constexpr size_t kLogPieceBytes = 256 << 10;
constexpr size_t kTextBytesMax = 200;
constexpr size_t kLineBytesShown = 2000;
constexpr int64_t kMatchesShown = 200;
constexpr int64_t kMatchesShownMax = 1000;
constexpr std::chrono::seconds kSearchTime{3};

uint64_t size_of(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 && info.st_size > 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

std::string read_range(const Fd& file, FileRange range) {
  std::string bytes(range.end - range.begin, '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(range.begin + at));
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

void write_range(const Fd& file, FileRange range, HttpStream& out) {
  while (range.begin < range.end) {
    const uint64_t end = std::min<uint64_t>(range.end, range.begin + kLogPieceBytes);
    const std::string piece = read_range(file, {range.begin, end});
    if (piece.empty() || !out.write(piece)) return;
    range.begin += piece.size();
  }
}

void to_lower(std::string& text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
}

// Finds lines that have a text in them, in any case of (English) letters.
class LogSearch {
 public:
  LogSearch(std::string text, int64_t max) : text_(std::move(text)), left_(max) {
    to_lower(text_);
    json_.begin_object().key("matches").begin_array();
  }

  // Whole lines, of which the first begins at `offset` of the file. False if there are enough.
  bool take(std::string_view lines, uint64_t offset) {
    lower_.assign(lines);
    to_lower(lower_);
    const std::string_view lower = lower_;
    for (size_t at = 0; (at = lower.find(text_, at)) != std::string_view::npos;) {
      if (left_-- == 0) return false;
      const size_t before = lower.rfind('\n', at);
      const size_t begin = before == std::string_view::npos ? 0 : before + 1;
      const size_t end = std::min(lower.find('\n', at), lower.size());
      json_.begin_object().field("offset", offset + begin);
      json_.field("line", lines.substr(begin, std::min(end - begin, kLineBytesShown))).end_object();
      at = end;
    }
    return true;
  }

  HttpReply reply(bool more) { return json_reply(json_.end_array().field("more", more).end_object().text()); }

 private:
  std::string text_;
  int64_t left_;
  std::string lower_;
  JsonWriter json_;
};

HttpReply search(const Fd& file, const std::string& text, const HttpCall& call) {
  if (text.empty() || text.size() > kTextBytesMax || text.find('\n') != std::string::npos) {
    return error_reply(400, fmt::format("search for a text within a line, of 1 to {} bytes", kTextBytesMax));
  }
  const auto max = number_of(call, "max", kMatchesShown, 1, kMatchesShownMax);
  if (!max) return error_reply(max.error());
  const auto deadline = std::chrono::steady_clock::now() + kSearchTime;
  LogSearch found(text, *max);
  const uint64_t bytes = size_of(file);
  for (uint64_t at = 0; at < bytes;) {
    if (std::chrono::steady_clock::now() >= deadline) return found.reply(true);
    std::string piece = read_range(file, {at, std::min(bytes, at + 4 * kLogPieceBytes)});
    if (piece.empty()) break;
    // Up to the end of a line, unless a line is longer than all this.
    if (const size_t end = piece.rfind('\n'); end != std::string::npos && at + piece.size() < bytes) {
      piece.resize(end + 1);
    }
    if (!found.take(piece, at)) return found.reply(true);
    at += piece.size();
  }
  return found.reply(false);
}

}  // namespace

Result<std::string> log_path(const RunFolder& folder, const std::string& task) {
  if (task == "launcher") return folder.path("launcher.log");
  const RunState state = TRY(folder.state());
  for (const TaskStatus& each : state.tasks) {
    if (each.id.text() == task) return folder.path("logs/" + task + ".log");
  }
  return not_found("the run '{}' has no such task", folder.name());
}

HttpReply file_reply(const std::string& path, const HttpCall& call, const std::string& content_type) {
  HttpReply reply{.status = 200, .content_type = content_type};
  const auto file = std::make_shared<Fd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!*file) return reply;  // nothing was written yet
  const uint64_t bytes = size_of(*file);
  FileRange range{0, bytes};
  const auto tail = number_of(call, "tail", INT64_MAX, 0, INT64_MAX);
  if (!tail) return error_reply(tail.error());
  range.begin = bytes - std::min(bytes, static_cast<uint64_t>(*tail));
  reply.headers.emplace_back("Accept-Ranges", "bytes");
  if (const std::string* header = call.find_header("Range")) {
    const RangeAnswer answer = parse_range(*header, bytes);
    if (answer.kind == RangeAnswer::Kind::kUnsatisfiable) {
      HttpReply refusal = error_reply(416, "the file has no such range");
      refusal.headers.emplace_back("Content-Range", fmt::format("bytes */{}", bytes));
      return refusal;
    }
    if (answer.kind == RangeAnswer::Kind::kPart) {
      range = answer.range;
      reply.status = 206;
      reply.headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", range.begin, range.end - 1, bytes));
    }
  }
  if (range.end - range.begin <= kAtOnceBytes) {
    reply.body = read_range(*file, range);
  } else {
    reply.stream_bytes = range.end - range.begin;
    reply.stream = [file, range](HttpStream& out) { write_range(*file, range, out); };
  }
  return reply;
}

HttpReply log_reply(const RunFolder& folder, const std::string& task, const HttpCall& call) {
  const auto path = log_path(folder, task);
  if (!path) return error_reply(path.error());
  if (const std::string* text = call.find_query("search")) {
    return search(Fd(::open(path->c_str(), O_RDONLY | O_CLOEXEC)), *text, call);
  }
  return file_reply(*path, call, "text/plain; charset=utf-8");
}

}  // namespace pscloud
