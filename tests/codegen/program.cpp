#include "tests/codegen/program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "codegen/llvm_code_generator.h"

namespace ingot {

std::uint32_t KernelWriter::parameter(const std::string& name, DType dtype, Shape shape,
                                      Access access) {
  KernelParameter parameter;
  parameter.name = name;
  parameter.dtype = dtype;
  parameter.layout = Layout::row_major(static_cast<int>(shape.size()));
  parameter.shape = std::move(shape);
  parameter.access = access;
  kernel.parameters.push_back(std::move(parameter));
  return static_cast<std::uint32_t>(kernel.parameters.size() - 1);
}

std::uint32_t KernelWriter::registers(const std::string& name, DType dtype, std::int64_t elements,
                                      std::int64_t lanes) {
  kernel.registers.push_back({name, AddressSpace::Register, dtype, elements, lanes});
  return static_cast<std::uint32_t>(kernel.registers.size() - 1);
}

std::uint32_t KernelWriter::scratch(const std::string& name, DType dtype, std::int64_t elements) {
  kernel.registers.push_back({name, AddressSpace::Worker, dtype, elements, 1});
  return static_cast<std::uint32_t>(kernel.registers.size() - 1);
}

ExprId KernelWriter::sum(std::vector<std::pair<ExprId, std::int64_t>> terms) {
  ExprId total = at(0);
  for (const auto& [term, factor] : terms) {
    total = kernel.pool.add(total, kernel.pool.mul(term, factor));
  }
  return total;
}

ScheduledKernel KernelWriter::finish() {
  kernel.body = std::move(block_);
  const Result<void> valid = validate_kernel(kernel);
  EXPECT_TRUE(valid.has_value()) << to_line(valid.error().diagnostics[0]);
  return kernel;
}

CompiledProgram::CompiledProgram(const ScheduledKernel& kernel, const Target& target, bool strict) {
  CodeOptions options;
  options.strict = strict;
  const ScheduledKernel* const kernels[] = {&kernel};
  Result<CodeBlob> blob = make_llvm_code_generator()->generate(kernels, target, options);
  if (!blob) {
    ADD_FAILURE() << to_line(blob.error().diagnostics[0]);
    return;
  }
  blob_ = *std::move(blob);
  Result<ExecutableMemory> memory = ExecutableMemory::map(blob_.bytes);
  if (!memory) {
    ADD_FAILURE() << to_line(memory.error().diagnostics[0]);
    return;
  }
  memory_.emplace(*std::move(memory));
}

std::int32_t CompiledProgram::run(std::vector<const void*> buffers, std::uint32_t first,
                                  std::uint32_t last, std::uint32_t worker) const {
  if (!memory_) return -1;
  const DefaultFloatMode mode;
  return memory_->program(blob_.entries[0])(buffers.data(), nullptr, first, last, worker);
}

namespace {

std::uint64_t random_bits(DType dtype, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  const auto at = [&random](std::initializer_list<std::uint64_t> list) {
    return list.begin()[random() % list.size()];
  };
  const bool special = random() % 4 == 0;
  if (dtype == DType::Bool) return bits & 1;
  if (!special && is_float(dtype) && random() % 2 == 0) {  // of ordinary size
    std::uint64_t stored = 0;
    const double value = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-60;
    Scalar::of_float(dtype, value).store(&stored);
    return stored;
  }
  if (!special) return random() % 2 == 0 ? bits : bits % 16;
  switch (dtype) {
    case DType::F32:
      return at({0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x807FFFFF, 0x00800000,
                 0x7F7FFFFF, 0x3F800000, 0xBF000000, 0x4F000000, 0xCF000000, 0x4B000001});
    case DType::F64:
      return at({0, 0x8000000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
                 1, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x43E0000000000000,
                 0xC3E0000000000000, 0x3810000000000000, 0x36A0000000000001, 0x3F00000000000001});
    case DType::F16:
      return at({0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 1, 0x03FF, 0x0400, 0x7BFF, 0x3C00, 0xB800});
    case DType::BF16:
      return at({0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 1, 0x007F, 0x0080, 0x7F7F, 0x3F80});
    default: {
      const int width = 8 * size_bytes(dtype);
      return at({0, 1, ~std::uint64_t{0}, std::uint64_t{1} << (width - 1),
                 (std::uint64_t{1} << (width - 1)) - 1, 7, 100, ~std::uint64_t{6}});
    }
  }
}

bool same_element(DType dtype, const std::byte* a, const std::byte* b, bool zeros_have_signs) {
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  if (std::memcmp(a, b, size) == 0) return true;
  if (!is_float(dtype)) return false;
  const double x = Scalar::load(dtype, a).as_double();
  const double y = Scalar::load(dtype, b).as_double();
  return (std::isnan(x) && std::isnan(y)) || (!zeros_have_signs && x == 0 && y == 0);
}

}  // namespace

std::vector<std::byte> random_elements(DType dtype, std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const std::uint64_t element = random_bits(dtype, random);
    std::memcpy(&bytes[i], &element, size);
  }
  return bytes;
}

