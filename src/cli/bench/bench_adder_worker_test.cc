#include "cli/bench/bench_adder_worker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "cli/bench/bench_adder_job.h"
#include "cli/local/local_cluster.h"

namespace pscloud {
namespace {

const Cancelled kGoOn = [] { return false; };

AdderFlags inproc_flags(int servers, int workers, bool sync) {
  AdderFlags flags;
  flags.cluster.servers = servers;
  flags.cluster.workers = workers;
  flags.cluster.transport.name = "inproc";
  flags.plan = {.size_mb = 0.01, .sync = sync};
  flags.warmup = 1;
  flags.iters = 12;
  return flags;
}

TEST(AdderLines, ASampleArrivesAsItWas) {
  const AdderSample sample{0.1, 2e-7, 1234567.875, 1e9, 24};
  const auto got = decode_sample(encode_sample(sample));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->push_ms, sample.push_ms);
  EXPECT_EQ(got->pull_ms, sample.pull_ms);
  EXPECT_EQ(got->iteration_ms, sample.iteration_ms);
  EXPECT_EQ(got->cpu_s, sample.cpu_s);
  EXPECT_EQ(got->value, sample.value);
  EXPECT_TRUE(std::isnan(decode_sample("sample nan nan 1 2")->value));
  EXPECT_TRUE(std::isnan(decode_sample(encode_sample({std::nan(""), 1, 1, 1}))->push_ms));
  EXPECT_EQ(decode_sample("ready").error().code, Code::kCorrupt);
}

TEST(AdderLines, AnErrorOfAWorkerIsOneOfItsLeader) {
  const auto got = decode_line(encode_error(timed_out("no answer from server 1 within 5 s")));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kTimeout);
  EXPECT_EQ(got.error().message, "no answer from server 1 within 5 s");
  EXPECT_EQ(decode_line("values ok").value(), "values ok");
}

TEST(AdderJob, EveryIterationOfEveryWorkerIsMeasured) {
  const auto outcome = run_adder_job(inproc_flags(2, 3, true), kGoOn);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->values_ok);
  ASSERT_EQ(outcome->samples.size(), 3u);
  for (const auto& worker : outcome->samples) EXPECT_EQ(worker.size(), 12u);
  EXPECT_TRUE(outcome->apart.empty());      // they are anyway
  EXPECT_TRUE(outcome->socket_ms.empty());  // no sockets were used
  EXPECT_FALSE(outcome->add_ms.empty());
}

TEST(AdderJob, AWorkerThatIsAloneMeasuresInOneAndApart) {
  const auto outcome = run_adder_job(inproc_flags(1, 1, true), kGoOn);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->values_ok);
  EXPECT_TRUE(std::isnan(outcome->samples[0][0].push_ms));
  ASSERT_EQ(outcome->apart.size(), 12u);
  EXPECT_GT(outcome->apart[0].push_ms, 0);
}

TEST(AdderJob, AsyncWorkersAreCheckedInTheEnd) {
  const auto outcome = run_adder_job(inproc_flags(1, 2, false), kGoOn);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->values_ok);
  EXPECT_TRUE(std::isnan(outcome->samples[0][0].push_ms));
}

TEST(AdderJob, EndsWhenTheUserWantsNoMore) {
  const auto outcome = run_adder_job(inproc_flags(1, 1, true), [] { return true; });
  EXPECT_FALSE(outcome);
}

TEST(AdderWorker, APushTooManyIsSeen) {
  const AdderFlags flags = inproc_flags(1, 2, true);
  const auto cluster = LocalCluster::start(flags.cluster, kGoOn);
  ASSERT_TRUE(cluster);
  // A second worker that does all a worker of the adder does, and pushes to one row once too often.
  std::jthread other([&] {
    const auto worker = Worker::join((*cluster)->worker_options());
    ASSERT_TRUE(worker);
    TableSpec spec;
    spec.name = "adder";
    spec.kind = TableKind::kDense;
    spec.rows = flags.plan.rows();
    const auto table = (*worker)->create_table(spec);
    ASSERT_TRUE(table);
    EXPECT_TRUE((*worker)->push_rows(*table, spec.rows - 1, std::vector<float>{1}).wait());
    EXPECT_TRUE((*worker)->barrier());  // of join()
    EXPECT_TRUE((*worker)->barrier());  // of finish()
    EXPECT_TRUE((*worker)->leave());
  });
  const auto worker = AdderWorker::join((*cluster)->worker_options(), flags.plan);
  ASSERT_TRUE(worker);
  const auto values_ok = (*worker)->finish();
  ASSERT_TRUE(values_ok);
  EXPECT_FALSE(*values_ok);
}

}  // namespace
}  // namespace pscloud
