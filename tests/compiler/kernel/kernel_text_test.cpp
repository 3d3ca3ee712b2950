#include <gtest/gtest.h>

#include <random>

#include "compiler/kernel/kernel.h"

namespace ingot {
namespace {

constexpr std::string_view kRanged = R"(ranged kernel convolution
read x: f32[1,3,8,8] row
read w: f32[8,3,3,3] order 0,2,3,1 block 0x8
write y: f32[1,8,8,8] order 0,1,2,3 block 1x8 halo 2:1+1 3:1+1
range n: 1
range o: 8
range h: 8
range v: 8
reduce c: 3
reduce ky: 3
reduce kx: 3
%0 = load x[n, c, h + ky - 1, v + kx - 1] if 0 < h + ky && h + ky < 9 && 0 < v + kx && v + kx < 9 else f32 0
%1 = load w[o, c, ky, kx]
%2 = mul(%0, %1)
%3 = sum(%2 over c, ky, kx)
store y[n, o, h, v] = max!(%3, f32 -0)
)";

constexpr std::string_view kScheduled = R"(scheduled kernel "mat mul/1"
read a: f32[4,8] row
read b: f32[8,16] row
write c: f32[4,16] row
register acc: f32[2][8]
worker tile: f32[64][1]
worker part: f32[4][2] in c
step "tile j 8"
step "vector l"
parallel i: 4 {
  unroll j: 2 {
    vector l: 8 {
      set acc[j, l] = f32 0
    }
  }
  for k: 8 {
    prefetch b[k * 16 + 64]
    unroll j: 2 {
      vector l: 8 {
        %0 = load a[i * 8 + k]
        %1 = load b[k * 16 + j * 8 + l]
        set acc[j, l] = fma(%0, %1, acc[j, l])
      }
    }
  }
  barrier
  if i < 3 {
    unroll j: 2 {
      vector l: 8 {
        store c[i * 16 + j * 8 + l] = mul(acc[j, l], acc[j, l])
      }
    }
  }
}
)";

std::string message(const Failure& failure) {
  EXPECT_EQ(failure.exit, ExitCode::Malformed);
  return failure.diagnostics.front().message;
}

// Prints, or says why the text does not parse.
std::string ranged_again(std::string_view text) {
  const auto kernel = parse_ranged_kernel(text);
  return kernel ? print_kernel(*kernel) : message(kernel.error());
}
std::string scheduled_again(std::string_view text) {
  const auto kernel = parse_scheduled_kernel(text);
  return kernel ? print_kernel(*kernel) : message(kernel.error());
}

TEST(KernelText, RangedComesBack) { EXPECT_EQ(ranged_again(kRanged), kRanged); }
TEST(KernelText, ScheduledComesBack) { EXPECT_EQ(scheduled_again(kScheduled), kScheduled); }

TEST(KernelText, ParsedKernelHasWhatTheTextSays) {
  const auto kernel = parse_scheduled_kernel(kScheduled);
  ASSERT_TRUE(kernel.has_value());
  EXPECT_TRUE(validate_kernel(*kernel).has_value());
  EXPECT_EQ(kernel->name, "mat mul/1");
  EXPECT_EQ(kernel->parameters[1].name, "b");
  EXPECT_EQ(kernel->parameters[2].access, Access::Write);
  EXPECT_EQ(kernel->registers[1].space, AddressSpace::Worker);
  EXPECT_EQ(kernel->registers[1].elements, 64);
  EXPECT_EQ(kernel->steps, (std::vector<std::string>{"tile j 8", "vector l"}));
  EXPECT_EQ(kernel->variables[0].kind, LoopKind::Parallel);
  EXPECT_EQ(kernel->variables[2].name, "l");
  EXPECT_EQ(kernel->parallel_extent(), 4);
}

TEST(KernelText, EveryKindOfExpression) {
  constexpr std::string_view text = R"(ranged kernel all
read x: f32[8] row
read n: i32[8] row
read b: bool[8] row
write y: f32[] row
write m: i64[] row
write f: f16[] row
range i: 8
reduce k: 8
reduce m$2: 8
%0 = load n[i]
%1 = load x[clamp(i64(%0), 8)]
%2 = product!(%1 over k, m$2)
store y[] = %2
store m[] = select(i < 4 && i != 2 && (true && i == 3), (i + 1) * (i - 2) div 3 mod 4, sub(i, 1) + -9223372036854775808)
%3 = load b[i]
%4 = select(not(%3), f16 inf, f16 nan)
store f[] = add!(%4, f16 1e-05)
)";
  const std::string printed = ranged_again(text);
  EXPECT_EQ(ranged_again(printed), printed);
  const auto kernel = parse_ranged_kernel(text);
  ASSERT_TRUE(kernel.has_value()) << message(kernel.error());
  EXPECT_NE(printed.find("i != 2 && (true && i == 3)"), std::string::npos) << printed;
  EXPECT_NE(printed.find("(i + 1) * (i - 2) div 3 mod 4"), std::string::npos) << printed;
  EXPECT_NE(printed.find("sub(i, 1) + -9223372036854775808"), std::string::npos) << printed;
  EXPECT_NE(printed.find("product!(%2 over k, m$2)"), std::string::npos) << printed;
}

