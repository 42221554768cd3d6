#include "engine/message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"

namespace pscloud {
namespace {

std::vector<std::byte> bytes_in(const SharedBuffer& buffer) { return {buffer->span().begin(), buffer->span().end()}; }

std::string any_text(size_t bytes_max) {
  auto text = *rc::gen::arbitrary<std::string>();
  text.resize(std::min(text.size(), bytes_max));
  return text;
}

NodeInfo any_node() {
  NodeInfo node;
  node.session = *rc::gen::arbitrary<uint64_t>();
  node.process = *rc::gen::arbitrary<uint64_t>();
  node.role = *rc::gen::element(Role::kScheduler, Role::kServer, Role::kWorker);
  node.state = *rc::gen::element(NodeState::kLive, NodeState::kDone, NodeState::kDead);
  node.rank = *rc::gen::arbitrary<uint32_t>();
  node.owner = *rc::gen::arbitrary<uint32_t>();
  node.owners = *rc::gen::arbitrary<uint32_t>();
  node.address = any_text(kNameBytesMax);
  return node;
}

NodeInfo node(uint64_t session, uint32_t rank) {
  NodeInfo info;
  info.session = session;
  info.rank = rank;
  info.address = "host:1";
  return info;
}

View any_view() {
  View view;
  view.version = *rc::gen::arbitrary<uint64_t>();
  view.phase = *rc::gen::element(Phase::kForming, Phase::kRunning, Phase::kStopping, Phase::kFailed);
  view.reason = any_text(kTextBytesMax);
  view.nodes.resize(*rc::gen::inRange(0, 5));
  for (NodeInfo& node : view.nodes) node = any_node();
  return view;
}

TableSpec any_spec() {
  TableSpec spec;
  spec.name = "t" + std::to_string(*rc::gen::arbitrary<uint64_t>());
  spec.kind = *rc::gen::element(TableKind::kDense, TableKind::kSparse);
  spec.width = *rc::gen::inRange<uint32_t>(1, 65537);
  spec.rows = *rc::gen::inRange<uint64_t>(1, uint64_t{1} << 40);
  spec.hashes = *rc::gen::inRange<uint32_t>(0, 40);
  spec.updater = {"ftrl", {{"alpha", 0.5f}, {"beta", static_cast<float>(*rc::gen::inRange(-9, 9))}}};
  spec.consistency = Consistency::ssp(*rc::gen::arbitrary<uint32_t>());
  spec.initial = {-1, 2, *rc::gen::arbitrary<uint64_t>()};
  spec.push_filters = {
      {.kind = FilterKind::kKeyCaching, .once = true}, {FilterKind::kNoise, 2, 1, 3}, {FilterKind::kFixedPoint, 3}};
  spec.pull_filters = {{*rc::gen::element(FilterKind::kLz4, FilterKind::kZstd)}};
  spec.bytes_max = *rc::gen::arbitrary<uint64_t>();
  return spec;
}

// The encoding has one form for each message, so equal bytes are an equal message. No prefix of it is a message.
template <class Message>
void check_round_trip(const Message& message) {
  const auto bytes = bytes_in(encode(message));
  const auto decoded = decode<Message>(bytes);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(bytes_in(encode(*decoded)) == bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode<Message>(Bytes(bytes).first(size));
    RC_ASSERT(!cut.has_value());
    RC_ASSERT(cut.error().code == Code::kCorrupt);
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  RC_ASSERT(!decode<Message>(longer).has_value());
}

RC_GTEST_PROP(Message, JoinComesBackAndNoPrefixOfItDoes, ()) {
  check_round_trip(JoinMessage{any_text(kNameBytesMax), any_node(), *rc::gen::arbitrary<uint64_t>(), any_view()});
}
RC_GTEST_PROP(Message, ViewComesBackAndNoPrefixOfItDoes, ()) {
  const View view = any_view();
  check_round_trip(view);
  RC_ASSERT(*decode<View>(encode(view)->span()) == view);
}
RC_GTEST_PROP(Message, HeartbeatComesBackAndNoPrefixOfItDoes, ()) {
  check_round_trip(HeartbeatMessage{*rc::gen::arbitrary<uint64_t>(), any_text(kTextBytesMax)});
}
RC_GTEST_PROP(Message, LeaveComesBackAndNoPrefixOfItDoes, (bool failed)) {
  check_round_trip(LeaveMessage{failed, any_text(kTextBytesMax)});
}
RC_GTEST_PROP(Message, TextComesBackAndNoPrefixOfItDoes, ()) { check_round_trip(TextMessage{any_text(kTextBytesMax)}); }
RC_GTEST_PROP(Message, SyncReplyComesBackAndNoPrefixOfItDoes,
              (uint64_t accepted, uint32_t clock, uint64_t credit, std::vector<uint64_t> waiting)) {
  check_round_trip(SyncReplyMessage{accepted, clock, credit, waiting});
}
RC_GTEST_PROP(Message, ErrorComesBackAndNoPrefixOfItDoes, ()) {
  const auto code =
      *rc::gen::element(Code::kInvalid, Code::kNotFound, Code::kUnavailable, Code::kTimeout, Code::kCorrupt);
  check_round_trip(ErrorMessage{code, any_text(kTextBytesMax)});
}
RC_GTEST_PROP(Message, TableSpecComesBackAndNoPrefixOfItDoes, ()) {
  const TableSpec spec = any_spec();
  check_round_trip(spec);
  RC_ASSERT(*decode<TableSpec>(encode(spec)->span()) == spec);
}

std::vector<Addend> any_addends() {
  std::vector<Addend> addends(*rc::gen::inRange(0, 5));
  for (Addend& addend : addends) addend = {*rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<double>()};
  return addends;
}

RC_GTEST_PROP(Message, OfferOfWorkComesBackAndNoPrefixOfItDoes, ()) {
  OfferWorkMessage message{any_text(kNameBytesMax),
                           {},
                           *rc::gen::element(SlowWork::kRepeat, SlowWork::kAwait),
                           *rc::gen::element(WorkDeal::kFirstCome, WorkDeal::kByRank)};
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) message.items.push_back(any_text(kTextBytesMax));
  check_round_trip(message);
}
RC_GTEST_PROP(Message, WorkComesBackAndNoPrefixOfItDoes, (uint64_t number, bool repeated)) {
  using State = TakenMessage::State;
  check_round_trip(TakenMessage{*rc::gen::element(State::kGiven, State::kWait, State::kEnd, State::kPause),
                                {number, any_text(kTextBytesMax), repeated},
                                any_text(kTextBytesMax)});
}
RC_GTEST_PROP(Message, EndOfWorkComesBackAndNoPrefixOfItDoes, (uint64_t number)) {
  check_round_trip(FinishWorkMessage{any_text(kNameBytesMax), number, any_addends(), any_text(kNameBytesMax)});
}
RC_GTEST_PROP(Message, PauseComesBackAndNoPrefixOfItDoes, (uint64_t number, bool begins)) {
  check_round_trip(PauseWorkMessage{any_text(kNameBytesMax), number, begins});
}
RC_GTEST_PROP(Message, YesAndNoComeBack, (bool yes)) { check_round_trip(YesNoMessage{yes}); }
RC_GTEST_PROP(Message, TallyComesBackAndNoPrefixOfItDoes, (uint32_t first, uint32_t count, std::vector<double> sums)) {
  check_round_trip(TallyMessage{any_text(kNameBytesMax), any_addends(), first, count});
  check_round_trip(TallyReplyMessage{sums});
}
RC_GTEST_PROP(Message, ScanComesBackAndNoPrefixOfItDoes,
              (uint64_t first, uint32_t rows, std::vector<Key> keys, std::vector<float> floats)) {
  const auto kind = *rc::gen::element(ScanKind::kCount, ScanKind::kNonzero, ScanKind::kAll, ScanKind::kState);
  check_round_trip(ScanMessage{first, kind});
  check_round_trip(ScannedRows{first, rows, keys, floats});
  check_round_trip(SetRowsMessage{*rc::gen::element(ScanKind::kAll, ScanKind::kState), keys, floats});
}

template <class Message>
void check_any_bytes(Bytes bytes) {
  const auto decoded = decode<Message>(bytes);
  if (!decoded) {
    EXPECT_EQ(decoded.error().code, Code::kCorrupt) << decoded.error().message;
    return;
  }
  EXPECT_EQ(bytes_in(encode(*decoded)), std::vector<std::byte>(bytes.begin(), bytes.end()));
}

TEST(Message, AnyBytesGiveTheMessageTheyAreOrCorrupt) {
  Random random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random.below(80));
    // Mostly zeros, so that lengths are often small enough to get past the first field.
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.chance(0.8) ? 0 : random.next());
    check_any_bytes<JoinMessage>(bytes);
    check_any_bytes<View>(bytes);
    check_any_bytes<HeartbeatMessage>(bytes);
    check_any_bytes<LeaveMessage>(bytes);
    check_any_bytes<TextMessage>(bytes);
    check_any_bytes<SyncReplyMessage>(bytes);
    check_any_bytes<ErrorMessage>(bytes);
    check_any_bytes<TableSpec>(bytes);
    check_any_bytes<OfferWorkMessage>(bytes);
    check_any_bytes<TakenMessage>(bytes);
    check_any_bytes<FinishWorkMessage>(bytes);
    check_any_bytes<PauseWorkMessage>(bytes);
    check_any_bytes<YesNoMessage>(bytes);
    check_any_bytes<TallyMessage>(bytes);
    check_any_bytes<TallyReplyMessage>(bytes);
    check_any_bytes<ScanMessage>(bytes);
    check_any_bytes<ScannedRows>(bytes);
    check_any_bytes<SetRowsMessage>(bytes);
  }
}

