// Writes the seeds of the fuzz targets below the folder given: one sound input of each kind, for a fuzzer to damage.
// Run it again when a format changes: build/release/tests/fuzz/make_corpus tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "engine/filter/filter.h"
#include "engine/message.h"
#include "io/memory_store.h"
#include "learn/row_file.h"
#include "net/frame.h"
#include "net/shm/ring.h"

namespace pscloud {
namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(const char* target, const char* name, const ByteWriter& head, Bytes rest) const {
    std::filesystem::create_directories(folder_ / target);
    std::ofstream file(folder_ / target / name, std::ios::binary);
    for (const Bytes part : {head.bytes(), rest})
      file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
    CHECK(file.good(), "cannot write {}/{}", target, name);
  }

 private:
  const std::filesystem::path folder_;
};

ByteWriter head_of(std::initializer_list<int> bytes) {
  ByteWriter head;
  for (const int byte : bytes) head.put(static_cast<uint8_t>(byte));
  return head;
}

void add_frames(const Corpus& corpus) {
  const auto payload = std::make_shared<const Buffer>(Buffer::copy_of(bytes_of("payload")));
  FrameHeader push{.type = FrameType::kPush, .session = 1, .seq = 2, .ack = 1, .table = 3, .count = 4, .clock = 5};
  push.flags = kFlagRange;
  for (const bool checked : {false, true}) {
    const HeaderBytes header = encode_header({push, payload}, checked);
    ByteWriter head = head_of({checked ? 3 : 1});
    head.put_raw(header);
    corpus.add("frame_fuzz", checked ? "push_checked" : "push", head, payload->span());
  }
  ByteWriter head = head_of({0});
  head.put_raw(encode_header({FrameHeader{}, nullptr}, false));
  corpus.add("frame_fuzz", "heartbeat", head, {});
}

void add_messages(const Corpus& corpus) {
  NodeInfo server;
  server.session = 5;
  server.role = Role::kServer;
  server.owners = 2;
  server.address = "127.0.0.1:4000";
  const View view{3, Phase::kFailed, "server 0 is dead", {server, NodeInfo{}}};
  TableSpec spec;
  spec.name = "weights";
  spec.updater = {"ftrl", {{"alpha", 0.5f}}};
  spec.push_filters = {{FilterKind::kKeyCaching}, {FilterKind::kFixedPoint, 2}, {FilterKind::kLz4}};
  spec.pull_filters = {{FilterKind::kFloat16}};
  const auto add = [&](int kind, const char* name, const SharedBuffer& bytes) {
    corpus.add("message_fuzz", name, head_of({kind}), bytes->span());
  };
  add(0, "join", encode(JoinMessage{"job", server, 2, view}));
  add(1, "view", encode(view));
  add(2, "heartbeat", encode(HeartbeatMessage{9, "worker 1"}));
  add(3, "leave", encode(LeaveMessage{true, "out of memory"}));
  add(4, "text", encode(TextMessage{"worker 1, worker 2"}));
  add(5, "sync_reply", encode(SyncReplyMessage{7, 1, 64, {3, 4}}));
  add(6, "error", encode(ErrorMessage{Code::kNotFound, "no such table"}));
  add(7, "table_spec", encode(spec));
  add(8, "offer_work", encode(OfferWorkMessage{"train", {"part 0", "part 1"}, SlowWork::kAwait, WorkDeal::kByRank}));
  add(9, "taken", encode(TakenMessage{TakenMessage::State::kGiven, {1, "part 1", true}, "worker 1"}));
  add(10, "finish_work", encode(FinishWorkMessage{"train", 1, {{0, 1}, {3, 0.5}}, "sums"}));
  add(11, "yes", encode(YesNoMessage{true}));
  add(12, "tally", encode(TallyMessage{"train", {{2, -1}}, 1, 8}));
  add(13, "tally_reply", encode(TallyReplyMessage{{1, 0, 0.5}}));
  add(14, "scan", encode(ScanMessage{7, ScanKind::kState}));
  add(15, "scanned", encode(ScannedRows{9, 1, {3, 4}, {0, 0.5f}}));
  add(17, "pause_work", encode(PauseWorkMessage{"train", 3, true}));
  add(16, "set_rows", encode(SetRowsMessage{ScanKind::kState, {4, 3}, {0, 0.5f, 1, 2}}));
}

