#include "io/s3_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "io/content_range.h"
#include "io/read_ahead.h"
#include "io/s3_client.h"
#include "io/s3_output.h"
#include "io/xml.h"

namespace pscloud {
namespace {

constexpr uint64_t kPageBytesMax = 16 << 20;  // a thousand keys of 1024 bytes, each byte as %XX, and the rest
constexpr uint64_t kErrorBytesMax = 64 << 10;
constexpr const char* kReadPermission = "s3:GetObject";
constexpr const char* kListPermission = "s3:ListBucket";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// As S3 encodes keys in lists: '+' is a space, for a plus comes as %2B.
Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return corrupt("'{}' is not percent-encoded", text);
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string if_match(const std::string& version) { return fmt::format("\"{}\"", version); }

// s3://bucket/folder and s3://bucket/folder/ are the same, and s3://bucket is its own.
Result<S3Name> folder_name(const std::string& folder) {
  S3Name name = TRY(s3_name_of(folder));
  if (!name.key.empty() && !name.key.ends_with('/')) name.key += '/';
  return name;
}

class S3Store final : public FileStore {
 public:
  S3Store(AwsVariables environment, const std::function<bool()>& cancelled)
      : client_(std::move(environment), cancelled) {}

  Result<FileInfo> stat(const std::string& uri) override {
    const S3Name name = TRY(file_name(uri));
    const auto head = client_.call({.method = "HEAD", .name = name, .permission = kReadPermission});
    if (head) {
      const uint64_t size = TRY(whole_number(head->header("content-length")).at(uri));
      return FileInfo{
          .uri = uri, .size = size, .version = version_of_etag(head->header("etag")), .version_is_global = true};
    }
    if (head.error().code == Code::kUnavailable || head.error().code == Code::kTimeout) return head.error();
    // An answer to HEAD has no body, and so no reason: one to GET has.
    TRY(client_.call({.name = name,
                      .headers = {{"range", range_header(0, 1)}},
                      .permission = kReadPermission,
                      .response_bytes_max = kErrorBytesMax,
                      .accepted_status = 416}));
    return head.error();
  }

  Result<std::vector<FileInfo>> list(const std::string& folder) override {
    const S3Name prefix = TRY(folder_name(folder));
    std::vector<FileInfo> files;
    TRY(each_page(prefix, [&](const S3Page& page) {
      for (const S3Page::Object& object : page.objects) {
        const std::string_view base = std::string_view(object.key).substr(prefix.key.size());
        // An empty name is the folder's own mark, which some programs leave.
        if (base.empty() || base.starts_with('.') || base.ends_with('/')) continue;
        files.push_back({.uri = S3Name{prefix.bucket, object.key}.uri(),
                         .size = object.size,
                         .version = object.etag,
                         .version_is_global = true});
      }
    }));
    std::ranges::sort(files, {}, &FileInfo::uri);
    return files;
  }

  Result<std::vector<std::string>> list_folders(const std::string& folder) override {
    const S3Name prefix = TRY(folder_name(folder));
    std::vector<std::string> folders;
    TRY(each_page(prefix, [&](const S3Page& page) {
      for (const std::string& one : page.prefixes) {
        if (one.substr(prefix.key.size()).starts_with('.')) continue;
        folders.push_back(S3Name{prefix.bucket, one}.uri());
      }
    }));
    std::ranges::sort(folders);
    return folders;
  }

  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    const S3Name name = TRY(file_name(uri));
    if (range.begin >= range.end) return std::make_unique<ReadAheadInput>("", ByteRange{.end = 0}, nullptr);
    const uint64_t first_end = range.begin + std::min<uint64_t>(range.end - range.begin, kFirstBytes);
    HttpResponse first = TRY(get(name, range.begin, first_end, range.version, {}));
    if (first.status == 416)
      return std::make_unique<ReadAheadInput>("", ByteRange{.end = 0}, nullptr);  // behind the end
    range.end = std::min(range.end, TRY(whole_size(first, range.begin, first_end).at(uri)));
    const std::string version = version_of_etag(first.header("etag"));
    if (version.empty()) return corrupt("{}: the answer has no ETag", uri);
    const auto fetch = [this, name, version](uint64_t begin, uint64_t end,
                                             const std::stop_token& stop) -> Result<std::string> {
      HttpResponse response = TRY(get(name, begin, end, version, stop));
      TRY(whole_size(response, begin, end).at(name.uri()));
      return std::move(response.body);
    };
    return std::make_unique<ReadAheadInput>(std::move(first.body), range, fetch);
  }

