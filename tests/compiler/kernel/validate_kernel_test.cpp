#include <gtest/gtest.h>

#include "compiler/kernel/kernel.h"

namespace ingot {
namespace {

template <typename Kernel>
std::string problem_of(const Kernel& kernel) {
  const auto result = validate_kernel(kernel);
  if (result) return "";
  EXPECT_EQ(result.error().exit, ExitCode::Internal);
  EXPECT_EQ(result.error().diagnostics.front().code, "invalid-kernel");
  return result.error().diagnostics.front().message;
}

std::string ranged_problem(const std::string& rest) {
  const auto kernel = parse_ranged_kernel("ranged kernel k\n" + rest);
  if (!kernel) return kernel.error().diagnostics.front().message;
  return problem_of(*kernel);
}

std::string scheduled_problem(const std::string& rest) {
  const auto kernel = parse_scheduled_kernel(
      "scheduled kernel k\nread x: f32[64] row\nread n: i64[64] row\nwrite y: f32[64] row\n" +
      rest);
  if (!kernel) return kernel.error().diagnostics.front().message;
  return problem_of(*kernel);
}

#define EXPECT_RULE(problem, rule)                                                \
  do {                                                                            \
    const std::string found = (problem);                                          \
    EXPECT_NE(found.find(rule), std::string::npos) << "found: '" << found << "'"; \
  } while (false)

// A small valid kernel to break.
RangedKernel good_ranged() {
  RangedKernel kernel;
  kernel.name = "k";
  kernel.parameters = {{"x", DType::F32, {4, 8}, Layout::row_major(2), Access::Read},
                       {"y", DType::F32, {4}, Layout::row_major(1), Access::Write}};
  kernel.ranges = {{"i", 4, false}, {"k", 8, true}};
  const ExprId load =
      kernel.pool.load(0, DType::F32, {kernel.pool.variable(0), kernel.pool.variable(1)});
  kernel.stores = {{1, {kernel.pool.variable(0)}, kernel.pool.reduce(Combine::Sum, load, {1})}};
  return kernel;
}

TEST(ValidateRanged, GoodKernelPasses) { EXPECT_EQ(problem_of(good_ranged()), ""); }

TEST(ValidateRanged, Parameters) {
  const auto with = [](auto change) {
    RangedKernel kernel = good_ranged();
    change(kernel.parameters[0]);
    return problem_of(kernel);
  };
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.order = {0, 0}; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.order = {0, 2}; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout = Layout::row_major(3); }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.shape[0] = -1; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.before[0] = -1; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.block = 0; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.block = 4; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) {
                p.layout.block = 4;
                p.layout.block_dim = 2;
              }),
              "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) {
                p.layout.block = 4;
                p.layout.block_dim = 1;
                p.layout.after[1] = 1;
              }),
              "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.streams = 0; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) { p.layout.streams = 2; }), "(P1)");
  EXPECT_RULE(with([](KernelParameter& p) {
                p.layout.block = 4;
                p.layout.block_dim = 1;
                p.layout.streams = std::int64_t{1} << 62;
              }),
              "(P2)");
  EXPECT_RULE(with([](KernelParameter& p) { p.shape = {1 << 20, 1 << 20}; }), "(P2)");
  EXPECT_RULE(with([](KernelParameter& p) { p.shape = {0, std::int64_t{1} << 40}; }), "(P2)");
}

