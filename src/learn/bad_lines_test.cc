#include "learn/bad_lines.h"

#include <gtest/gtest.h>

#include "io/memory_store.h"
#include "io/watched_store.h"

namespace pscloud {
namespace {

// One that has read a part, and these lines are bad.
struct FakeReader {
  BadLines bad;
  bool records = false;

  const BadLines& bad_lines() const { return bad; }
  bool reads_records() const { return records; }
};

FakeReader with_bad(std::vector<uint64_t> offsets) {
  FakeReader reader;
  for (const uint64_t offset : offsets) reader.bad.add(offset, "no number");
  return reader;
}

TEST(BadLineComplaints, TheirPlacesCostOneLookAtTheFile) {
  const std::string line = "1 3:x\n";
  std::string text;
  for (int i = 0; i < 1000; ++i) text += line;
  MemoryStore files({{"a", text}});
  uint64_t bytes = 0;
  WatchedStore store(files, [&](size_t count) {
    bytes += count;
    return Result<>();
  });
  BadLineComplaints complaints;
  std::vector<uint64_t> offsets;
  for (uint64_t i = 992; i < 1000; ++i) offsets.push_back(i * line.size());
  ASSERT_TRUE(complaints.complain(store, "a", with_bad(offsets), false));
  EXPECT_LT(bytes, text.size() + 1000);  // and some bytes that tell whether it is compressed
  EXPECT_EQ(complaints.complain(store, "a", with_bad({500 * line.size()}), true).error().message, "a:501: no number");
  EXPECT_EQ(complaints.complain(store, "a", with_bad({999 * line.size()}), true).error().message, "a:1000: no number");
}

TEST(BadLineComplaints, FarIntoARemoteFileTheByteIsTold) {
  MemoryStore store({{"s3://b/near", std::string("1 3:x\n1 4:x\n")}});
  BadLineComplaints complaints;
  EXPECT_EQ(complaints.complain(store, "s3://b/near", with_bad({6}), true).error().message, "s3://b/near:2: no number");
  EXPECT_EQ(complaints.complain(store, "s3://b/far", with_bad({uint64_t{1} << 36}), true).error().message,
            "s3://b/far: the line at byte 68719476736: no number");  // without a look at the file, which is not there
}

}  // namespace
}  // namespace pscloud
