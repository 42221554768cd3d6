#include "launch/agent/socket_bytes.h"

#include <dirent.h>
#include <fmt/core.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace pscloud {
namespace {

constexpr int kTcpEstablished = 1;  // states are bits; those that carry data, or still may
constexpr int kTcpFinWait1 = 4;
constexpr int kTcpCloseWait = 8;
constexpr timeval kKernelTime{1, 0};

struct DiagRequest {
  nlmsghdr header{};
  inet_diag_req_v2 question{};
};

bool ask_for_sockets(int netlink, uint8_t family) {
  DiagRequest request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.question.sdiag_family = family;
  request.question.sdiag_protocol = IPPROTO_TCP;
  request.question.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  request.question.idiag_states = (1 << kTcpEstablished) | (1 << kTcpFinWait1) | (1 << kTcpCloseWait);
  return ::send(netlink, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

// The attribute with the figures, which older kernels make shorter; none if it has no bytes.
std::optional<TcpBytes> bytes_in(const inet_diag_msg* message, size_t size) {
  const auto* attribute = reinterpret_cast<const rtattr*>(message + 1);
  size_t left = size;
  while (left >= sizeof *attribute && attribute->rta_len >= sizeof *attribute && attribute->rta_len <= left) {
    if (attribute->rta_type == INET_DIAG_INFO) {
      tcp_info info{};
      const size_t had = attribute->rta_len - RTA_LENGTH(0);
      if (had < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return std::nullopt;
      std::memcpy(&info, RTA_DATA(attribute), std::min(had, sizeof info));
      return TcpBytes{info.tcpi_bytes_acked, info.tcpi_bytes_received};
    }
    const size_t step = std::min<size_t>(RTA_ALIGN(attribute->rta_len), left);
    left -= step;
    attribute = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(attribute) + step);
  }
  return std::nullopt;
}

// False if the kernel does not tell.
bool read_answers(int netlink, std::unordered_map<uint64_t, TcpBytes>& sockets) {
  alignas(nlmsghdr) std::array<char, 64 << 10> bytes;
  while (true) {
    const ssize_t count = ::recv(netlink, bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    const auto* header = reinterpret_cast<const nlmsghdr*>(bytes.data());
    auto left = static_cast<size_t>(count);
    while (left >= sizeof *header && header->nlmsg_len >= sizeof *header && header->nlmsg_len <= left) {
      if (header->nlmsg_type == NLMSG_DONE) return true;
      if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return false;
      const auto* message = reinterpret_cast<const inet_diag_msg*>(header + 1);
      const auto found = bytes_in(message, header->nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg)));
      if (found && message->idiag_inode != 0) sockets[message->idiag_inode] = *found;
      const size_t step = std::min<size_t>(NLMSG_ALIGN(header->nlmsg_len), left);
      left -= step;
      header = reinterpret_cast<const nlmsghdr*>(reinterpret_cast<const char*>(header) + step);
    }
  }
}

// The inodes of the sockets that a process has open; nothing if it is gone, or not ours to look at.
template <class Use>
void each_socket_of(pid_t pid, Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(fmt::format("/proc/{}/fd", pid).c_str()), ::closedir);
  while (folder != nullptr) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) return;
    std::array<char, 64> target;
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
    if (size <= 0) continue;
    std::string_view text(target.data(), static_cast<size_t>(size));
    constexpr std::string_view kPrefix = "socket:[";
    uint64_t inode = 0;
    if (!text.starts_with(kPrefix) || !text.ends_with(']')) continue;
    text = text.substr(kPrefix.size(), text.size() - kPrefix.size() - 1);
    if (parse_number(text, uint64_t{1}, UINT64_MAX, inode)) use(inode);
  }
}

}  // namespace

std::optional<std::unordered_map<uint64_t, TcpBytes>> all_tcp_sockets() {
  const Fd netlink(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return std::nullopt;
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &kKernelTime, sizeof kKernelTime);
  std::unordered_map<uint64_t, TcpBytes> sockets;
  for (const uint8_t family : {AF_INET, AF_INET6}) {
    if (!ask_for_sockets(netlink.get(), family) || !read_answers(netlink.get(), sockets)) return std::nullopt;
  }
  return sockets;
}

void SocketBytes::look(const std::unordered_map<uint64_t, TcpBytes>& sockets, std::span<const pid_t> processes) {
  std::unordered_map<uint64_t, TcpBytes> now;
  for (const pid_t pid : processes) {
    each_socket_of(pid, [&](uint64_t inode) {
      const auto found = sockets.find(inode);
      if (found != sockets.end()) now.emplace(inode, found->second);  // once, though several processes hold it
    });
  }
  for (const auto& [inode, bytes] : now) {
    const auto before = last_.find(inode);
    // A number that has shrunk is of another socket, which was given the inode of one that is gone.
    const bool same =
        before != last_.end() && before->second.sent <= bytes.sent && before->second.received <= bytes.received;
    all_.sent += bytes.sent - (same ? before->second.sent : 0);
    all_.received += bytes.received - (same ? before->second.received : 0);
  }
  last_ = std::move(now);
}

}  // namespace pscloud
