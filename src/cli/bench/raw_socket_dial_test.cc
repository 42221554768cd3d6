#include "cli/bench/raw_socket_dial.h"

#include <gtest/gtest.h>

#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{10000};
constexpr milliseconds kShort{100};

class RawSocketDial : public testing::Test {
 protected:
  RawSocketDial() : listener_(listen_raw("127.0.0.1:0").value()), address_(local_endpoint(listener_.get()).text()) {}

  Fd listener_;
  const std::string address_;
};

TEST_F(RawSocketDial, BytesGoBothWays) {
  const auto dialed = dial_raw(address_, "job", kLong);
  ASSERT_TRUE(dialed) << dialed.error().message;
  const auto accepted = accept_raw(listener_.get(), "job", kLong);
  ASSERT_TRUE(accepted) << accepted.error().message;
  char byte = 'a';
  EXPECT_EQ(::send(accepted->get(), &byte, 1, 0), 1);
  EXPECT_EQ(::recv(dialed->get(), &byte, 1, 0), 1);  // would fail at once if the socket did not block
  EXPECT_EQ(::send(dialed->get(), &byte, 1, 0), 1);
  EXPECT_EQ(::recv(accepted->get(), &byte, 1, 0), 1);
}

TEST_F(RawSocketDial, WhoDoesNotKnowTheJobIsNotTaken) {
  const auto stranger = dial_raw(address_, "another", kLong);
  ASSERT_TRUE(stranger);
  const auto accepted = accept_raw(listener_.get(), "job", kShort);
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code, Code::kTimeout);
}

TEST_F(RawSocketDial, AStrangerDoesNotKeepTheOthersOut) {
  const auto stranger = dial_raw(address_, "another", kLong);
  const auto dialed = dial_raw(address_, "job", kLong);
  EXPECT_TRUE(accept_raw(listener_.get(), "job", kLong));
}

TEST_F(RawSocketDial, WhereNobodyListensItTriesAgainAndGivesUpWithAReason) {
  listener_ = Fd();
  const auto dialed = dial_raw(address_, "job", kShort);
  ASSERT_FALSE(dialed);
  EXPECT_EQ(dialed.error().code, Code::kUnavailable);
  EXPECT_NE(dialed.error().message.find(address_), std::string::npos);
}

}  // namespace
}  // namespace pscloud
