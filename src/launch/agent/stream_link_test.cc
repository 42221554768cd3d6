#include "launch/agent/stream_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(StreamLink, WhoIsAskedForLongDoesNotMissTheLauncher) {
  constexpr int kSilenceMs = 2000;
  int in[2], out[2];
  ASSERT_EQ(::pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_EQ(::pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
  const Fd questions(in[1]), answers(out[0]);
  const auto slow = [](const JsonValue&) {
    std::this_thread::sleep_for(milliseconds(kSilenceMs + 100));
    return std::string("{}");
  };
  StreamLink link(Fd(in[0]), Fd(out[1]), kSilenceMs, slow, steady_clock::now());
  const std::string question = question_line("{}") + "\n";
  ASSERT_EQ(::write(questions.get(), question.data(), question.size()), static_cast<ssize_t>(question.size()));
  EXPECT_FALSE(link.next(steady_clock::now()));
  EXPECT_FALSE(link.next(steady_clock::now())) << "it was not silent: we did not listen";
  const auto gone = link.next(steady_clock::now() + milliseconds(kSilenceMs));
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->kind, LauncherWord::Kind::kGone);
}

}  // namespace
}  // namespace pscloud
