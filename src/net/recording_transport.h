#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/transport.h"

namespace pscloud {

// A Transport for tests of one node: writes down what the node asks for. The test plays the others, by calling the
// node as a transport would.
class RecordingTransport final : public Transport {
 public:
  Result<std::string> listen(const std::string& address) override { return address; }
  LaneId connect(const std::string& address, Role) override {
    connected.emplace_back(++last_lane, address);
    return last_lane;
  }
  void send(LaneId lane, Frame frame) override { sent.emplace_back(lane, std::move(frame)); }
  bool shares_memory(LaneId) const override { return shared; }
  uint64_t unsent_bytes(LaneId lane) const override {
    const auto found = unsent.find(lane);
    return found == unsent.end() ? 0 : found->second;
  }
  void trust(LaneId lane) override { trusted.insert(lane); }
  void close(LaneId lane) override { closed.insert(lane); }
  void wake_at(Time when) override { wake = when; }

  // The frames sent since the last call: all of them, or those on one lane.
  std::vector<Frame> take() {
    std::vector<Frame> frames;
    for (auto& [lane, frame] : std::exchange(sent, {})) frames.push_back(std::move(frame));
    return frames;
  }
  std::vector<Frame> take(LaneId lane) {
    std::vector<Frame> frames;
    std::erase_if(sent, [&](auto& one) {
      if (one.first != lane) return false;
      frames.push_back(std::move(one.second));
      return true;
    });
    return frames;
  }

  std::vector<std::pair<LaneId, Frame>> sent;
  std::vector<std::pair<LaneId, std::string>> connected;
  std::set<LaneId> trusted;
  std::set<LaneId> closed;
  std::map<LaneId, uint64_t> unsent;
  bool shared = false;  // as if all lanes were through shared memory
  Time wake = Time::never();
  LaneId last_lane = 0;
};

}  // namespace pscloud