TEST(Message, EachByteOfAViewMayBeDamagedWithoutHarm) {
  View view{7, Phase::kRunning, "why", {node(3, 1), node(4, 2)}};
  auto bytes = bytes_in(encode(view));
  for (std::byte& byte : bytes) {
    const std::byte saved = byte;
    for (int value = 0; value < 256; ++value) {
      byte = static_cast<std::byte>(value);
      check_any_bytes<View>(bytes);
    }
    byte = saved;
  }
}

TEST(Message, LongTextIsCutBetweenCharacters) {
  std::string text(kTextBytesMax - 1, 'x');
  text.append("\xc3\xa4more");  // a-umlaut over the border
  const auto decoded = decode<TextMessage>(encode(TextMessage{text})->span());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->text, std::string(kTextBytesMax - 1, 'x'));
}

TEST(Message, LongNamesAreRefusedByTheReceiver) {
  JoinMessage join;
  join.job = std::string(kNameBytesMax + 1, 'x');
  EXPECT_FALSE(decode<JoinMessage>(encode(join)->span()).has_value());
  join.job.pop_back();
  EXPECT_TRUE(decode<JoinMessage>(encode(join)->span()).has_value());
  join.self.address = std::string(kNameBytesMax + 1, 'x');
  EXPECT_FALSE(decode<JoinMessage>(encode(join)->span()).has_value());
}

