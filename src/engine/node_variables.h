#pragma once

#include <span>
#include <string>

#include "pscloud/node.h"

namespace pscloud {

// One setting of a node that can be given from outside. The field "heartbeat_ms" of NodeOptions is the variable
// PSCLOUD_HEARTBEAT_MS and the flag --heartbeat-ms of `pscloud node`: all three come from this table.
struct NodeVariable {
  const char* field;
  const char* whose;          // "scheduler", "server" or "worker" if nobody else looks at it, else ""
  const char* default_value;  // "" if there is none
  const char* placeholder;    // for a value in help texts; "" if the flag alone says it
  const char* values;         // what may be given, after "it must be"
  const char* help;           // what it is for
  const char* dmlc;           // the name ps-lite has for it, or null

  // False if `value` is none of `values`.
  bool (*set)(const std::string& value, NodeOptions& options);

  std::string variable() const;  // "PSCLOUD_HEARTBEAT_MS"
  std::string flag() const;      // "--heartbeat-ms"
};

// All of them, in the order of NodeOptions.
std::span<const NodeVariable> node_variables();

}  // namespace pscloud