TEST(ValidateRanged, Expressions) {
  const auto with = [](auto make) {
    RangedKernel kernel = good_ranged();
    kernel.stores[0].value = make(kernel.pool);
    return problem_of(kernel);
  };
  const auto of = [](ScalarOp op, DType dtype, std::vector<ExprId> operands) {
    Expr expr;
    expr.kind = ExprKind::Scalar;
    expr.op = op;
    expr.dtype = dtype;
    expr.operands = std::move(operands);
    return expr;
  };
  EXPECT_RULE(
      with([&](ExprPool& p) { return p.intern(of(ScalarOp::Add, DType::F32, {p.index(1)})); }),
      "(E1)");
  EXPECT_RULE(with([&](ExprPool& p) {
                const ExprId one = p.constant(Scalar::of_float(DType::F32, 1));
                return p.intern(of(ScalarOp::Add, DType::F32, {p.index(1), one}));
              }),
              "(E1)");
  EXPECT_RULE(with([&](ExprPool& p) {
                return p.intern(of(ScalarOp::Add, DType::F32, {p.index(1), p.index(2)}));
              }),
              "(E1)");
  EXPECT_RULE(
      with([&](ExprPool& p) { return p.intern(of(ScalarOp::Sqrt, DType::I64, {p.index(1)})); }),
      "(E1)");
  EXPECT_RULE(with([&](ExprPool& p) {
                const ExprId one = p.constant(Scalar::of_float(DType::F32, 1));
                return p.intern(of(ScalarOp::Select, DType::F32, {one, one, one}));
              }),
              "(E1)");
  EXPECT_RULE(with([](ExprPool& p) {
                Expr expr;
                expr.dtype = DType::F32;
                expr.constant = Scalar::of_int(DType::I32, 1);
                return p.intern(expr);
              }),
              "(E2)");
  EXPECT_RULE(with([](ExprPool& p) { return p.cast(p.variable(7), DType::F32); }), "(E3)");
  EXPECT_RULE(with([](ExprPool& p) { return p.load(9, DType::F32, {}); }), "(E3)");
  EXPECT_RULE(with([](ExprPool&) { return ExprId{}; }), "(E3)");
  EXPECT_RULE(with([](ExprPool& p) { return p.load(1, DType::F32, {p.variable(0)}); }), "(E4)");
  EXPECT_RULE(with([](ExprPool& p) { return p.load(0, DType::F16, {p.index(0), p.index(0)}); }),
              "(E4)");
  EXPECT_RULE(with([](ExprPool& p) {
                return p.load_gated(0, DType::F32, {p.index(0), p.index(0)}, p.index(1),
                                    Scalar::zero(DType::F32));
              }),
              "(E4)");
  EXPECT_RULE(with([](ExprPool& p) {
                return p.load_gated(0, DType::F32, {p.index(0), p.index(0)},
                                    p.constant(Scalar::of_int(DType::Bool, 1)),
                                    Scalar::zero(DType::I32));
              }),
              "(E2)");
  EXPECT_RULE(with([](ExprPool& p) { return p.cast(p.clamp_index(p.index(1), 0), DType::F32); }),
              "(E5)");
  EXPECT_RULE(with([](ExprPool& p) { return p.load_flat(0, DType::F32, p.index(0)); }), "(E6)");
  EXPECT_RULE(
      with([](ExprPool& p) { return p.read_register(0, DType::F32, p.index(0), p.index(0)); }),
      "(E6)");
  EXPECT_RULE(with([](ExprPool& p) { return p.load(0, DType::F32, {p.index(0)}); }), "(R2)");
  EXPECT_RULE(with([](ExprPool& p) {
                const ExprId one = p.constant(Scalar::of_float(DType::F32, 1));
                return p.load(0, DType::F32, {p.index(0), one});
              }),
              "(R2)");
}

TEST(ValidateRanged, RangesAndReduces) {
  const std::string head = "read x: f32[4] row\nread b: bool[4] row\nwrite y: f32[4] row\n";
  RangedKernel negative = good_ranged();
  negative.ranges[0].extent = -1;
  EXPECT_RULE(problem_of(negative), "(R1)");
  EXPECT_RULE(ranged_problem(head + "reduce k: 4\nrange i: 4\n"), "(R1)");
  const std::string ranges = head + "range i: 4\nreduce k: 4\n";
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = sum(load x[i] over i)\n"), "(R3)");
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = sum(load x[k] over k, k)\n"), "(R3)");
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = sum(sum(load x[k] over k) over k)\n"), "(R3)");
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = f32(sum(load b[k] over k))\n"), "(R3)");
  EXPECT_EQ(ranged_problem(ranges + "store y[i] = f32(max(load b[k] over k))\n"), "");
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = load x[k]\n"), "(R4)");
  EXPECT_RULE(ranged_problem(ranges + "store y[k] = load x[i]\n"), "(R4)");
  EXPECT_RULE(ranged_problem(ranges + "store x[i] = load x[i]\n"), "(R5)");
  EXPECT_RULE(ranged_problem(ranges + "store y[i] = i\n"), "(R5)");
  EXPECT_RULE(ranged_problem(ranges + "store y[i, i] = load x[i]\n"), "(R2)");
  // One range reduced by two reduces beside each other is fine.
  EXPECT_EQ(
      ranged_problem(ranges + "store y[i] = add(sum(load x[k] over k), max(load x[k] over k))\n"),
      "");
  RangedKernel empty = good_ranged();
  empty.stores[0].value = empty.pool.reduce(Combine::Sum, empty.stores[0].value, {});
  EXPECT_RULE(problem_of(empty), "(R3)");
}