TEST(Message, ViewsHoldAtMostNodesMax) {
  View view;
  view.nodes.resize(kNodesMax);
  auto bytes = bytes_in(encode(view));
  EXPECT_TRUE(decode<View>(bytes).has_value());
  // One more node, by hand: encode() would refuse to.
  const size_t count_at = 8 + 1 + 4;
  const auto more = static_cast<uint32_t>(kNodesMax + 1);
  std::memcpy(bytes.data() + count_at, &more, sizeof more);
  bytes.insert(bytes.end(), bytes.end() - 34, bytes.end());
  const auto decoded = decode<View>(bytes);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
}

TEST(Message, NumbersThatNameNothingAreRefused) {
  auto leave = bytes_in(encode(LeaveMessage{}));
  leave[0] = std::byte{2};
  EXPECT_FALSE(decode<LeaveMessage>(leave).has_value());
  auto error = bytes_in(encode(ErrorMessage{}));
  error[0] = std::byte{6};
  EXPECT_FALSE(decode<ErrorMessage>(error).has_value());
  auto view = bytes_in(encode(View{}));
  auto set = bytes_in(encode(SetRowsMessage{}));
  set[0] = static_cast<std::byte>(ScanKind::kNonzero);
  EXPECT_FALSE(decode<SetRowsMessage>(set).has_value());
  view[8] = std::byte{4};
  EXPECT_FALSE(decode<View>(view).has_value());
}

TEST(Message, SpecThatNoServerCouldMakeIsCorrupt) {
  TableSpec spec;
  spec.name = "t";
  spec.width = 0;
  const auto decoded = decode<TableSpec>(encode(spec)->span());
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  EXPECT_NE(decoded.error().message.find("width"), std::string::npos) << decoded.error().message;
}

TEST(NodeInfo, IsNamedByRoleRankAndOwner) {
  NodeInfo info = node(7, 1);
  EXPECT_EQ(info.name(), "worker 1");
  info.role = Role::kServer;
  EXPECT_EQ(info.name(), "server 1");
  info.owners = 2;
  EXPECT_EQ(info.name(), "server 1.0");
  info.owner = 1;
  EXPECT_EQ(info.name(), "server 1.1");
  info.role = Role::kScheduler;
  EXPECT_EQ(info.name(), "scheduler");
}

TEST(View, FindsANodeByItsSession) {
  const View view{1, Phase::kRunning, "", {node(3, 8), node(4, 9)}};
  ASSERT_NE(view.find(4), nullptr);
  EXPECT_EQ(view.find(4)->rank, 9u);
  EXPECT_EQ(view.find(5), nullptr);
}

TEST(Credit, PacksIntoOneNumber) {
  const Credit credit{.requests = 3, .bytes = 0xffffffff};
  EXPECT_EQ(Credit::unpack(credit.packed()), credit);
}

}  // namespace
}  // namespace pscloud
