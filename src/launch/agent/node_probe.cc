#include "launch/agent/node_probe.h"

#include <dirent.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "launch/agent/agent_message.h"
#include "net/unix_socket.h"

namespace pscloud {
namespace {

constexpr std::chrono::milliseconds kNodeTime{1000};
constexpr size_t kNodesMax = 64;  // of one task
constexpr size_t kAnswerMax = kNodeStatusMax + (16 << 10);
constexpr std::string_view kStatusQuestion = "GET /status HTTP/1.0\r\nHost: node\r\n\r\n";

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (open != nullptr && names.size() < kNodesMax) {
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

// Of an answer that is a good one; else empty.
std::string_view body_of(std::string_view answer) {
  if (!answer.starts_with("HTTP/1.") || answer.substr(0, answer.find("\r\n")).find(" 200 ") == std::string_view::npos) {
    return {};
  }
  const size_t end = answer.find("\r\n\r\n");
  std::string_view body = end == std::string_view::npos ? std::string_view() : answer.substr(end + 4);
  while (body.ends_with('\n')) body.remove_suffix(1);
  return body;
}

}  // namespace

void NodeProbe::ask(Time now) {
  if (is_asking()) return;
  answers_.clear();
  for (const std::string& name : names_in(folder_)) {
    auto socket = connect_to_path(folder_ + "/" + name);
    // One that does not take this much at once has no room for a question either.
    if (!socket || ::send(socket->get(), kStatusQuestion.data(), kStatusQuestion.size(), MSG_NOSIGNAL) !=
                       static_cast<ssize_t>(kStatusQuestion.size())) {
      continue;
    }
    open_.push_back({*std::move(socket), ""});
  }
  deadline_ = now + kNodeTime;
}

void NodeProbe::add_to(std::vector<pollfd>& polled) const {
  for (const Question& question : open_) polled.push_back({question.socket.get(), POLLIN, 0});
}

std::optional<NodeProbe::Look> NodeProbe::work(Time now) {
  if (!is_asking()) return std::nullopt;
  for (Question& question : open_) {
    std::array<char, 16 << 10> bytes;
    while (question.socket) {
      const ssize_t count = ::recv(question.socket.get(), bytes.data(), bytes.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (count > 0) question.answer.append(bytes.data(), static_cast<size_t>(count));
      if (count == 0) answers_.push_back(std::move(question.answer));
      if (count <= 0 || question.answer.size() > kAnswerMax) question.socket = Fd();
    }
  }
  std::erase_if(open_, [&](const Question& question) { return !question.socket || now >= deadline_; });
  if (is_asking() || answers_.empty()) return std::nullopt;
  std::vector<std::string> texts;
  std::vector<JsonValue> statuses;
  for (const std::string& answer : answers_) {
    const std::string_view body = body_of(answer);
    if (body.empty() || !is_node_status(body)) continue;
    texts.emplace_back(body);
    statuses.push_back(*JsonValue::parse(body));
  }
  answers_.clear();
  Look look{figures_.take(statuses), joined_status(texts, statuses)};
  if (look.status.size() > kNodeStatusMax) look.status.clear();
  return look;
}

}  // namespace pscloud
