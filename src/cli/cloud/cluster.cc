#include <CLI/CLI.hpp>

#include "cli/cloud/cluster_verb.h"

namespace pscloud {
namespace {

constexpr const char* kClusterAbout = R"(Machines of Amazon EC2 as a cluster, made for you and taken down again:

  pscloud cluster up blue --nodes 3 --instance c5.xlarge
  pscloud train s3://bucket/online.conf --servers 1 --workers 2 --on blue
  pscloud connect blue 0.node                  a shell on a machine
  pscloud cluster show blue
  pscloud cluster down blue

`up` shows what would be made and what it costs, and asks. Whatever is made is
written down before, and found again by its tag: an error, Ctrl-C and `down`
leave nothing. Machines that hear nothing from here for an hour end themselves.

Keys and the region come from where AWS's programs have them (docs/storage.md);
docs/cloud.md tells more, and docs/cloud-policy.json is the policy they need.)";

}  // namespace

void add_cluster(CLI::App& verb, Action& action) {
  add_cluster_up(*verb.add_subcommand("up", "make machines")->group("Verbs"), action);
  add_cluster_ls(*verb.add_subcommand("ls", "list clusters")->group("Verbs"), action);
  add_cluster_show(*verb.add_subcommand("show", "a cluster and its machines, as EC2 has them")->group("Verbs"), action);
  add_cluster_keep(*verb.add_subcommand("keep", "a word to the machines, which would end themselves")->group("Verbs"),
                   action);
  add_cluster_down(*verb.add_subcommand("down", "end machines and remove all that was made for them")->group("Verbs"),
                   action);
  verb.footer(kClusterAbout);  // last, or the verbs above would inherit it
}

}  // namespace pscloud