Buffers random_buffers(const ScheduledKernel& kernel, unsigned seed) {
  Buffers buffers;
  for (const KernelParameter& parameter : kernel.parameters) {
    const std::int64_t count = element_count(parameter.layout, parameter.shape);
    if (parameter.access == Access::Read) {
      buffers.push_back(random_elements(parameter.dtype, count, seed++));
    } else {
      buffers.emplace_back(static_cast<std::size_t>(count * size_bytes(parameter.dtype)));
    }
  }
  return buffers;
}

namespace {

// Memory for code and data as the loader provides it: 64-byte aligned.
struct AlignedCopy {
  explicit AlignedCopy(const std::vector<std::byte>& bytes) : storage(bytes.size() + 64) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    begin = storage.data() + (64 - address % 64) % 64;
    std::copy(bytes.begin(), bytes.end(), begin);
  }
  std::vector<std::byte> storage;
  std::byte* begin;
};

std::vector<Outcome> run_here(const std::vector<Job>& jobs, const CodeBlob& blob) {
  Result<ExecutableMemory> memory = ExecutableMemory::map(blob.bytes);
  if (!memory) {
    ADD_FAILURE() << to_line(memory.error().diagnostics[0]);
    return {};
  }
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<AlignedCopy> copies;
    std::vector<const void*> addresses;
    for (const std::vector<std::byte>& buffer : jobs[i].buffers) copies.emplace_back(buffer);
    for (const AlignedCopy& copy : copies) addresses.push_back(copy.begin);
    const auto turns = static_cast<std::uint32_t>(jobs[i].kernel.parallel_extent());
    const DefaultFloatMode mode;
    Outcome outcome;
    outcome.result = memory->program(blob.entries[i])(addresses.data(), nullptr, 0, turns, 0);
    for (std::size_t b = 0; b < copies.size(); ++b) {
      outcome.buffers.emplace_back(copies[b].begin, copies[b].begin + jobs[i].buffers[b].size());
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

void write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

// The files of run_blob.cpp.
std::vector<Outcome> run_under_qemu(const std::vector<Job>& jobs, const CodeBlob& blob) {
  std::vector<std::byte> request;
  const auto put = [&request](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) request.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  put(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    put(blob.entries[i].offset);
    put(static_cast<std::uint64_t>(jobs[i].kernel.parallel_extent()));
    put(jobs[i].buffers.size());
    for (const std::vector<std::byte>& buffer : jobs[i].buffers) {
      put(buffer.size());
      request.insert(request.end(), buffer.begin(), buffer.end());
    }
  }
  std::string folder = testing::TempDir() + "ingot-qemu-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    ADD_FAILURE() << "no temporary folder";
    return {};
  }
  const std::filesystem::path base(folder);
  write_file(base / "blob", blob.bytes);
  write_file(base / "request", request);
  const std::string command = std::string(INGOT_QEMU) + " -cpu max " + INGOT_RUN_BLOB + " " +
                              (base / "blob").string() + " " + (base / "request").string() + " " +
                              (base / "reply").string();
  const int status = std::system(command.c_str());
  std::ifstream stream(base / "reply", std::ios::binary);
  std::vector<Outcome> outcomes;
  for (const Job& job : jobs) {
    Outcome outcome;
    stream.read(reinterpret_cast<char*>(&outcome.result), sizeof outcome.result);
    for (const std::vector<std::byte>& buffer : job.buffers) {
      std::vector<std::byte> after(buffer.size());
      stream.read(reinterpret_cast<char*>(after.data()),
                  static_cast<std::streamsize>(after.size()));
      outcome.buffers.push_back(std::move(after));
    }
    outcomes.push_back(std::move(outcome));
  }
  const bool complete = status == 0 && static_cast<bool>(stream);
  std::filesystem::remove_all(base);
  if (!complete) ADD_FAILURE() << command << ": status " << status;
  return complete ? outcomes : std::vector<Outcome>();
}

void expect_same(const Job& job, const Outcome& outcome, const Target& target) {
  Buffers expected = job.buffers;
  std::vector<std::byte*> memory;
  for (std::vector<std::byte>& buffer : expected) memory.push_back(buffer.data());
  const Result<InterpreterResult> interpreted = interpret(job.kernel, memory);
  ASSERT_TRUE(interpreted.has_value()) << to_line(interpreted.error().diagnostics[0]);
  const std::string where = job.kernel.name + " on " + target.name;
  EXPECT_EQ(outcome.result, interpreted->index_clamped ? 1 : 0) << where;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const DType dtype = job.kernel.parameters[i].dtype;
    const auto size = static_cast<std::size_t>(size_bytes(dtype));
    for (std::size_t at = 0; at < expected[i].size(); at += size) {
      const std::byte* const compiled = &outcome.buffers[i][at];
      ASSERT_TRUE(same_element(dtype, compiled, &expected[i][at], job.zeros_have_signs))
          << where << ", '" << job.kernel.parameters[i].name << "' element " << at / size
          << ": compiled " << to_text(Scalar::load(dtype, compiled)) << ", interpreted "
          << to_text(Scalar::load(dtype, &expected[i][at]));
    }
  }
}

