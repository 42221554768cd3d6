#include "data/text_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "data/scan.h"
#include "io/decompress.h"

namespace pscloud {

Result<TextReader> TextReader::open(FileStore& store, FilePart part, size_t chunk_bytes) {
  CHECK(chunk_bytes > 0, "no chunks");
  // One byte more: if it ends a line, the next one is ours.
  const uint64_t from = part.begin == 0 ? 0 : part.begin - 1;
  auto input = TRY(open_decompressed(store, part.uri, {.begin = from, .ahead_end = part.end, .version = part.version}));
  TextReader reader(std::move(input), std::move(part), chunk_bytes);
  if (reader.part_.begin == 0) return reader;
  reader.offset_ = from;
  TRY(reader.skip_line());
  return reader;
}

TextReader::TextReader(std::unique_ptr<Input> input, FilePart part, size_t chunk_bytes)
    : input_(std::move(input)), part_(std::move(part)), buffer_(chunk_bytes + kScanPadding) {}

// Reads until the buffer is full or the file at its end.
Result<> TextReader::fill() {
  const size_t capacity = buffer_.size() - kScanPadding;
  while (!at_end_ && filled_ < capacity) {
    const size_t count = TRY(input_->read(std::span(buffer_).subspan(filled_, capacity - filled_)));
    filled_ += count;
    at_end_ = count == 0;
  }
  return {};
}

Result<> TextReader::skip_line() {
  while (true) {
    TRY(fill());
    const char* const begin = buffer_.data();
    const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', filled_));
    if (end != nullptr) {
      used_ = static_cast<size_t>(end - begin) + 1;
      return {};
    }
    if (at_end_ || offset_ + filled_ >= part_.end) {
      done_ = true;  // the line goes on to the end of the part
      return {};
    }
    offset_ += std::exchange(filled_, 0);
  }
}

Result<std::string_view> TextReader::next() {
  std::memmove(buffer_.data(), buffer_.data() + used_, filled_ - used_);
  offset_ += used_;
  filled_ -= std::exchange(used_, 0);
  while (!done_ && offset_ < part_.end) {
    TRY(fill());
    const char* const begin = buffer_.data();
    const char* last = nullptr;  // the '\n' that ends the lines to return
    if (offset_ + filled_ >= part_.end) {
      // The line that the part's last byte is in is its last.
      const size_t from = part_.end - 1 - offset_;
      last = static_cast<const char*>(std::memchr(begin + from, '\n', filled_ - from));
      done_ = last != nullptr;
    } else if (!at_end_) {
      last = static_cast<const char*>(memrchr(begin, '\n', filled_));
    }
    if (last != nullptr || at_end_) {
      done_ = done_ || last == nullptr;
      used_ = last == nullptr ? filled_ : static_cast<size_t>(last - begin) + 1;
      if (used_ == filled_) std::memset(buffer_.data() + filled_, 0, kScanPadding);
      return std::string_view(begin, used_);
    }
    if (buffer_.size() > kLineBytesMax) {
      return invalid("{}: the line at byte {} has more than {} bytes: is this a text file?", part_.uri, offset_,
                     kLineBytesMax);
    }
    buffer_.resize(buffer_.size() * 2);
  }
  return std::string_view();
}

Result<uint64_t> line_number(FileStore& store, const std::string& uri, uint64_t offset, const LinePlace& known) {
  CHECK(known.offset <= offset, "it is before what is known");
  const auto input = TRY(open_decompressed(store, uri, {.begin = known.offset, .ahead_end = offset, .version = {}}));
  std::vector<char> buffer(TextReader::kChunkBytes);
  uint64_t line = known.line;
  for (uint64_t left = offset - known.offset; left > 0;) {
    const size_t count = TRY(input->read(std::span(buffer).first(std::min<uint64_t>(buffer.size(), left))));
    if (count == 0) break;
    line += static_cast<uint64_t>(std::count(buffer.data(), buffer.data() + count, '\n'));
    left -= count;
  }
  return line;
}

}  // namespace pscloud