  Result<std::unique_ptr<Output>> create(const std::string& uri) override {
    return std::make_unique<S3Output>(client_, TRY(file_name(uri)));
  }
  Result<> check_create(const std::string& uri) override {
    return S3Output(client_, TRY(file_name(uri))).begin_upload();
  }
  Result<> remove(const std::string& uri) override {
    TRY(client_.call({.method = "DELETE", .name = TRY(file_name(uri)), .permission = "s3:DeleteObject"}));
    return {};
  }

 private:
  static constexpr uint64_t kFirstBytes = ReadAheadInput::kFirstBlockBytes;

  static Result<S3Name> file_name(const std::string& uri) {
    S3Name name = TRY(s3_name_of(uri));
    if (name.key.empty() || name.key.ends_with('/')) return invalid("{}: is a folder, not a file", uri);
    return name;
  }

  // A part of a file, of this version unless that is empty.
  Result<HttpResponse> get(const S3Name& name, uint64_t begin, uint64_t end, const std::string& version,
                           const std::stop_token& stop) {
    S3Call call{.name = name,
                .headers = {{"range", range_header(begin, end)}},
                .permission = kReadPermission,
                .response_bytes_max = std::max<uint64_t>(end - begin, kErrorBytesMax),
                .accepted_status = 416};
    if (!version.empty()) call.headers.emplace_back("if-match", if_match(version));
    return client_.call(call, stop);
  }

  template <class TakePage>
  Result<> each_page(const S3Name& prefix, const TakePage& take_page) {
    S3Call call{.name = {.bucket = prefix.bucket, .key = ""},
                .permission = kListPermission,
                .response_bytes_max = kPageBytesMax};
    std::string from;
    bool any = false;
    do {
      call.query = {{"list-type", "2"}, {"delimiter", "/"}, {"encoding-type", "url"}, {"prefix", prefix.key}};
      if (!from.empty()) call.query.emplace_back("continuation-token", from);
      const HttpResponse response = TRY(client_.call(call));
      const S3Page page = TRY(parse_s3_page(response.body).at(prefix.uri()));
      if (page.next == from && !from.empty()) return corrupt("{}: the list does not end", prefix.uri());
      const auto inside = [&](const std::string& key) { return key.starts_with(prefix.key); };
      if (!std::ranges::all_of(page.prefixes, inside) ||
          !std::ranges::all_of(page.objects, inside, &S3Page::Object::key)) {
        return corrupt("{}: the list has keys of other folders", prefix.uri());
      }
      any = any || !page.objects.empty() || !page.prefixes.empty();
      take_page(page);
      from = page.next;
    } while (!from.empty());
    if (!any && !prefix.key.empty()) return not_found("{}: no such folder", prefix.uri());
    return {};
  }

  S3Client client_;
};

}  // namespace

Result<S3Page> parse_s3_page(std::string_view xml) {
  const XmlElement root = TRY(parse_xml(xml));
  if (root.name != "ListBucketResult") return corrupt("a list of objects was asked for, but {} came", root.name);
  // We always ask for it, since XML cannot hold every key; a store that does not know of it sends them as they are.
  const bool encoded = root.text_of("EncodingType") == "url";
  const auto key_of = [&](std::string text) -> Result<std::string> {
    if (!encoded) return text;
    return percent_decoded(text);
  };
  S3Page page;
  for (const XmlElement& child : root.children) {
    if (child.name == "Contents") {
      std::string key = TRY(key_of(child.text_of("Key")));
      const uint64_t size = TRY(whole_number(child.text_of("Size")));
      page.objects.push_back({.key = std::move(key), .size = size, .etag = version_of_etag(child.text_of("ETag"))});
    } else if (child.name == "CommonPrefixes") {
      page.prefixes.push_back(TRY(key_of(child.text_of("Prefix"))));
    }
  }
  if (root.text_of("IsTruncated") == "true") {
    page.next = root.text_of("NextContinuationToken");
    if (page.next.empty()) return corrupt("a list goes on without saying where");
  }
  return page;
}

std::unique_ptr<FileStore> make_s3_store(AwsVariables environment, const std::function<bool()>& cancelled) {
  return std::make_unique<S3Store>(std::move(environment), cancelled);
}

}  // namespace pscloud
