// What clients ask of the API (docs/controller.md): lines "METHOD", "path", "name=value" of the query and "name: value"
// of headers, then a body. Every answer has a status and is within the folder of runs; of ranges, parts are within the
// file.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "console/api.h"
#include "console/byte_range.h"
#include "console/sample_file.h"

namespace pscloud {
namespace {

constexpr const char* kSecret = "nobody may read this";

// Of one run, with a secret beside it; made once.
std::string make_home() {
  char name[] = "/tmp/pscloud-api-fuzz-XXXXXX";
  std::string home = ::mkdtemp(name);
  std::filesystem::create_directories(home + "/runs/a/logs");
  std::ofstream(home + "/secret") << kSecret;
  std::ofstream(home + "/runs/a/state.json")
      << R"({"run":"a","job":"j","target":"local","state":"done","began_unix_ms":1,"ended_unix_ms":2,)"
      << R"("tasks":[{"task":"worker-0","state":"done"}]})";
  std::ofstream(home + "/runs/a/logs/worker-0.log") << "one\ntwo\n";
  std::ofstream(home + "/runs/a/samples.csv") << "1,worker-0,loss,2\n";
  return home;
}

struct Home {
  const std::string path = make_home();
  ~Home() { std::filesystem::remove_all(path); }
};

const Api& the_api() {
  static const Home home;
  static const Api api([] {
    ApiOptions options;
    options.runs = home.path + "/runs";
    options.token = "t";
    options.clean = [](const std::string&) -> Result<> { return {}; };
    return options;
  }());
  return api;
}

class CountedStream final : public HttpStream {
 public:
  bool write(std::string_view bytes) override {
    CHECK(bytes.find(kSecret) == std::string_view::npos);
    return true;
  }
  bool pause(std::chrono::milliseconds) override { return false; }
};

HttpCall read_call(std::string_view text) {
  const auto line = [&] {
    const std::string_view found = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(found.size() + 1, text.size()));
    return found;
  };
  HttpCall call;
  call.method = line();
  call.path = line();
  call.headers.emplace_back("Authorization", "Bearer t");
  while (!text.empty()) {
    const std::string_view field = line();
    if (field.empty()) break;
    const size_t colon = field.find(": ");
    const size_t equals = field.find('=');
    if (colon < equals) {
      call.headers.emplace_back(field.substr(0, colon), field.substr(colon + 2));
    } else if (equals != std::string_view::npos) {
      call.query.emplace_back(field.substr(0, equals), field.substr(equals + 1));
    }
  }
  call.body = text.substr(0, 100);
  return call;
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pscloud;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const RangeAnswer range = parse_range(text, 10);
  CHECK(range.kind != RangeAnswer::Kind::kPart || (range.range.begin < range.range.end && range.range.end <= 10));
  parse_sample(text);
  const HttpReply reply = the_api().answer(read_call(text));
  CHECK(reply.status >= 200 && reply.status < 600);
  CHECK(reply.body.find(kSecret) == std::string::npos);
  CountedStream stream;
  if (reply.stream) reply.stream(stream);
  return 0;
}
