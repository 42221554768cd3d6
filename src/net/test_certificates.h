#pragma once

#include <openssl/types.h>

#include <filesystem>
#include <string>

namespace pscloud {

// A CA for tests, which also makes certificates that no real one should. Its folders go with it.
class TestCa {
 public:
  TestCa();
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  struct Validity {
    int from_days = -1;
    int to_days = 1;
  };
  // A new folder with ca.pem, node.pem and node.key. `uri` becomes an alternative name; empty: none.
  std::string issue(const std::string& uri) { return issue(uri, Validity{}); }
  std::string issue(const std::string& uri, Validity validity);

 private:
  X509* make(const std::string& common_name, EVP_PKEY* key, const std::string& uri, Validity validity);

  std::filesystem::path dir_;
  EVP_PKEY* key_;
  X509* certificate_ = nullptr;
  int issued_ = 0;
};

}  // namespace pscloud
