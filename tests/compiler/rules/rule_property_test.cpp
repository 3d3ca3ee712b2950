// Random kernels: the interpreter's value before a pass and after it.
#include <gtest/gtest.h>

#include <array>

#include "tests/compiler/rules/rule_support.h"

namespace ingot {
namespace {

constexpr int kKernels = 1200;

// A kernel of parameters that every coordinate fits: outputs a, b; reduced k, j, l.
class RandomKernel {
 public:
  explicit RandomKernel(std::uint64_t seed) : random_(seed) {}

  RangedKernel make() {
    dtype_ = pick({DType::F32, DType::I32, DType::I8, DType::F16});
    const std::int64_t a = pick({1, 3, 4}), b = pick({1, 2, 32});
    add_parameter("y", dtype_, {a, b}, Access::Write);
    add_parameter("x", dtype_, {kSide, kSide}, Access::Read);
    add_parameter("n", DType::I32, {kSide}, Access::Read);
    add_parameter("z", dtype_, {2 * kSide, kSide}, Access::Read);
    add_range("a", a, false);
    add_range("b", b, false);
    if (one_in(4)) add_range("unused", 3, false);
    const auto outputs = static_cast<std::uint32_t>(kernel_.ranges.size());
    for (const char* name : {"k", "j", "l"}) add_range(name, pick({1, 2, 3, 5, 32}), true);
    for (std::uint32_t r = outputs; r < kernel_.ranges.size(); ++r) free_.push_back(r);
    variables_ = {0, 1};
    RangedStore store;
    store.coordinates = {pool().variable(0), pool().variable(1)};
    store.value = value(4);
    kernel_.stores.push_back(store);
    return kernel_;
  }

 private:
  static constexpr std::int64_t kSide = 40;

  ExprPool& pool() { return kernel_.pool; }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <typename T>
  T pick(std::initializer_list<T> of) {
    return *(of.begin() + below(of.size()));
  }
  void add_parameter(std::string name, DType dtype, Shape shape, Access access) {
    const auto rank = static_cast<int>(shape.size());
    kernel_.parameters.push_back(
        {std::move(name), dtype, std::move(shape), Layout::row_major(rank), access});
  }
  void add_range(std::string name, std::int64_t extent, bool is_reduce) {
    kernel_.ranges.push_back({std::move(name), extent, is_reduce});
  }
  ExprId scalar(ScalarOp op, std::initializer_list<ExprId> operands) {
    return pool().scalar(op, std::vector<ExprId>(operands), strict());
  }
  bool strict() { return one_in(6); }
  ExprId constant(std::int64_t value) { return pool().constant(Scalar::of_int(dtype_, value)); }

  // 0 <= index < kSide
  ExprId index() {
    if (one_in(8)) return pool().index(static_cast<std::int64_t>(below(5)));
    const ExprId variable = pool().variable(variables_[below(variables_.size())]);
    switch (below(7)) {
      case 0: return pool().add(variable, pool().index(static_cast<std::int64_t>(below(5))));
      case 1: return pool().floor_div(variable, pick<std::int64_t>({2, 16}));
      case 2: return pool().floor_mod(variable, pick<std::int64_t>({2, 16}));
      case 3: return pool().min(variable, static_cast<std::int64_t>(below(4)));
      default: return variable;
    }
  }
  ExprId any_index() {
    const ExprId loaded = pool().cast(pool().load(2, DType::I32, {index()}), DType::I64);
    return one_in(3) ? loaded : index();
  }
  ExprId condition(int depth) {
    if (depth > 0 && one_in(3)) {
      return pool().logical_and(condition(depth - 1), condition(depth - 1));
    }
    const ScalarOp op = pick({ScalarOp::Lt, ScalarOp::Le, ScalarOp::Eq, ScalarOp::Lt});
    return scalar(op, {any_index(), any_index()});
  }
  ExprId load() {
    if (one_in(3)) {
      const std::uint32_t row = variables_[below(variables_.size())];
      const std::uint32_t column = row + 1 < kernel_.ranges.size() ? row + 1 : row;
      const bool is_open = std::ranges::find(variables_, column) != variables_.end();
      return pool().load(3, dtype_,
                         {pool().variable(row), pool().variable(is_open ? column : row)});
    }
    if (one_in(3)) {
      return pool().load_gated(1, dtype_, {index(), index()}, condition(1),
                               Scalar::of_int(dtype_, one_in(4) ? 1 : 0));
    }
    return pool().load(1, dtype_, {index(), index()});
  }

