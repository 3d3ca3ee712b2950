// The whole compile as one function: graphs in, call lists with machine code out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/code_generator.h"
#include "compiler/graph/graph.h"
#include "compiler/program/check_kernels.h"
#include "compiler/program/program.h"
#include "compiler/rules/rules.h"
#include "compiler/target/target.h"

namespace ingot {

struct CompileOptions {
  std::vector<Target> targets;
  int optimization = 2;  // 0 or 2
  int jobs = 1;
  std::uint64_t reference_seed = 42;
  int reference_steps = 1;  // at least 2 is used where there is a state
  // Whether the reference is evaluated again for every input, to find those that make no
  // difference.
  bool try_inputs = false;
  // Elements of every kernel's output that are computed again in double precision, where this
  // processor can run the target's code; 0: none.
  int checked_elements = 0;
  // Validates every kernel after every change of a rule.
  bool verify_passes = kVerifyRules;
  // Replayed instead of those that would be chosen; what is for another target or kernel is not
  // used.
  std::vector<KernelSchedule> schedules;
  // Called when a pass begins, which ends the one before; with an empty name at the end.
  std::function<void(const std::string& name)> begins;
  // --print-after: called with the stage or pass name and the printed program.
  std::function<void(const std::string& name, const std::string& text)> trace;
  // Stage name, units done, units in all (0: unknown).
  std::function<void(const std::string& stage, std::size_t done, std::size_t total)> progress;
};

// Inputs and outputs of another runtime, each in the order of the graph.
struct OutsideReference {
  // From the second step on, an output of the step before is the input.
  struct Feedback {
    std::size_t output = 0, input = 0;
  };
  using Values = std::vector<std::vector<std::byte>>;
  using KnownValues = std::vector<std::optional<std::vector<std::byte>>>;

  std::string name;                   // of the case
  std::optional<std::uint64_t> seed;  // of generated inputs
  std::vector<Values> inputs;         // by step; what feedback replaces may be empty
  std::vector<Feedback> feedback;
  KnownValues outputs, next_states;  // after the last step, where they are known
};

// One graph per camera layout (or one, without cameras). All have the same inputs by name but for
// the size of camera frames.
struct CompileInput {
  struct Variant {
    std::string camera;  // name of the layout, empty without cameras
    Graph graph;
    std::vector<OutsideReference> outside = {};
  };
  std::vector<Variant> variants;
  // Share of the largest expected magnitude within which float outputs must agree: 1e-4 for float32
  // models, 2e-2 for float16, 8e-3 for quantized ones.
  double float_tolerance = 1e-4;
};

// One step of a reference sequence: bytes of every input, and of every output after the step, in
// the order of Program::io; and of those next states that another runtime gave.
struct ReferenceStep {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::optional<std::vector<std::byte>>> next_states;  // may be empty
  std::vector<bool> is_outside;  // by output, whether another runtime gave it; may be empty
};
// How an output compares: same bits, or |got - want| <= atol (one step for rounded integers).
struct ReferenceTolerance {
  bool same_bits = false;
  float atol = 0;
};
struct ReferenceSequence {
  std::string name;  // of the case of another runtime; empty: the own one
  std::optional<std::uint64_t> seed;
  std::vector<ReferenceStep> steps;
  std::vector<ReferenceTolerance> tolerances;        // per output
  std::vector<ReferenceTolerance> state_tolerances;  // per state; empty if no step has one
};
using SharedReference = std::shared_ptr<const ReferenceSequence>;

// What the plan starts from, and what it makes of it.
struct FusionCounts {
  std::size_t nodes = 0;            // of the imported graph, without inputs and constants
  std::size_t unfused_kernels = 0;  // of the plan that -O0 has
  std::size_t kernels = 0;
};

struct CompiledVariant {
  std::string camera;
  Target target;
  FusionCounts fusion;
  Program program;
  CodeBlob code;                             // entries in the order of program.kernels
  RuleCounts rules{};                        // how often each rule was applied
  std::vector<SharedReference> references;   // the own one first; those of the camera
  std::optional<KernelCheckCounts> checked;  // none: not asked for, or not executed
};

// An input that makes no difference.
struct IdleInput {
  std::string name;
  bool is_state = false;
  std::vector<std::string> reaches;  // outputs and states that are computed from it; none: unused
};

struct Compiled {
  std::vector<CompiledVariant> variants;  // cameras outer, targets inner
  std::vector<IdleInput> idle_inputs;     // of the first camera; unused ones only, unless tried
  std::vector<KernelSchedule>
      unused_schedules;  // for one of the targets, but for none of the kernels
};

[[nodiscard]] Result<Compiled> compile(const CompileInput& input, const CompileOptions& options,
                                       CodeGenerator& generator, KernelRunner& runner);

// Element i of a seeded test tensor named `name` (recipe: docs/testing.md): floats lo..hi, integers
// lo..hi inclusive, bool by halves.
[[nodiscard]] std::vector<std::byte> generate_input(const std::string& name, DType dtype,
                                                    const Shape& shape, std::uint64_t seed,
                                                    double lo, double hi);

// Names of all passes and stages in order, for --list-passes.
struct PassInfo {
  std::string name;
  std::string level;  // graph, plan, kernel, program
  std::string text;   // one sentence
};
[[nodiscard]] const std::vector<PassInfo>& pass_list();
// `ingot pass NAME FILE`: runs one pass on a program in text form.
[[nodiscard]] Result<std::string> run_pass(const std::string& name, std::string_view text);

}  // namespace ingot
