#include "onnx_frontend/operator_table.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/onnx_frontend/model_writer.h"

namespace ingot {
namespace {

TEST(OperatorTable, FindsTheRowInForce) {
  EXPECT_EQ(find_operator("", "Softmax", 12)->since, 11);
  EXPECT_EQ(find_operator("", "Softmax", 13)->since, 13);
  EXPECT_EQ(find_operator("", "Softmax", 27)->since, 13);
  EXPECT_EQ(find_operator("", "Softmax", 1)->since, 1);
  EXPECT_EQ(find_operator("", "Resize", 9), nullptr);
  EXPECT_EQ(find_operator("", "NoSuchOperator", 13), nullptr);
  EXPECT_EQ(find_operator("com.example", "Softmax", 13), nullptr);
  EXPECT_TRUE(knows_operator("", "Resize"));
  EXPECT_FALSE(knows_operator("", "resize"));
}

TEST(OperatorTable, StaysBelowTheNewestOpset) {
  for (const OperatorRow& row : operator_rows()) {
    EXPECT_GE(row.since, 1) << row.op;
    EXPECT_LE(row.since, newest_opset) << row.op;
    EXPECT_NE(row.import, nullptr) << row.op;
  }
}

// INGOT_UPDATE_LISTS=1 rewrites the page.
TEST(OperatorTable, IsWhatTheDocumentationSays) {
  const std::filesystem::path page = std::filesystem::path(INGOT_SOURCE_DIR) / "docs/operators.md";
  if (std::getenv("INGOT_UPDATE_LISTS") != nullptr) write_file(page, operators_markdown());
  EXPECT_EQ(read_file(page), operators_markdown());
}

}  // namespace
}  // namespace ingot
