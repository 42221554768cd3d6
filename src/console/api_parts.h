#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "console/api.h"
#include "console/sample_file.h"
#include "launch/run_folder.h"
#include "net/http_server.h"

namespace pscloud {

class JsonWriter;

// The parts of the API (api.h), a file each. Whoever calls has shown the token.

// api_runs.cc
Result<RunFolder> find_run(const std::string& runs, const std::string& name);  // a name may be anything
HttpReply runs_reply(const std::string& runs, const HttpCall& call);
HttpReply about_reply(const ApiOptions& options);
void write_cost(JsonWriter& json, std::string_view name, double usd);  // 0: nobody knows it

// api_run.cc
class RunView;
HttpReply run_reply(const RunFolder& folder);
HttpReply nodes_reply(const RunFolder& folder);

// api_logs.cc
// The file that a task of the run writes to, or the launcher; kNotFound if the run has no such task.
Result<std::string> log_path(const RunFolder& folder, const std::string& task);
HttpReply log_reply(const RunFolder& folder, const std::string& task, const HttpCall& call);
// Bytes of a file that grows, from one place to another.
HttpReply file_reply(const std::string& path, const HttpCall& call, const std::string& content_type);

// api_samples.cc
HttpReply samples_reply(const RunFolder& folder, const HttpCall& call);

// api_stream.cc
HttpReply stream_reply(RunFolder folder, const HttpCall& call);

// api_actions.cc
// Ends a run, or removes what is left of it: what `pscloud stop` does, but for the waiting. The word for how far it is.
Result<std::string> begin_stop(const ApiOptions& options, RunFolder& folder);

// api_page.cc
HttpReply page_reply(const HttpCall& call);

// api_paddle.cc
HttpReply paddle_reply(const ApiOptions& options, const HttpCall& call);

}  // namespace pscloud
