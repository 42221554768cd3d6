#include "io/http_store.h"

#include <algorithm>
#include <utility>

#include "io/content_range.h"
#include "io/http_client.h"
#include "io/read_ahead.h"

namespace pscloud {
namespace {

constexpr uint64_t kWholeBytesMax = 256 << 20;

// By its ETag, else by its time.
std::string version_of(const HttpResponse& response) {
  std::string version = version_of_etag(response.header("etag"));
  if (version.empty()) version = response.header("last-modified");
  std::ranges::replace(version, ' ', '_');
  return version;
}

Error http_error(const std::string& uri, const HttpResponse& response) {
  const int status = response.status;
  if (status == 404 || status == 410) return not_found("{}: no such file", uri);
  if (status == 401 || status == 403) return invalid("{}: denied (status {})", uri, status);
  if (status == 429 || status >= 500) {
    return unavailable("{}: the server answers with status {} ({} tries)", uri, status, response.tries);
  }
  return job_failed("{}: the server answers with status {}", uri, status);
}

class HttpStore final : public FileStore {
 public:
  explicit HttpStore(const std::function<bool()>& cancelled) : http_({.cancelled = cancelled}) {}

  Result<FileInfo> stat(const std::string& uri) override {
    TRY(check(uri));
    const HttpResponse head = TRY(http_.send({.method = "HEAD", .url = uri, .follow = true}).at(uri));
    // A URL may be signed for GET alone, and some servers know no HEAD.
    if (head.status == 403 || head.status == 405 || head.status == 501) {
      const auto first = get(uri, 0, 1, 1, {});
      const auto size = first ? whole_size(*first, 0, 1) : first.error();
      if (!size) return http_error(uri, head);
      return info_of(uri, *size, version_of(*first), true);
    }
    if (head.status != 200) return http_error(uri, head);
    const auto size = whole_number(head.header("content-length"));
    if (!size) return invalid("{}: the server does not say how long it is: copy it to a file first", uri);
    return info_of(uri, *size, version_of(head), TRY(gives_parts(uri, head)));
  }

  Result<std::vector<FileInfo>> list(const std::string& folder) override { return no_lists(folder); }
  Result<std::vector<std::string>> list_folders(const std::string& folder) override { return no_lists(folder); }

  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    TRY(check(uri));
    const auto nothing = [] { return std::make_unique<ReadAheadInput>("", ByteRange{.end = 0}, nullptr); };
    if (range.begin >= range.end) return nothing();
    const uint64_t first_end =
        range.begin + std::min<uint64_t>(range.end - range.begin, ReadAheadInput::kFirstBlockBytes);
    auto got = get(uri, range.begin, first_end, kWholeBytesMax, {});
    if (!got && got.error().code == Code::kCorrupt) {
      return invalid("{}: the server gives no parts of files, and it has more than {} MB: copy it to a file first", uri,
                     kWholeBytesMax >> 20);
    }
    HttpResponse first = TRY(got);
    if (first.status == 416) return nothing();  // behind its end
    const std::string version = version_of(first);
    if (!range.version.empty() && version != range.version) return version_changed(uri, range.version, version);
    if (first.status == 200) {  // all of it, for the server knows no parts
      const uint64_t begin = std::min<uint64_t>(range.begin, first.body.size());
      std::string part = first.body.substr(begin, range.end - begin);
      const uint64_t end = begin + part.size();
      return std::make_unique<ReadAheadInput>(std::move(part), ByteRange{.begin = begin, .end = end}, nullptr);
    }
    range.end = std::min(range.end, TRY(whole_size(first, range.begin, first_end).at(uri)));
    const auto fetch = [this, uri, version](uint64_t begin, uint64_t end,
                                            const std::stop_token& stop) -> Result<std::string> {
      HttpResponse response = TRY(get(uri, begin, end, end - begin, stop));
      if (version_of(response) != version) return version_changed(uri, version, version_of(response));
      TRY(whole_size(response, begin, end).at(uri));
      return std::move(response.body);
    };
    return std::make_unique<ReadAheadInput>(std::move(first.body), range, fetch);
  }

  Result<std::unique_ptr<Output>> create(const std::string& uri) override {
    return invalid("{}: files cannot be written over HTTP", uri);
  }

 private:
  static Result<> check(const std::string& uri) {
    if (host_of(uri).find('@') == std::string_view::npos) return {};
    return invalid("a URL with a name or password is refused: it would stand in logs");
  }
  static FileInfo info_of(const std::string& uri, uint64_t size, std::string version, bool gives_parts) {
    // A size alone is no version: others have it too.
    const bool is_global = !version.empty();
    return {.uri = uri,
            .size = size,
            .version = std::move(version),
            .version_is_global = is_global,
            .gives_parts = gives_parts};
  }
  // Many servers say so; of one that does not a byte is asked for, and if it sends more it has not understood.
  Result<bool> gives_parts(const std::string& uri, const HttpResponse& head) {
    if (head.header("accept-ranges") == "bytes") return true;
    const auto got = get(uri, 0, 1, 1, {});
    if (!got && got.error().code != Code::kCorrupt) return got.error();
    return got && got->status != 200;
  }
  static Error no_lists(const std::string& folder) {
    return invalid("{}: web servers have no lists of files: name each file", folder);
  }

  Result<HttpResponse> get(const std::string& uri, uint64_t begin, uint64_t end, uint64_t bytes_max,
                           const std::stop_token& stop) {
    HttpResponse response = TRY(http_
                                    .send({.url = uri,
                                           .headers = {{"range", range_header(begin, end)}},
                                           .response_bytes_max = bytes_max,
                                           .follow = true},
                                          {}, stop)
                                    .at(uri));
    if (response.status != 200 && response.status != 206 && response.status != 416) return http_error(uri, response);
    return response;
  }

  HttpClient http_;
};

}  // namespace

std::unique_ptr<FileStore> make_http_store(const std::function<bool()>& cancelled) {
  return std::make_unique<HttpStore>(cancelled);
}

}  // namespace pscloud
