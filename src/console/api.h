#pragma once

#include <functional>
#include <string>

#include "net/http_server.h"
#include "pscloud/error.h"

namespace pscloud {

struct ApiOptions {
  std::string runs;   // the folder of runs (run_folder.h)
  std::string token;  // who has it may do everything
  std::string version;
  bool controller = false;  // it looks after runs itself
  std::string run = {};     // the one that it looks after, which Paddle's paths mean; empty: they mean the newest
  // Begins to remove what a run has left whose launcher was killed, and does not wait for it.
  std::function<Result<>(const std::string& run)> clean;
  // Somebody has asked for the end of a run and of all that was made for it.
  std::function<void(const std::string& run)> cleanup_asked = [](const std::string&) {};
};

// The API of docs/controller.md, and the page that uses it. It keeps nothing: what it tells stands in the folders of
// runs, and what it does is what `pscloud stop` does. Thread-safe.
class Api {
 public:
  explicit Api(ApiOptions options);

  HttpReply answer(const HttpCall& call) const;

 private:
  bool has_token(const HttpCall& call) const;
  HttpReply answer_api(const HttpCall& call) const;
  HttpReply answer_run(const HttpCall& call, const std::string& run, const std::string& rest) const;

  const ApiOptions options_;
};

}  // namespace pscloud
