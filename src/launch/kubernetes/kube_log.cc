#include "launch/kubernetes/kube_log.h"

#include <algorithm>

namespace pscloud {

void KubeLog::begin_stream() {
  lines_.rest();
  inside_ = false;
  seen_ = 0;
}

void KubeLog::take(std::string_view bytes, std::vector<TaskEvent>& events) {
  lines_.add(bytes);
  while (auto line = lines_.next()) take_line(*std::move(line), events);
}

void KubeLog::end(std::vector<TaskEvent>& events) {
  if (std::string rest = lines_.rest(); !rest.empty()) take_line({std::move(rest), false}, events);
}

size_t KubeLog::known_of(const std::string& time) {
  if (time < last_) return kWhole;
  if (time > last_) {
    last_ = time;
    count_ = 0;
    seen_ = 0;
  }
  if (++seen_ <= count_) return seen_ < count_ ? kWhole : given_;
  ++count_;
  given_ = 0;
  return 0;
}

void KubeLog::take_line(LineBuffer::Line line, std::vector<TaskEvent>& events) {
  if (!inside_) {
    const size_t space = line.text.find(' ');
    skip_ = known_of(line.text.substr(0, space));
    line.text.erase(0, space == std::string::npos ? line.text.size() : space + 1);
  }
  inside_ = line.continues;
  if (skip_ == kWhole) return;
  const size_t again = std::min(skip_, line.text.size());
  skip_ -= again;
  line.text.erase(0, again);
  if (line.text.empty() && line.continues) return;
  given_ = line.continues ? given_ + line.text.size() : kWhole;
  events.push_back(
      {.kind = TaskEvent::Kind::kLine, .task = task_, .text = std::move(line.text), .continues = line.continues});
}

}  // namespace pscloud
