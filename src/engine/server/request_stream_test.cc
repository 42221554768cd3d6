#include "engine/server/request_stream.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

using Verdict = RequestStream::Verdict;

Frame request(uint64_t seq, size_t payload = 0) {
  Frame frame;
  frame.header.type = FrameType::kPush;
  frame.header.seq = seq;
  if (payload > 0) frame.payload = std::make_shared<const Buffer>(payload);
  return frame;
}

Verdict offer(RequestStream& stream, uint64_t seq, size_t payload = 0, uint64_t elsewhere = 0) {
  Frame frame = request(seq, payload);
  return stream.offer(frame, elsewhere, false);
}

constexpr Credit kLimit{4, 1000};

TEST(RequestStream, TakesTheFirstNumberFirst) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 1), Verdict::kNext);
}

TEST(RequestStream, KnowsWhatItHasAccepted) {
  RequestStream stream(kLimit);
  stream.accept();
  EXPECT_EQ(offer(stream, 1), Verdict::kRepeated);
  EXPECT_EQ(offer(stream, 2), Verdict::kNext);
}

TEST(RequestStream, TheNextComesAgainUntilItIsAccepted) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 1), Verdict::kNext);
  EXPECT_EQ(offer(stream, 1), Verdict::kNext);
}

TEST(RequestStream, NumberZeroIsNoRequest) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 0), Verdict::kRepeated);
}

TEST(RequestStream, HoldsWhatCameTooEarlyAndGivesItInOrder) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 3), Verdict::kHeld);
  EXPECT_EQ(offer(stream, 2), Verdict::kHeld);
  EXPECT_FALSE(stream.take_next());
  stream.accept();
  EXPECT_EQ(stream.take_next()->header.seq, 2u);
  stream.accept();
  EXPECT_EQ(stream.take_next()->header.seq, 3u);
  stream.accept();
  EXPECT_FALSE(stream.take_next());
  EXPECT_EQ(stream.held_bytes(), 0u);
}

TEST(RequestStream, HoldsARepeatedOneOnce) {
  RequestStream stream(kLimit);
  offer(stream, 2, 100);
  const uint64_t held = stream.held_bytes();
  EXPECT_EQ(offer(stream, 2, 100), Verdict::kHeld);
  EXPECT_EQ(stream.held_bytes(), held);
}

TEST(RequestStream, DropsWhatIsFartherAheadThanItsLimit) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 4), Verdict::kHeld);
  EXPECT_EQ(offer(stream, 5), Verdict::kDropped);
  EXPECT_EQ(offer(stream, UINT64_MAX), Verdict::kDropped);
}

TEST(RequestStream, DropsWhatHasNoRoom) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 2, 800), Verdict::kHeld);
  EXPECT_EQ(offer(stream, 3, 800), Verdict::kDropped);
  EXPECT_EQ(stream.held_bytes(), 864u);
}

TEST(RequestStream, CountsWhatIsHeldElsewhere) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 1, 400, 700), Verdict::kDropped);
  EXPECT_EQ(offer(stream, 1, 200, 700), Verdict::kNext);
}

TEST(RequestStream, TheNextFitsThoughEarlyOnesTakeTheRoom) {
  RequestStream stream(kLimit);
  offer(stream, 2, 800);
  EXPECT_EQ(offer(stream, 1, 800), Verdict::kNext);
}

TEST(RequestStream, OneAloneFitsHoweverLarge) {
  RequestStream stream(kLimit);
  EXPECT_EQ(offer(stream, 1, 5000), Verdict::kNext);
}

}  // namespace
}  // namespace pscloud