bool is_runnable(const Target& target) {
  const Result<Target> host = find_target("host");
  return host && target.architecture == host->architecture &&
         (target.feature_bits & ~host->feature_bits) == 0;
}

}  // namespace

std::vector<Outcome> run_jobs(const std::vector<Job>& jobs, const Target& target) {
  std::vector<const ScheduledKernel*> kernels;
  for (const Job& job : jobs) kernels.push_back(&job.kernel);
  CodeOptions options;
  options.jobs = 2;
  options.strict = !jobs.empty() && jobs[0].strict;
  const Result<CodeBlob> blob = make_llvm_code_generator()->generate(kernels, target, options);
  if (!blob) {
    ADD_FAILURE() << to_line(blob.error().diagnostics[0]);
    return {};
  }
  return is_runnable(target) ? run_here(jobs, *blob) : run_under_qemu(jobs, *blob);
}

void expect_as_interpreted(const std::vector<Job>& jobs, const Target& target) {
  const std::vector<Outcome> outcomes = run_jobs(jobs, target);
  ASSERT_EQ(outcomes.size(), jobs.size()) << target.name;
  for (std::size_t i = 0; i < jobs.size(); ++i) expect_same(jobs[i], outcomes[i], target);
}

void expect_as_interpreted_everywhere(const ScheduledKernel& kernel) {
  for (const Target& target : testable_targets()) {
    expect_as_interpreted({{kernel, random_buffers(kernel, 21)}}, target);
  }
}

std::vector<Target> runnable_targets() {
  std::vector<Target> targets;
  std::ranges::copy_if(known_targets(), std::back_inserter(targets), is_runnable);
  return targets;
}

std::vector<Target> testable_targets() {
  std::vector<Target> targets = runnable_targets();
  const bool has_qemu = *INGOT_QEMU != 0 && *INGOT_RUN_BLOB != 0;
  for (const Target& target : known_targets()) {
    if (has_qemu && target.architecture == Architecture::Aarch64 && !is_runnable(target)) {
      targets.push_back(target);
    }
  }
  return targets;
}

std::string assembly(const ScheduledKernel& kernel, const Target& target) {
  Result<std::string> text = make_llvm_code_generator()->emit_text(kernel, target, "asm");
  if (!text) ADD_FAILURE() << to_line(text.error().diagnostics[0]);
  return text ? *std::move(text) : std::string();
}

}  // namespace ingot
