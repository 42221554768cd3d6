#include "launch/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"

namespace pscloud {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using Stream = Terminal::Stream;

constexpr seconds kDrainPatience{20};

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }
  // To the end of what is written.
  std::string read() {
    writer = Fd();
    return read_while_open();
  }
  std::string read_while_open() const {
    std::string text;
    std::array<char, 65536> bytes;
    for (ssize_t got = 0; (got = ::read(reader.get(), bytes.data(), bytes.size())) > 0;) {
      text.append(bytes.data(), static_cast<size_t>(got));
    }
    return text;
  }
  Fd reader;
  Fd writer;
};

TEST(Terminal, WritesInOrderToBoth) {
  Pipe both;
  {
    Terminal terminal(both.writer.get(), both.writer.get());
    terminal.write(Stream::kOut, "one\n");
    terminal.write(Stream::kErr, "two\n");
    terminal.write(Stream::kOut, "three\n");
  }
  EXPECT_EQ(both.read(), "one\ntwo\nthree\n");
}

TEST(Terminal, OneThatStandsStillHoldsNobodyUpAndIsToldWhatItMissed) {
  Pipe out, err;
  const std::string line = std::string(999, 'x') + '\n';
  constexpr size_t kLines = 20000;
  std::string shown;
  {
    Terminal terminal(out.writer.get(), err.writer.get());
    const auto began = steady_clock::now();
    for (size_t i = 0; i < kLines; ++i) {
      terminal.next_round();
      terminal.write(Stream::kOut, line);
    }
    EXPECT_LT(steady_clock::now() - began, 10 * Terminal::kPatience);
    EXPECT_FALSE(terminal.drain(std::chrono::milliseconds(1)));
    std::thread reader([&] { shown = out.read_while_open(); });
    EXPECT_TRUE(terminal.drain(kDrainPatience));
    out.writer = Fd();
    reader.join();
  }
  const size_t taken = shown.size() / line.size();
  EXPECT_GE(shown.size(), Terminal::kBytesMax - line.size());
  EXPECT_LT(taken, kLines);
  EXPECT_THAT(err.read(), testing::StartsWith("pscloud: " + std::to_string(kLines - taken) + " lines were not shown"));
}

TEST(Terminal, AReaderThatReadsGetsEverything) {
  Pipe out;
  constexpr size_t kLines = 20000;
  const std::string line = std::string(999, 'x') + '\n';
  std::string shown;
  std::thread reader;
  {
    Fd writer(::fcntl(out.writer.get(), F_DUPFD_CLOEXEC, 3));
    out.writer = Fd();
    // As ssh makes what it shares: that is no reader who is gone.
    EXPECT_EQ(::fcntl(writer.get(), F_SETFL, O_NONBLOCK), 0);
    reader = std::thread([&] { shown = out.read(); });
    Terminal terminal(writer.get(), -1, kDrainPatience);
    for (size_t i = 0; i < kLines; ++i) {
      terminal.next_round();
      terminal.write(Stream::kOut, line);
    }
    EXPECT_TRUE(terminal.drain(kDrainPatience));
  }
  reader.join();
  EXPECT_EQ(shown.size(), kLines * line.size());
}

TEST(Terminal, OneThatIsGoneIsNoError) {
  Pipe out, err;
  out.reader = Fd();
  {
    Terminal terminal(out.writer.get(), err.writer.get());
    for (int i = 0; i < 100; ++i) terminal.write(Stream::kOut, "nobody\n");
    terminal.write(Stream::kErr, "somebody\n");
  }
  EXPECT_EQ(err.read(), "somebody\n");
}

}  // namespace
}  // namespace pscloud
