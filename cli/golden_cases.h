// Cases with expected outputs, from folders or from a cases.json.
//
//   DIR/CASE/input_0.npy ... output_0.npy    by position; or input_NAME.npy by name
//   DIR/cases.json                           generated inputs, several steps, feedback
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artifact/digest.h"
#include "base/result.h"
#include "compiler/tensor/tensor.h"

namespace ingot::cli {

// Either a file or a seeded tensor.
struct CaseInput {
  std::string name;          // empty: by position
  std::size_t position = 0;  // among the artifact's inputs, then states
  std::optional<std::filesystem::path> file;
  DType dtype = DType::F32;
  Shape shape;
  double lo = 0, hi = 1;
};

struct CaseOutput {
  std::string name;  // empty: by position
  std::size_t position = 0;
  std::filesystem::path file;
};

struct CaseFeedback {
  std::string output, input;
};

// Steps from a seed, and the outputs after the last one.
struct CaseRun {
  std::string name;
  std::uint64_t seed = 1;
  int steps = 1;
  std::vector<CaseInput> inputs;
  std::vector<std::string> bound;  // inputs that may be fixed at compile time
  std::vector<CaseFeedback> feedback;
  std::vector<CaseOutput> outputs;
};

struct CaseChoice {
  std::string name;                      // --case
  std::vector<artifact::Digest> models;  // of the artifact
};

// All runs to make. Fails with Usage if no case fits, naming those that exist; with Malformed for a
// file that is not as described.
[[nodiscard]] Result<std::vector<CaseRun>> read_cases(const std::filesystem::path& path,
                                                      const CaseChoice& choice);

}  // namespace ingot::cli
