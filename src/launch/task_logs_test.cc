#include "launch/task_logs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace pscloud {
namespace {

constexpr TaskId kFirst{TaskRole::kWorker, 0};
constexpr TaskId kTenth{TaskRole::kWorker, 10};

class TaskLogsTest : public testing::Test {
 protected:
  TaskLogsTest() {
    std::string name = testing::TempDir() + "logs-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directory(folder_ + "/logs");
    plan_.tasks.resize(2);
    plan_.tasks[0].spec.id = kFirst;
    plan_.tasks[1].spec.id = kTenth;
    out_ = std::tmpfile();
    err_ = std::tmpfile();
    terminal_.emplace(::fileno(out_), ::fileno(err_));
    logs_.emplace(folder_, plan_, &*terminal_);
  }
  ~TaskLogsTest() override {
    terminal_.reset();
    std::fclose(out_);
    std::fclose(err_);
    std::filesystem::remove_all(folder_);
  }

  void line(TaskId task, std::string text, bool continues = false, bool is_stderr = false) {
    ASSERT_TRUE(logs_->take({.kind = TaskEvent::Kind::kLine,
                             .task = task,
                             .text = std::move(text),
                             .is_stderr = is_stderr,
                             .continues = continues}));
  }
  std::string file(const std::string& name) {
    EXPECT_TRUE(logs_->flush());
    std::ifstream file(folder_ + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string shown(FILE* stream) {
    EXPECT_TRUE(terminal_->drain(std::chrono::seconds(20)));
    std::rewind(stream);
    std::string text(1 << 20, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), stream));
    return text;
  }

  std::string folder_;
  Plan plan_;
  FILE* out_;
  FILE* err_;
  std::optional<Terminal> terminal_;
  std::optional<TaskLogs> logs_;
};

TEST_F(TaskLogsTest, LinesGoToTheirFilesAndWithNamesToTheTerminal) {
  line(kFirst, "one");
  line(kTenth, "two");
  line(kFirst, "bad", false, true);
  line(kFirst, "");
  EXPECT_EQ(file("logs/worker-0.log"), "one\nbad\n\n");
  EXPECT_EQ(file("logs/worker-10.log"), "two\n");
  EXPECT_EQ(shown(out_), "[worker-0]  one\n[worker-10] two\n[worker-0]  \n");
  EXPECT_EQ(shown(err_), "[worker-0]  bad\n");
}

TEST_F(TaskLogsTest, WhoLaunchesMayShowALineBareOrNotAtAll) {
  const auto take = [&](TaskId task, const char* text, LineLook look) {
    ASSERT_TRUE(logs_->take({.kind = TaskEvent::Kind::kLine, .task = task, .text = text}, look));
  };
  take(kFirst, "table", LineLook::kBare);
  take(kTenth, "table", LineLook::kHidden);
  take(kTenth, "more", LineLook::kNamed);
  EXPECT_EQ(shown(out_), "table\n[worker-10] more\n");
  EXPECT_EQ(file("logs/worker-10.log"), "table\nmore\n");
}

TEST_F(TaskLogsTest, ALineOfAnyLengthIsOneLineAndCostsLittleMemory) {
  const std::string piece(65536, 'x');
  for (int i = 0; i < 1000; ++i) line(kTenth, piece, i < 999);
  line(kTenth, "after");
  ASSERT_TRUE(logs_->flush());
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/logs/worker-10.log"), 1000u * 65536 + 1 + 6);
  const auto last = logs_->last_lines(kTenth);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_LT(last[0].size(), 1100u);
  EXPECT_EQ(last[1], "after");
}

TEST_F(TaskLogsTest, PiecesOfTwoTasksDoNotMixOnTheTerminal) {
  line(kFirst, "a", true);
  line(kTenth, "b");
  line(kFirst, "c");
  EXPECT_EQ(file("logs/worker-0.log"), "ac\n");
  EXPECT_EQ(shown(out_), "[worker-0]  a\n[worker-10] b\n[worker-0]  c\n");
}

TEST_F(TaskLogsTest, WhatIsThereAlreadyIsKept) {
  std::ofstream(folder_ + "/logs/worker-0.log") << "before\n";
  line(kFirst, "now");
  EXPECT_EQ(file("logs/worker-0.log"), "before\nnow\n");
}

TEST_F(TaskLogsTest, FiguresBecomeATable) {
  line(kFirst, "**metrics_data: loss=0.5, auc = 7e-1");
  line(kFirst, "  **metrics_data: loss=9");  // does not begin so
  line(kFirst, "**metrics_data: nothing, here=abc");
  line(kTenth, "**metrics_data: auc=0.8,speed=12");
  std::istringstream table(file("metrics.csv"));
  std::string text;
  std::getline(table, text);
  EXPECT_EQ(text, "time,task,loss,auc,speed");
  std::getline(table, text);
  EXPECT_EQ(text.substr(text.find(',')), ",worker-0,0.5,7e-1");
  std::getline(table, text);
  EXPECT_EQ(text.substr(text.find(',')), ",worker-10,,0.8,12");
  EXPECT_FALSE(std::getline(table, text));
  line(kFirst, "**metrics_data: late=1");
  EXPECT_TRUE(file("metrics.csv").starts_with("time,task,loss,auc,speed,late\n"));
  EXPECT_TRUE(file("metrics.csv").ends_with(",worker-0,,,,1\n"));
}

}  // namespace
}  // namespace pscloud