  ExprId value(int depth) {
    if (depth == 0) return one_in(4) ? constant(static_cast<std::int64_t>(below(3))) : load();
    if (!free_.empty() && !one_in(4)) return reduce(depth);
    switch (below(6)) {
      case 0: return scalar(ScalarOp::Add, {value(depth - 1), value(depth - 1)});
      case 1: return scalar(ScalarOp::Sub, {value(depth - 1), value(depth - 1)});
      case 2: return scalar(ScalarOp::Mul, {load(), value(depth - 1)});
      case 3: return scalar(ScalarOp::Select, {condition(1), value(depth - 1), constant(0)});
      case 4: return pool().cast(condition(1), dtype_);
      default: return load();
    }
  }
  ExprId reduce(int depth) {
    const std::vector<std::uint32_t> free = free_, variables = variables_;
    const auto count = 1 + below(free.size());
    const std::vector<std::uint32_t> own(free.begin(),
                                         free.begin() + static_cast<std::ptrdiff_t>(count));
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(count));
    variables_.insert(variables_.end(), own.begin(), own.end());
    const Combine combine = pick({Combine::Sum, Combine::Sum, Combine::Sum, Combine::Max});
    const ExprId body = value(depth - 1);
    variables_ = variables;
    const ExprId result = pool().reduce(combine, body, own, strict());
    free_ = one_in(2) ? free : std::vector<std::uint32_t>{};
    return result;
  }

  std::mt19937_64 random_;
  RangedKernel kernel_;
  DType dtype_ = DType::F32;
  std::vector<std::uint32_t> variables_, free_;
};

// The elements of the result as numbers: relaxed rules may give another zero.
std::vector<double> numbers(const RangedKernel& kernel, const Memory& memory) {
  const DType dtype = kernel.parameters[0].dtype;
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  std::vector<double> result;
  for (std::size_t i = 0; i < memory[0].size(); i += size) {
    result.push_back(Scalar::load(dtype, memory[0].data() + i).as_double());
  }
  return result;
}

// Larger numbers may have been rounded, in an order that relaxed rules may change.
bool is_exact(const RangedKernel& kernel, const std::vector<double>& values) {
  const DType dtype = kernel.parameters[0].dtype;
  const double most = dtype == DType::F16 ? 256 : 1 << 20;
  return !is_float(dtype) ||
         std::ranges::all_of(values, [&](double value) { return value >= -most && value <= most; });
}

TEST(RuleProperties, RandomKernelsKeepTheirValues) {
  RuleCounts counts{};
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= kKernels && !HasFailure(); ++seed) {
    const RangedKernel before = RandomKernel(seed).make();
    if (!validate_kernel(before)) continue;
    RangedKernel after = before;
    for (const RangedPass& pass : ranged_passes()) {
      const auto result = pass.run(after, rule_options());
      ASSERT_TRUE(result.has_value()) << to_line(result.error().diagnostics[0]) << "\n"
                                      << print_kernel(after);
      for (std::size_t rule = 0; rule < kRuleCount; ++rule) counts[rule] += result->counts[rule];
      after = result->kernel;
    }
    const Memory memory = random_memory(before, seed);
    const std::vector<double> expected = numbers(before, results(before, memory));
    if (!is_exact(before, expected)) continue;
    ++compared;
    ASSERT_EQ(numbers(after, results(after, memory)), expected)
        << "seed " << seed << "\n"
        << print_kernel(before) << print_kernel(after);
  }
  EXPECT_GE(compared, kKernels / 2);
  for (const RuleInfo& rule : rule_list()) {
    // Its pattern needs a store that repeats elements; the text tests have it.
    if (rule.rule == Rule::ShrinkRange) continue;
    EXPECT_GE(counts[static_cast<std::size_t>(rule.rule)], 5U) << rule.name;
  }
}

}  // namespace
}  // namespace ingot