TEST(KernelText, NamesAreKept) {
  RangedKernel kernel;
  kernel.name = "node \"a\"\\\n";
  kernel.parameters = {{"max", DType::F32, {2}, Layout::row_major(1), Access::Read},
                       {"", DType::F32, {2}, Layout::row_major(1), Access::Write},
                       {"x", DType::F32, {2}, Layout::row_major(1), Access::Read}};
  kernel.ranges = {{"x", 2, false}, {"x", 2, true}, {"/conv/x:0", 2, true}};
  const ExprId load = kernel.pool.load(0, DType::F32, {kernel.pool.variable(1)});
  kernel.stores = {{1, {kernel.pool.variable(0)}, kernel.pool.reduce(Combine::Max, load, {1, 2})}};
  const std::string text = print_kernel(kernel);
  const auto again = parse_ranged_kernel(text);
  ASSERT_TRUE(again.has_value()) << text << message(again.error());
  EXPECT_EQ(print_kernel(*again), text);
  EXPECT_EQ(again->name, kernel.name);
  EXPECT_EQ(again->parameters, kernel.parameters);
  EXPECT_EQ(again->ranges, kernel.ranges);
}

TEST(KernelText, SharedValuesAreWrittenOnceWhereTheyAreNeeded) {
  const std::string text = scheduled_again(R"(scheduled kernel shared
read x: f32[64] row
write y: f32[64] row
register r: f32[1][1]
for i: 8 {
  set r[0, 0] = load x[i * 8 + i * 2 + 1]
  store y[i * 8 + i * 2 + 1] = mul(add(r[0, 0], f32 1), add(r[0, 0], f32 1))
  store y[i * 8 + i * 2 + 2] = add(r[0, 0], f32 1)
}
)");
  EXPECT_EQ(text, R"(scheduled kernel shared
read x: f32[64] row
write y: f32[64] row
register r: f32[1][1]
for i: 8 {
  %0 = i * 8 + i * 2
  set r[0, 0] = load x[%0 + 1]
  %1 = add(r[0, 0], f32 1)
  store y[%0 + 1] = mul(%1, %1)
  %2 = add(r[0, 0], f32 1)
  store y[%0 + 2] = %2
}
)");
}

TEST(KernelText, CommentsAndBlanks) {
  EXPECT_EQ(
      ranged_again("\n# a kernel\nranged kernel k  # name\r\n\n  read \"#\" : f32[2]  row # x\n"),
      "ranged kernel k\nread \"#\": f32[2] row\n");
}

TEST(KernelText, MalformedTextNamesItsLine) {
  const std::string head = "ranged kernel k\nread x: f32[4] row\nwrite y: f32[4] row\nrange i: 4\n";
  const auto problem = [&](const std::string& line) { return ranged_again(head + line); };
  EXPECT_EQ(ranged_again(""), "line 0: expected 'ranged kernel NAME'");
  EXPECT_EQ(ranged_again("scheduled kernel k"), "line 1: expected 'ranged kernel NAME'");
  EXPECT_EQ(ranged_again("ranged kernel"), "line 1: expected the kernel's name");
  EXPECT_EQ(ranged_again("ranged kernel k\nread x: f31[4] row"),
            "line 2: expected an element type");
  EXPECT_EQ(ranged_again("ranged kernel k\nread x: f32[4] rows"),
            "line 2: layout 'rows': expected 'row' or 'order'");
  EXPECT_EQ(problem("read x: f32[4] row"), "line 5: 'x' is declared twice");
  EXPECT_EQ(problem("range j: -1"), "line 5: expected an extent");
  EXPECT_EQ(problem("store y[i] = load z[i]"), "line 5: no parameter 'z'");
  EXPECT_EQ(problem("store y[i] = %0"), "line 5: %0 is not defined");
  EXPECT_EQ(problem("%0 = i\n%0 = i"), "line 6: %0 is defined twice");
  EXPECT_EQ(problem("store y[i] = x"), "line 5: 'x' is a parameter: expected 'load'");
  EXPECT_EQ(problem("store y[i] = j"), "line 5: nothing is called 'j'");
  EXPECT_EQ(problem("store y[i] = f32 x"), "line 5: 'x' is no constant of f32");
  EXPECT_EQ(problem("store y[i] = f32 1 + f32 2"),
            "line 5: 'add' is written between operands only for i64");
  EXPECT_EQ(problem("store y[i] = add(i)"), "line 5: 'add' takes 2 operands");
  EXPECT_EQ(problem("store y[i] = add(i, i) i"), "line 5: unexpected text 'i'");
  EXPECT_EQ(problem("store y[i] = load x[i] if i < 3"),
            "line 5: expected 'else' and the value without a load");
  EXPECT_EQ(problem("store y[i] = sum(i)"), "line 5: no operation 'sum'");
  EXPECT_EQ(problem("store y[i] = sum(i over x)"), "line 5: no range 'x'");
  EXPECT_EQ(problem("store y[i] = clamp(i, i)"),
            "line 5: 'clamp' takes an index and a constant extent");
  EXPECT_EQ(problem("store y[i] = 99999999999999999999"), "line 5: the number is too large");
  EXPECT_EQ(problem("loop i: 4"), "line 5: expected a declaration, '%' or 'store'");
  EXPECT_EQ(problem("store y[i] = " + std::string(1000, '(')),
            "line 5: the expression is nested too deeply");
  EXPECT_EQ(scheduled_again("scheduled kernel k\n}"), "line 2: '}' closes nothing");
  EXPECT_EQ(scheduled_again("scheduled kernel k\nfor i: 4 {"), "line 2: a block is not closed");
  EXPECT_EQ(scheduled_again("scheduled kernel k\nfor i: 4 {\nfor i: 4 {\n}\n}"),
            "line 3: 'i' is declared twice");
  EXPECT_EQ(scheduled_again("scheduled kernel k\nregister r: f32[4]"),
            "line 2: expected '[ELEMENTS][LANES]'");
}

