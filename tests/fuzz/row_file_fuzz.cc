// The reader of files of rows, as it comes, and then with its checksums put right: else a fuzzer would never get past
// the first of them.
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "io/crc32c.h"
#include "io/memory_store.h"
#include "learn/row_file.h"

namespace pscloud {
namespace {

void read(const std::string& bytes) {
  MemoryStore store({{"f", bytes}}, 1 << 20);
  uint64_t rows = 0;
  const auto info =
      read_row_file(store, "f", [&](const RowFileInfo& file, std::span<const Key> keys, auto floats) -> Result<> {
        rows += keys.size();
        CHECK(!keys.empty() && floats.size() == keys.size() * file.floats && file.floats >= file.width);
        return {};
      });
  CHECK(info ? info->rows == rows : info.error().code == Code::kCorrupt);
  (void)is_row_file(store, "f");
}

// Reads the input as a file without checksums.
std::string mended(Bytes bytes) {
  constexpr size_t kHeader = 20;
  if (bytes.size() < kHeader) return {};
  std::string out;
  std::vector<uint32_t> checks;
  const auto add = [&](Bytes piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    checks.push_back(crc32c(piece));
    out.append(reinterpret_cast<const char*>(&checks.back()), sizeof(uint32_t));
  };
  ByteReader header(bytes.subspan(kHeader - sizeof(uint32_t)));
  const uint64_t row_bytes = sizeof(Key) + uint64_t{header.get<uint32_t>()} * sizeof(float);
  add(bytes.first(kHeader));
  bytes = bytes.subspan(kHeader);
  uint64_t rows = 0;
  while (bytes.size() >= sizeof(uint32_t)) {
    const auto count = ByteReader(bytes).get<uint32_t>();
    const uint64_t size = sizeof(uint32_t) + count * row_bytes;
    if (count == 0 || size > bytes.size()) break;
    add(bytes.first(size));
    bytes = bytes.subspan(size);
    rows += count;
  }
  ByteWriter end;
  end.put(uint32_t{0});
  end.put(rows);
  end.put(crc32c(bytes_of(std::span<const uint32_t>(checks))));
  add(end.bytes());
  return out;
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::read({reinterpret_cast<const char*>(data), size});
  pscloud::read(pscloud::mended(std::as_bytes(std::span(data, size))));
  return 0;
}