void add_payloads(const Corpus& corpus) {
  struct Case {
    const char* name;
    std::vector<FilterSpec> chain;
  };
  const Case cases[] = {
      {"plain", {}},
      {"key_caching", {{FilterKind::kKeyCaching}}},
      {"lz4", {{FilterKind::kLz4}}},
      {"zstd", {{FilterKind::kZstd}}},
      {"fixed_point", {{FilterKind::kFixedPoint, 1}, {FilterKind::kDropZeros}}},
      {"float16", {{FilterKind::kFloat16}, {FilterKind::kDropZeros}}},
      {"bfloat16", {{FilterKind::kNoise, 2, 0, 1}, {FilterKind::kBfloat16}}},
      {"all", {{FilterKind::kKeyCaching}, {FilterKind::kFixedPoint, 3}, {FilterKind::kDropZeros}, {FilterKind::kZstd}}},
  };
  std::vector<Key> keys;
  std::vector<float> values;
  for (Key key = 0; key < 40; ++key) {
    keys.push_back(key * 3);
    values.push_back(key % 5 == 0 ? 1.5f : 0.0f);
  }
  Random random(7);
  for (const Case& each : cases) {
    KeyCache cache(1 << 16);
    const auto payload = encode_payload(each.chain, keys, Floats(values), keys.size(), {&random, &cache});
    CHECK(payload.has_value());
    corpus.add("payload_fuzz", each.name, head_of({3, 40, 0}), payload->joined()->span());
  }
  // The list that payload_fuzz knows, by its signature.
  const std::vector<Key> known{1, 2, 3, UINT64_MAX};
  KeyCache cache(1 << 16);
  cache.remember(hash128(bytes_of(std::span<const Key>(known))), 8 * known.size());
  const FilterSpec caching[] = {{FilterKind::kKeyCaching}};
  const auto payload = encode_payload(caching, known, {}, known.size(), {&random, &cache});
  CHECK(payload.has_value());
  corpus.add("payload_fuzz", "signature", head_of({1, 4, 0}), payload->joined()->span());
}

// Models and parts of checkpoints, and one without its checksums, which row_file_fuzz.cc puts in.
void add_row_files(const Corpus& corpus) {
  MemoryStore store;
  const std::vector<Key> keys{7, 9, UINT64_MAX};
  const auto add = [&](const char* name, uint32_t width, const std::vector<float>& floats) {
    RowFileWriter writer(store.create(name).value(), width);
    CHECK(floats.empty() || writer.write(keys, floats));
    CHECK(writer.commit());
    corpus.add("row_file_fuzz", name, {}, bytes_of(store.get(name)));
  };
  add("empty", 1, {});
  add("model", 1, {1, -0.5f, 1e-5f});
  add("checkpoint", 2, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::string whole = store.get("model");
  corpus.add("row_file_fuzz", "unchecked", {}, bytes_of(whole.substr(0, 20) + whole.substr(24, 40)));
}

// The ring of a peer: see shm_fuzz.cc for what stands before the slots.
void add_rings(const Corpus& corpus) {
  const auto push_of = [](size_t bytes) {
    return encode_header({{.type = FrameType::kPush}, std::make_shared<const Buffer>(bytes)}, false);
  };
  ShmSlot inlined, in_place, released, lent, gone;
  inlined.kind = in_place.kind = lent.kind = ShmSlot::kFrame;
  inlined.inline_bytes = 8;
  inlined.header = push_of(8);
  in_place.payload = {0, 100, 140000};
  in_place.values = {0, 4000, 200000};
  in_place.header = push_of(4100);
  released.kind = ShmSlot::kRelease;
  released.payload = {0, 0, 135168};
  lent.values = {1, 4000, 4096};
  lent.header = push_of(4000);
  gone.kind = ShmSlot::kGone;
  gone.payload.segment = 1;
  const auto add = [&](const char* name, std::initializer_list<ShmSlot> slots) {
    ByteWriter head;
    head.put(static_cast<uint32_t>(slots.size()));
    head.put(uint32_t{1});
    head.put(uint8_t{0});
    corpus.add("shm_fuzz", name, head, bytes_of(std::span<const ShmSlot>(slots.begin(), slots.size())));
  };
  add("inline", {inlined});
  add("in_place", {in_place});
  add("all", {inlined, in_place, released, inlined});
  add("gone", {lent, gone, inlined, lent});
}

}  // namespace
}  // namespace pscloud

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  const pscloud::Corpus corpus(argv[1]);
  pscloud::add_frames(corpus);
  pscloud::add_messages(corpus);
  pscloud::add_payloads(corpus);
  pscloud::add_row_files(corpus);
  pscloud::add_rings(corpus);
  return 0;
}