TEST(ValidateScheduled, Loops) {
  EXPECT_EQ(scheduled_problem("parallel i: 4 {\n  vector l: 16 {\n    store y[i * 16 + l] = load "
                              "x[i * 16 + l]\n  }\n}\n"),
            "");
  ScheduledKernel twice;
  twice.name = "k";
  twice.variables = {{"i", 4, LoopKind::Serial}};
  twice.body = {{ForStatement{0, {}}}, {ForStatement{0, {}}}};
  EXPECT_RULE(problem_of(twice), "(S1)");
  twice.body.pop_back();
  EXPECT_EQ(problem_of(twice), "");
  twice.variables[0].extent = -1;
  EXPECT_RULE(problem_of(twice), "(S1)");
  twice.body = {{ForStatement{3, {}}}};
  twice.variables[0].extent = 1;
  EXPECT_RULE(problem_of(twice), "(E3)");

  EXPECT_RULE(scheduled_problem("for i: 4 {\n}\nstore y[i] = f32 0\n"), "(S2)");
  EXPECT_RULE(scheduled_problem("parallel i: 4 {\n}\nbarrier\n"), "(S3)");
  EXPECT_RULE(scheduled_problem("for k: 2 {\n  parallel i: 4 {\n  }\n}\n"), "(S3)");
  EXPECT_RULE(scheduled_problem("parallel k: 2 {\n  parallel i: 4 {\n  }\n}\n"), "(S3)");
  EXPECT_RULE(scheduled_problem("vector l: 4 {\n  for i: 4 {\n  }\n}\n"), "(S4)");
  EXPECT_RULE(scheduled_problem("vector l: 6 {\n}\n"), "(S4)");
  EXPECT_RULE(scheduled_problem("vector l: 0 {\n}\n"), "(S4)");
  EXPECT_RULE(scheduled_problem("vector l: 512 {\n}\n"), "(S4)");
  EXPECT_RULE(scheduled_problem("vector l: 4 {\n  barrier\n}\n"), "(S4)");
}