TEST(KernelText, IdentityIgnoresNamesOnly) {
  const auto key = [](std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos;
         at += to.size()) {
      text.replace(at, from.size(), to);
    }
    const auto kernel = parse_scheduled_kernel(text);
    EXPECT_TRUE(kernel.has_value()) << message(kernel.error());
    return kernel ? identity_key(*kernel) : "";
  };
  const std::string text(kScheduled);
  const std::string same = key(text, "", "");
  EXPECT_EQ(same.find("acc"), std::string::npos);
  EXPECT_EQ(key(text, "acc", "sum_of_products"), same);
  EXPECT_EQ(key(text, "mat mul/1", "other"), same);
  EXPECT_EQ(key(text, "step \"vector l\"", "step \"\""), same);
  EXPECT_NE(key(text, "fma(", "fma!("), same);
  EXPECT_NE(key(text, "i < 3", "i < 2"), same);
  EXPECT_NE(key(text, "f32 0", "f32 -0"), same);
  EXPECT_NE(key(text, "read b: f32[8,16] row", "read b: f32[8,16] order 1,0"), same);
  EXPECT_NE(key(text, "write c: f32[4,16]", "write c: f32[4,17]"), same);
  EXPECT_NE(key(text, "unroll", "for"), same);
  EXPECT_NE(key(text, "worker tile", "group tile"), same);
  EXPECT_NE(key(text, "parallel", "for"), same);
  EXPECT_NE(key(text, "  barrier\n", ""), same);
}

// Runs a valid kernel on zeros if it is small.
template <typename Kernel>
void run_if_small(const Kernel& kernel, std::int64_t longest) {
  if (longest > 64 || !validate_kernel(kernel)) return;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::byte*> pointers;
  for (const KernelParameter& parameter : kernel.parameters) {
    const std::int64_t count = element_count(parameter.layout, parameter.shape);
    if (count > 1 << 16) return;
    buffers.emplace_back(static_cast<std::size_t>(count * size_bytes(parameter.dtype)));
    pointers.push_back(buffers.back().data());
  }
  (void)interpret(kernel, pointers);
}

// Whatever happens to a text, parsing gives a kernel or a failure; a kernel can be validated,
// printed, parsed again and, if it is valid, run.
TEST(KernelText, DamagedTextNeverCrashes) {
  std::mt19937_64 random(7);
  const std::string alphabet = " \n\"\\$%(){}[],:+-*<=!&#0189azf_.";
  const std::string_view texts[] = {kRanged, kScheduled};
  int parsed = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text(texts[i % 2]);
    if (i % 5 == 0) {
      text.resize(random() % text.size());
    } else {
      for (std::size_t n = 1 + random() % 3; n > 0; --n) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0: text[at] = alphabet[random() % alphabet.size()]; break;
          case 1: text.erase(at, 1 + random() % 4); break;
          case 2: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
          default: text.insert(at, text.substr(random() % text.size(), random() % 20)); break;
        }
        if (text.empty()) text = " ";
      }
    }
    if (i % 2 == 0) {
      const auto kernel = parse_ranged_kernel(text);
      if (!kernel) continue;
      ++parsed;
      std::int64_t longest = 0;
      for (const Range& range : kernel->ranges) longest = std::max(longest, range.extent);
      run_if_small(*kernel, longest);
      const std::string printed = print_kernel(*kernel);
      ASSERT_EQ(ranged_again(printed), printed) << text;
    } else {
      const auto kernel = parse_scheduled_kernel(text);
      if (!kernel) continue;
      ++parsed;
      std::int64_t longest = 0;
      for (const Variable& variable : kernel->variables) {
        longest = std::max(longest, variable.extent);
      }
      for (const RegisterArray& array : kernel->registers) {
        longest = std::max(longest, array.elements);
      }
      run_if_small(*kernel, longest);
      (void)identity_key(*kernel);
      // A use outside of its loop has no text; everything else comes back.
      const std::string printed = print_kernel(*kernel);
      if (printed.find('?') == std::string::npos) {
        ASSERT_EQ(scheduled_again(printed), printed) << text;
      }
    }
  }
  EXPECT_GT(parsed, 150);
}

}  // namespace
}  // namespace ingot
