// Two scheduled kernels written by hand. Their loops are long enough for the clock, and everything
// they compute is stored at the end.
#include "codegen/ceilings.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "codegen/executable_memory.h"
#include "codegen/llvm_code_generator.h"

namespace ingot {
namespace {

constexpr double kSecondsToMeasure = 0.05;

KernelParameter vector_parameter(const char* name, DType dtype, std::int64_t elements,
                                 Access access) {
  KernelParameter parameter;
  parameter.name = name;
  parameter.dtype = dtype;
  parameter.shape = {elements};
  parameter.layout = Layout::row_major(1);
  parameter.access = access;
  return parameter;
}

// A kernel that takes registers through a loop: first all of them are set, then every turn changes
// each, then all are stored to the last parameter.
struct ChainKernel {
  ScheduledKernel kernel;
  std::int64_t chains = 0;
  std::int64_t lanes = 0;

  ExprId variable(const char* name, std::int64_t extent, LoopKind kind) {
    kernel.variables.push_back({name, extent, kind});
    return kernel.pool.variable(static_cast<std::uint32_t>(kernel.variables.size() - 1));
  }
  // for chain, for lane: statement(chain, lane)
  template <typename Write>
  Statement for_each_chain(Write write) {
    const ExprId chain = variable("chain", chains, LoopKind::Unroll);
    const ExprId lane = variable("lane", lanes, LoopKind::Vector);
    const ForStatement over_lanes{kernel.pool[lane].id, {write(chain, lane)}};
    return {ForStatement{kernel.pool[chain].id, {{over_lanes}}}};
  }
  ExprId address(ExprId chain, ExprId lane) {
    return kernel.pool.add(kernel.pool.mul(chain, lanes), lane);
  }
  ExprId operation(ScalarOp op, std::vector<ExprId> operands) {
    return kernel.pool.scalar(op, operands);
  }
  Statement start(ExprId value) {
    return for_each_chain([&](ExprId chain, ExprId lane) -> Statement {
      return {SetRegisterStatement{0, chain, lane, value}};
    });
  }
  Statement finish(std::uint32_t output, DType dtype) {
    return for_each_chain([&](ExprId chain, ExprId lane) -> Statement {
      const ExprId value = kernel.pool.read_register(0, dtype, chain, lane);
      return {StoreStatement{output, address(chain, lane), value}};
    });
  }
};

struct Measured {
  CodeBlob blob;
  ExecutableMemory memory;
};

Result<Measured> compile(const ScheduledKernel& kernel, const Target& target) {
  const ScheduledKernel* const kernels[] = {&kernel};
  INGOT_ASSIGN(CodeBlob blob, make_llvm_code_generator()->generate(kernels, target, {}));
  INGOT_ASSIGN(ExecutableMemory memory, ExecutableMemory::map(blob.bytes));
  return Measured{std::move(blob), std::move(memory)};
}

// Seconds of the fastest run.
double fastest(const Measured& code, const std::vector<const void*>& buffers) {
  using Clock = std::chrono::steady_clock;
  const ProgramFunction program = code.memory.program(code.blob.entries[0]);
  program(buffers.data(), nullptr, 0, 1, 0);  // faults pages in, warms caches
  const Clock::time_point begin = Clock::now();
  double best = 1e9;
  for (int runs = 0;
       runs < 3 || Clock::now() - begin < std::chrono::duration<double>(kSecondsToMeasure);
       ++runs) {
    const Clock::time_point start = Clock::now();
    program(buffers.data(), nullptr, 0, 1, 0);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// Memory for reading, on huge pages where the system offers them.
class ReadBuffer {
 public:
  explicit ReadBuffer(std::size_t size_bytes) : size_bytes_(size_bytes) {
    address_ =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address_ == MAP_FAILED) return;
    madvise(address_, size_bytes, MADV_HUGEPAGE);
    std::memset(address_, 1, size_bytes);
  }
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;
  ~ReadBuffer() {
    if (address_ != MAP_FAILED) munmap(address_, size_bytes_);
  }
  [[nodiscard]] const void* address() const { return address_ == MAP_FAILED ? nullptr : address_; }

 private:
  std::size_t size_bytes_;
  void* address_;
};

}  // namespace

double measure_fma_ceiling(const Target& target) {
  constexpr std::int64_t kTurns = 50'000;
  if (!runs_here(target)) return 0;
  ChainKernel chain;
  ScheduledKernel& kernel = chain.kernel;
  kernel.name = "multiply-add ceiling";
  // Enough chains to hide the latency; two registers stay for the factor and the addend.
  chain.chains = target.vector_registers - 4;
  chain.lanes = target.lanes(DType::F32);
  const std::int64_t elements = chain.chains * chain.lanes;
  kernel.parameters = {vector_parameter("operands", DType::F32, 2, Access::Read),
                       vector_parameter("results", DType::F32, elements, Access::Write)};
  kernel.registers = {{"chains", AddressSpace::Register, DType::F32, chain.chains, chain.lanes}};
  const ExprId factor = kernel.pool.load_flat(0, DType::F32, kernel.pool.index(0));
  const ExprId addend = kernel.pool.load_flat(0, DType::F32, kernel.pool.index(1));
  kernel.body.push_back(chain.start(addend));
  const ExprId turn = chain.variable("turn", kTurns, LoopKind::Serial);
  const Statement step = chain.for_each_chain([&](ExprId at, ExprId lane) -> Statement {
    const ExprId before = kernel.pool.read_register(0, DType::F32, at, lane);
    const ExprId after =
        target.has_fma
            ? chain.operation(ScalarOp::Fma, {before, factor, addend})
            : chain.operation(ScalarOp::Add,
                              {chain.operation(ScalarOp::Mul, {before, factor}), addend});
    return {SetRegisterStatement{0, at, lane, after}};
  });
  kernel.body.push_back({ForStatement{kernel.pool[turn].id, {step}}});
  kernel.body.push_back(chain.finish(1, DType::F32));

  const Result<Measured> code = compile(kernel, target);
  if (!code) return 0;
  const float operands[] = {0.75F, 0.25F};
  std::vector<float> results(static_cast<std::size_t>(elements));
  const double seconds = fastest(*code, {operands, results.data()});
  return 2e-9 * static_cast<double>(elements * kTurns) / seconds;
}

namespace {

// From one end to the other, or each chain through a part of its own: the faster way depends on
// what foresees the reads.
double read_bandwidth(std::size_t footprint_bytes, bool has_parts, const Target& target) {
  ChainKernel chain;
  ScheduledKernel& kernel = chain.kernel;
  kernel.name = "read bandwidth";
  chain.chains = 8;
  chain.lanes = target.lanes(DType::I32);
  const std::int64_t group = chain.chains * chain.lanes;
  const std::int64_t groups =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(footprint_bytes) / (4 * group));
  // Small footprints are read several times in one run.
  const std::int64_t passes = std::max<std::int64_t>(1, (4 << 20) / (groups * group * 4));
  kernel.parameters = {vector_parameter("memory", DType::I32, groups * group, Access::Read),
                       vector_parameter("sums", DType::I32, group, Access::Write)};
  kernel.registers = {{"sums", AddressSpace::Register, DType::I32, chain.chains, chain.lanes}};
  kernel.body.push_back(chain.start(kernel.pool.constant(Scalar::zero(DType::I32))));
  const ExprId pass = chain.variable("pass", passes, LoopKind::Serial);
  const ExprId at = chain.variable("group", groups, LoopKind::Serial);
  const Statement step = chain.for_each_chain([&](ExprId one, ExprId lane) -> Statement {
    ExprPool& pool = kernel.pool;
    const ExprId place =
        has_parts ? pool.add(pool.mul(pool.add(pool.mul(one, groups), at), chain.lanes), lane)
                  : pool.add(pool.mul(at, group), chain.address(one, lane));
    const ExprId sum = chain.operation(ScalarOp::Add, {pool.read_register(0, DType::I32, one, lane),
                                                       pool.load_flat(0, DType::I32, place)});
    return {SetRegisterStatement{0, one, lane, sum}};
  });
  const ForStatement over_memory{kernel.pool[at].id, {step}};
  kernel.body.push_back({ForStatement{kernel.pool[pass].id, {{over_memory}}}});
  kernel.body.push_back(chain.finish(1, DType::I32));

  const Result<Measured> code = compile(kernel, target);
  const ReadBuffer memory(static_cast<std::size_t>(groups * group * 4));
  if (!code || memory.address() == nullptr) return 0;
  std::vector<std::int32_t> sums(static_cast<std::size_t>(group));
  const double seconds = fastest(*code, {memory.address(), sums.data()});
  return 1e-9 * static_cast<double>(passes * groups * group * 4) / seconds;
}

}  // namespace

double measure_read_bandwidth(std::size_t footprint_bytes) {
  const Result<Target> host = find_target("host");
  if (!host) return 0;
  return std::max(read_bandwidth(footprint_bytes, false, *host),
                  read_bandwidth(footprint_bytes, true, *host));
}

}  // namespace ingot