TEST(ValidateScheduled, Registers) {
  EXPECT_RULE(scheduled_problem("register r: f32[0][1]\n"), "(S5)");
  EXPECT_RULE(scheduled_problem("register r: f32[1][3]\n"), "(S5)");
  EXPECT_RULE(scheduled_problem("register r: f32[1][512]\n"), "(S5)");
  const std::string head = "register r: f32[8][4]\nworker s: f32[8][1]\n";
  EXPECT_RULE(scheduled_problem(head + "set r[0, 0] = 1\n"), "(E1)");
  EXPECT_RULE(scheduled_problem(head + "set r[f32 0, 0] = f32 1\n"), "(E1)");
  EXPECT_RULE(scheduled_problem(head + "for i: 4 {\n  set r[i, 0] = f32 0\n}\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "unroll i: 9 {\n  set r[i, 0] = f32 0\n}\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "unroll i: 8 {\n  set r[i - 1, 0] = f32 0\n}\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "set r[load n[0], 0] = f32 0\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "set r[0, 4] = f32 0\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "store y[0] = r[8, 0]\n"), "(S6)");
  EXPECT_RULE(scheduled_problem(head + "vector l: 8 {\n  set r[0, l] = f32 0\n}\n"), "(S6)");
  // Bounds alone do not decide these.
  EXPECT_EQ(scheduled_problem(head + "unroll i: 8 {\n  set r[(i * 3) mod 8, 0] = f32 0\n}\n"), "");
  EXPECT_RULE(
      scheduled_problem(head + "unroll i: 4 {\n  set r[i * i + i * -1 + 2, 0] = f32 0\n}\n"),
      "(S6)");
  EXPECT_EQ(scheduled_problem(head + "unroll i: 3 {\n  set r[i * i + i * -1 + 1, 0] = f32 0\n}\n"),
            "");
  // Scratch memory takes any index.
  EXPECT_EQ(scheduled_problem(head + "for i: 8 {\n  set s[i, 0] = f32 0\n}\n"), "");
}

TEST(ValidateScheduled, WorkerArraysInAParameter) {
  const auto problem = [](const std::string& memory, const std::string& arrays) {
    const auto kernel =
        parse_scheduled_kernel("scheduled kernel k\n" + memory + "\n" + arrays + "\n");
    if (!kernel) return std::string("not parsed");
    const auto valid = validate_kernel(*kernel);
    return valid ? std::string() : valid.error().diagnostics[0].message;
  };
  const std::string memory = "write m: f32[4,16] row";
  EXPECT_EQ(problem(memory, "worker a: f32[4][2] in m\nworker b: f32[8][1] in m"), "");
  EXPECT_RULE(problem(memory, "worker a: f32[4][2] in m\nworker b: f32[9][1] in m"), "(S10)");
  EXPECT_RULE(problem(memory, "worker a: i32[4][2] in m"), "(S10)");
  EXPECT_RULE(problem(memory, "register a: f32[4][2] in m"), "(S10)");
  EXPECT_RULE(problem("read m: f32[4,16] row", "worker a: f32[4][2] in m"), "(S10)");
  EXPECT_RULE(problem("write m: f32[64] row", "worker a: f32[4][2] in m"), "(S10)");
  EXPECT_RULE(problem("write m: f32[4,16] order 1,0", "worker a: f32[4][2] in m"), "(S10)");
}

TEST(ValidateScheduled, Statements) {
  const std::string head = "register r: f32[2][4]\nworker s: f32[8][1]\n";
  EXPECT_RULE(scheduled_problem("store x[0] = f32 0\n"), "(S7)");
  EXPECT_RULE(scheduled_problem("store y[0] = 0\n"), "(S7)");
  EXPECT_RULE(scheduled_problem("store y[f32 0] = f32 0\n"), "(S7)");
  EXPECT_RULE(scheduled_problem("prefetch y[f32 0]\n"), "(S7)");
  EXPECT_RULE(scheduled_problem("store y[0] = load y[0]\n"), "(E4)");
  EXPECT_RULE(scheduled_problem("vector l: 4 {\n  store y[0] = load x[l]\n}\n"), "(S8)");
  EXPECT_RULE(scheduled_problem(head + "vector l: 4 {\n  set r[0, 0] = f32 0\n}\n"), "(S8)");
  EXPECT_RULE(scheduled_problem(head + "vector l: 4 {\n  set s[0, 0] = f32 0\n}\n"), "(S8)");
  EXPECT_EQ(scheduled_problem(head + "vector l: 4 {\n  set s[l, 0] = f32 0\n}\n"), "");
  EXPECT_RULE(scheduled_problem(head + "vector l: 4 {\n  set r[0, l] = f32 0\n  store y[l] = r[0, "
                                       "0]\n}\n"),
              "(S8)");
  EXPECT_RULE(scheduled_problem(head + "vector l: 4 {\n  set s[l, 0] = f32 0\n  store y[l] = s[l + "
                                       "1, 0]\n}\n"),
              "(S8)");
  EXPECT_EQ(scheduled_problem(head + "vector l: 4 {\n  set r[0, l] = f32 0\n  set r[1, l] = r[0, "
                                     "l]\n}\n"),
            "");
  EXPECT_RULE(scheduled_problem("if 1 {\n}\n"), "(S9)");
  EXPECT_RULE(scheduled_problem("vector l: 4 {\n  if l < 2 {\n  }\n}\n"), "(S9)");
  EXPECT_EQ(scheduled_problem("for i: 4 {\n  vector l: 4 {\n    if i < 2 {\n    }\n  }\n}\n"), "");
}

TEST(ValidateScheduled, Forms) {
  ScheduledKernel kernel;
  kernel.name = "k";
  kernel.parameters = {{"x", DType::F32, {4}, Layout::row_major(1), Access::Read},
                       {"y", DType::F32, {4}, Layout::row_major(1), Access::Write}};
  kernel.variables = {{"i", 4, LoopKind::Serial}};
  ExprPool& p = kernel.pool;
  const auto with = [&](ExprId value) {
    kernel.body = {{StoreStatement{1, p.index(0), value}}};
    return problem_of(kernel);
  };
  EXPECT_EQ(with(p.load_flat(0, DType::F32, p.index(0))), "");
  EXPECT_RULE(with(p.load(0, DType::F32, {p.index(0)})), "(E6)");
  EXPECT_RULE(with(p.reduce(Combine::Sum, p.load_flat(0, DType::F32, p.index(0)), {0})), "(E6)");
  EXPECT_RULE(with(p.read_register(0, DType::F32, p.index(0), p.index(0))), "(E3)");
  kernel.registers = {{"r", AddressSpace::Register, DType::F16, 1, 1}};
  EXPECT_RULE(with(p.read_register(0, DType::F32, p.index(0), p.index(0))), "(E1)");
  kernel.body = {{SetRegisterStatement{1, p.index(0), p.index(0), p.index(0)}}};
  EXPECT_RULE(problem_of(kernel), "(E3)");
  kernel.body = {{StoreStatement{5, p.index(0), p.index(0)}}};
  EXPECT_RULE(problem_of(kernel), "(E3)");
  kernel.body = {{PrefetchStatement{5, p.index(0)}}};
  EXPECT_RULE(problem_of(kernel), "(E3)");
  kernel.body = {{StoreStatement{}}};
  EXPECT_RULE(problem_of(kernel), "(E3)");
}

}  // namespace
}  // namespace ingot
