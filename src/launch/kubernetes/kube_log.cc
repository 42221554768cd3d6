#include "launch/kubernetes/kube_log.h"

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

void KubeLog::take_line(LineBuffer::Line line, std::vector<TaskEvent>& events) {
  if (!inside_) {
    const size_t space = line.text.find(' ');
    const std::string time = line.text.substr(0, space);
    line.text.erase(0, space == std::string::npos ? line.text.size() : space + 1);
    if (time == last_) {
      skipped_ = ++seen_ <= count_;
    } else {
      skipped_ = time < last_;
      if (!skipped_) {
        last_ = time;
        count_ = 0;
        seen_ = 1;
      }
    }
    if (!skipped_) ++count_;
  }
  inside_ = line.continues;
  if (skipped_) return;
  events.push_back(
      {.kind = TaskEvent::Kind::kLine, .task = task_, .text = std::move(line.text), .continues = line.continues});
}

}  // namespace pscloud
