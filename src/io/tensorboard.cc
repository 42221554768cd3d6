#include "io/tensorboard.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "io/crc32c.h"

namespace pscloud {
namespace {

// Protocol buffers' wire format, by hand: three messages with seven fields do not pay for a compiler and its library.
//   Event         { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//   Summary       { repeated Value value = 1; }
//   Summary.Value { string tag = 1; float simple_value = 2; }
class Message {
 public:
  void varint_field(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void double_field(int field, double value) {
    tag(field, 1);
    fixed(std::bit_cast<uint64_t>(value));
  }
  void float_field(int field, float value) {
    tag(field, 5);
    fixed(std::bit_cast<uint32_t>(value));
  }
  void bytes_field(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int wire_type) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class T>
  void fixed(T value) {
    std::array<char, sizeof value> raw;
    std::memcpy(raw.data(), &value, sizeof value);
    bytes_.append(raw.data(), raw.size());
  }

  std::string bytes_;
};

// A CRC of bytes that hold CRCs is weak, so TFRecord stores them rotated and shifted.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes_of(bytes)), 15) + 0xa282ead8; }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

}  // namespace

Result<TensorBoardWriter> TensorBoardWriter::create(const std::string& folder, double wall_time_s) {
  if (folder.find("://") != std::string::npos) {
    return invalid("{}: events are written bit by bit, which only a folder of this machine allows", folder);
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid("cannot make the folder {}: {}", folder, error.message());
  // The name that TensorFlow gives, so that tools that look for it find ours. A process may write several.
  std::FILE* file = nullptr;
  std::string path;
  for (int n = 0; file == nullptr; ++n) {
    path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, static_cast<int64_t>(wall_time_s), host_name(),
                       ::getpid(), n);
    file = std::fopen(path.c_str(), "wbxe");
    if (file == nullptr && errno != EEXIST) return invalid("cannot make {}: {}", path, std::strerror(errno));
  }
  TensorBoardWriter writer(path, file);
  Message event;
  event.double_field(1, wall_time_s);
  event.bytes_field(3, "brain.Event:2");
  TRY(writer.write_record(event.bytes()));
  return writer;
}

Result<> TensorBoardWriter::write(double wall_time_s, int64_t step, std::span<const TensorBoardScalar> scalars) {
  Message summary;
  for (const TensorBoardScalar& scalar : scalars) {
    Message value;
    value.bytes_field(1, scalar.tag);
    value.float_field(2, static_cast<float>(scalar.value));
    summary.bytes_field(1, value.bytes());
  }
  Message event;
  event.double_field(1, wall_time_s);
  event.varint_field(2, static_cast<uint64_t>(step));
  event.bytes_field(5, summary.bytes());
  return write_record(event.bytes());
}

// TFRecord: length (u64), masked CRC of the length, the bytes, masked CRC of the bytes; all little endian.
Result<> TensorBoardWriter::write_record(std::string_view event) {
  ByteWriter record;
  record.put(uint64_t{event.size()});
  const std::string_view length(reinterpret_cast<const char*>(record.bytes().data()), record.size());
  const uint32_t length_crc = masked_crc(length);
  record.put(length_crc);
  record.put_raw(bytes_of(event));
  record.put(masked_crc(event));
  if (std::fwrite(record.bytes().data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    return unavailable("cannot write to {}: {}", path_, std::strerror(errno));
  }
  return {};
}

}  // namespace pscloud
