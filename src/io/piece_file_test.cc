#include "io/piece_file.h"

#include <gtest/gtest.h>

#include "io/memory_store.h"

namespace pscloud {
namespace {

constexpr std::string_view kTestKind = "pieces01";

std::string file_of_pieces(MemoryStore& store, const std::vector<std::string>& pieces) {
  PieceWriter writer(store.create("f").value(), kTestKind);
  for (const std::string& piece : pieces) EXPECT_TRUE(writer.write(bytes_of(piece)));
  EXPECT_TRUE(writer.commit());
  return store.get("f");
}

Result<std::vector<std::string>> read_pieces(const std::string& file) {
  MemoryStore store({{"f", file}});
  PieceReader reader = TRY(PieceReader::open(store, "f", kTestKind));
  std::vector<std::string> pieces;
  std::vector<std::byte> memory;
  while (const auto piece = TRY(reader.next(memory))) {
    pieces.emplace_back(reinterpret_cast<const char*>(piece->data()), piece->size());
  }
  return pieces;
}

TEST(PieceFile, BringsBackWhatWasWritten) {
  MemoryStore store;
  for (const std::vector<std::string>& pieces :
       {std::vector<std::string>{}, {"a"}, {"one", std::string(1000, 'x'), "three"}}) {
    EXPECT_EQ(read_pieces(file_of_pieces(store, pieces)).value(), pieces);
  }
}

TEST(PieceFile, DamageIsNoticedWhereverItIs) {
  MemoryStore store;
  const std::string good = file_of_pieces(store, {"some", "pieces"});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_EQ(read_pieces(bad).error().code, Code::kCorrupt) << i;
    EXPECT_EQ(read_pieces(good.substr(0, i)).error().code, Code::kCorrupt) << i;
  }
  EXPECT_EQ(read_pieces(good + "x").error().code, Code::kCorrupt);
}

TEST(PieceFile, PiecesOfTwoFilesAreNotTakenForOne) {
  MemoryStore store;
  const std::string one = file_of_pieces(store, {"aaaa", "bbbb"});
  const std::string other = file_of_pieces(store, {"cccc", "dddd"});
  const size_t second = 8 + 16 + 4;  // where the second piece begins
  EXPECT_EQ(read_pieces(one.substr(0, second) + other.substr(second)).error().code, Code::kCorrupt);
}

TEST(PieceFile, TheLastChecksumTellsFilesApart) {
  MemoryStore store;
  const auto check_of = [&](const std::string& text) {
    PieceWriter writer(store.create("f").value(), kTestKind);
    EXPECT_TRUE(writer.write(bytes_of(text)));
    EXPECT_TRUE(writer.commit());
    PieceReader reader = PieceReader::open(store, "f", kTestKind).value();
    std::vector<std::byte> memory;
    while (reader.next(memory).value()) continue;
    EXPECT_EQ(reader.check(), writer.check());
    return writer.check();
  };
  EXPECT_NE(check_of("a"), check_of("b"));
}

}  // namespace
}  // namespace pscloud
