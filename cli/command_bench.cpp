// ingot bench A.ingot: how long a frame takes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "cli/loaded_artifact.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/tensor_file.h"
#include "codegen/ceilings.h"
#include "compiler/target/target.h"

namespace ingot::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUpRuns = 5;
// Periods that a clock can wait for.
constexpr double kSlowestRate = 0.001, kFastestRate = 1'000'000;

struct BenchOptions {
  std::string artifact;
  std::uint32_t threads = 1;
  int runs = 100;
  std::optional<double> rate;
  std::vector<std::string> inputs;
  std::uint64_t seed = 1;
  std::string camera;
  TrustOptions trust;
  bool per_call = false;
  bool serve = false;
  bool json = false;
};

double to_ms(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// ---------------------------------------------------------------------------------------------
// Whole frames

struct Latencies {
  std::vector<double> sorted_ms;
  std::size_t missed = 0;

  // The smallest time that at least this share of the runs did not exceed.
  double quantile(double share) const {
    const auto count = static_cast<double>(sorted_ms.size());
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(share * count)));
    return sorted_ms[std::min(rank, sorted_ms.size()) - 1];
  }
};

Result<double> timed_run(Session& session) {
  const Clock::time_point start = Clock::now();
  INGOT_RETURN_IF_ERROR(session.run());
  return to_ms(Clock::now() - start);
}

Result<Latencies> back_to_back(Session& session, int runs) {
  Latencies latencies;
  for (int i = 0; i < runs; ++i) {
    INGOT_ASSIGN(const double ms, timed_run(session));
    latencies.sorted_ms.push_back(ms);
  }
  return latencies;
}

// Frames come at fixed times, whether or not the one before is done; one that is not finished when
// the next comes has missed its deadline.
Result<Latencies> at_rate(Session& session, int runs, double rate) {
  const auto period =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1.0 / rate));
  Latencies latencies;
  const Clock::time_point first = Clock::now() + period;
  for (int i = 0; i < runs; ++i) {
    const Clock::time_point due = first + i * period;
    std::this_thread::sleep_until(due);
    INGOT_RETURN_IF_ERROR(session.run());
    const Clock::duration spent = Clock::now() - due;
    latencies.sorted_ms.push_back(to_ms(spent));
    if (spent > period) ++latencies.missed;
  }
  return latencies;
}

// ---------------------------------------------------------------------------------------------
// Single calls

struct CallTimes {
  std::vector<std::vector<std::uint64_t>> nanoseconds;  // by call, one for each run
};

void record_call(void* user, std::uint32_t call, std::uint64_t nanoseconds) {
  auto& times = static_cast<CallTimes*>(user)->nanoseconds;
  if (call < times.size()) times[call].push_back(nanoseconds);
}

struct CallReport {
  std::string name;
  double ms = 0;            // median
  std::uint64_t bytes = 0;  // read and written
  double gflops = 0, gbytes = 0;
  // Of what this machine reaches at best: the larger share of arithmetic and memory traffic.
  double share = 0;
};

// What so many threads reach at best at the same time with the code of a target, measured when
// first asked for.
class Ceilings {
 public:
  Ceilings(const LoadedArtifact& artifact, std::uint32_t threads)
      : threads_(threads),
        fma_(together([goal = target(artifact)] { return measure_fma_ceiling(goal); })) {}

  double gflops() const { return fma_; }
  // Of reading this many bytes again and again.
  double gbytes(std::uint64_t bytes) { return bytes > 0 ? read_bandwidth(bytes) : 0; }

  double share(const CallReport& call) {
    const double arithmetic = fma_ > 0 ? call.gflops / fma_ : 0;
    const double bandwidth = gbytes(std::bit_ceil(call.bytes));  // up to a factor of two
    return std::max(arithmetic, bandwidth > 0 ? call.gbytes / bandwidth : 0);
  }

 private:
  // Sum over all threads.
  template <typename Measure>
  double together(Measure measure) const {
    std::vector<double> results(threads_);
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < results.size(); ++i) {
        others.emplace_back([&, i] { results[i] = measure(); });
      }
      results[0] = measure();
    }
    return std::accumulate(results.begin(), results.end(), 0.0);
  }

  // The name of a variant ends in that of its target; a device's own name is none of the table.
  static Target target(const LoadedArtifact& artifact) {
    ingot_variant_info variant{};
    ingot_variant_describe(artifact.get(), artifact.description().variant, &variant);
    const std::string name = variant.name != nullptr ? variant.name : "";
    Result<Target> named = find_target(name.substr(name.rfind('/') + 1));
    if (!named) named = find_target("host");
    return named ? *named : baseline_target();
  }

  // Each thread reads an equal part.
  double read_bandwidth(std::uint64_t bytes) {
    constexpr std::uint64_t kLeast = 4096;
    const std::uint64_t footprint = std::max(bytes, kLeast);
    const auto [place, fresh] = bandwidths_.emplace(footprint, 0.0);
    if (fresh) {
      const std::uint64_t part = std::max(footprint / threads_, kLeast);
      place->second = together([part] { return measure_read_bandwidth(part); });
    }
    return place->second;
  }

  std::uint32_t threads_;
  double fma_ = 0;
  std::map<std::uint64_t, double> bandwidths_;
};

CallCost cost_of(const LoadedArtifact& artifact, std::uint32_t call) {
  ingot_call_info info{};
  ingot_call_describe(artifact.get(), call, &info);
  CallCost cost;
  if (call < artifact.costs().size()) cost = artifact.costs()[call];
  if (cost.name.empty()) cost.name = info.program_name != nullptr ? info.program_name : "copy";
  if (cost.read_bytes + cost.written_bytes == 0) {
    cost.read_bytes = info.read_nbytes;
    cost.written_bytes = info.written_nbytes;
  }
  return cost;
}

CallReport report_call(const CallCost& cost, std::vector<std::uint64_t> samples,
                       Ceilings& ceilings) {
  std::ranges::sort(samples);
  CallReport report;
  report.name = cost.name;
  if (samples.empty()) return report;
  const auto ns = static_cast<double>(std::max<std::uint64_t>(samples[samples.size() / 2], 1));
  report.bytes = cost.read_bytes + cost.written_bytes;
  report.ms = ns / 1e6;
  report.gflops = static_cast<double>(cost.operations) / ns;
  report.gbytes = static_cast<double>(report.bytes) / ns;
  report.share = ceilings.share(report);
  return report;
}

Result<std::vector<CallReport>> time_calls(const LoadedArtifact& artifact, Session& session,
                                           int runs, Ceilings& ceilings) {
  CallTimes times;
  times.nanoseconds.resize(artifact.description().call_count);
  ingot_set_call_hook(session.get(), record_call, &times);
  for (int i = 0; i < runs; ++i) INGOT_RETURN_IF_ERROR(session.run());
  ingot_set_call_hook(session.get(), nullptr, nullptr);
  std::vector<CallReport> reports;
  for (std::uint32_t call = 0; call < times.nanoseconds.size(); ++call) {
    reports.push_back(report_call(cost_of(artifact, call), times.nanoseconds[call], ceilings));
  }
  return reports;
}

// ---------------------------------------------------------------------------------------------
// Reports

Json latencies_json(const Latencies& latencies, const BenchOptions& options) {
  Json json;
  json["min_ms"] = latencies.sorted_ms.front();
  json["median_ms"] = latencies.quantile(0.5);
  json["p90_ms"] = latencies.quantile(0.9);
  json["p99_ms"] = latencies.quantile(0.99);
  json["p999_ms"] = latencies.quantile(0.999);
  json["max_ms"] = latencies.sorted_ms.back();
  json["runs"] = latencies.sorted_ms.size();
  json["threads"] = options.threads;
  json["missed"] = latencies.missed;
  return json;
}

std::string latencies_text(const Latencies& latencies, const BenchOptions& options) {
  std::string text = fmt::format(
      "min {:.4f} ms, median {:.4f}, p90 {:.4f}, p99 {:.4f}, p99.9 {:.4f}, max {:.4f} ({} runs, {} "
      "{})\n",
      latencies.sorted_ms.front(), latencies.quantile(0.5), latencies.quantile(0.9),
      latencies.quantile(0.99), latencies.quantile(0.999), latencies.sorted_ms.back(),
      latencies.sorted_ms.size(), options.threads, options.threads == 1 ? "thread" : "threads");
  if (options.rate) {
    text += fmt::format("{} of {} deadlines missed at {} Hz\n", latencies.missed,
                        latencies.sorted_ms.size(), *options.rate);
  }
  return text;
}

Json call_json(const CallReport& call) {
  Json json;
  json["name"] = call.name;
  json["ms"] = call.ms;
  json["gflops"] = call.gflops;
  json["gbytes_per_s"] = call.gbytes;
  json["share"] = call.share;
  return json;
}

std::string call_line(std::size_t index, const CallReport& call) {
  return fmt::format("{:>5} {:<40} {:>10.4f} ms {:>9.2f} GFLOP/s {:>9.2f} GB/s {:>6.1f} %\n", index,
                     printable(call.name), call.ms, call.gflops, call.gbytes, 100 * call.share);
}

Result<void> measure(const LoadedArtifact& artifact, const BenchOptions& options,
                     Session& session) {
  INGOT_ASSIGN(Latencies latencies, options.rate ? at_rate(session, options.runs, *options.rate)
                                                 : back_to_back(session, options.runs));
  std::ranges::sort(latencies.sorted_ms);
  Json json = latencies_json(latencies, options);
  std::string text = latencies_text(latencies, options);
  json["calls"] = Json::array();
  if (options.per_call) {
    Ceilings ceilings(artifact, options.threads);
    INGOT_ASSIGN(const std::vector<CallReport> calls,
                 time_calls(artifact, session, options.runs, ceilings));
    std::uint64_t bytes = 0;
    for (const CallReport& call : calls) bytes += call.bytes;
    json["bytes"] = bytes;
    json["ceiling_gflops"] = ceilings.gflops();
    json["ceiling_gbytes_per_s"] = ceilings.gbytes(bytes);
    text +=
        fmt::format("ceilings on {} {}: {:.1f} GFLOP/s, {:.2f} GB/s for {:.3f} MB\n",
                    options.threads, options.threads == 1 ? "thread" : "threads", ceilings.gflops(),
                    ceilings.gbytes(bytes), static_cast<double>(bytes) / 1e6);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      json["calls"].push_back(call_json(calls[i]));
      text += call_line(i, calls[i]);
    }
  }
  return print_result(options.json ? to_text(json) : text);
}

// ---------------------------------------------------------------------------------------------
// --serve

Result<void> serve_line(Session& session, const std::string& line) {
  int runs = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), runs);
  if (error != std::errc{} || end != line.data() + line.size() || runs < 0) {
    return usage_error(fmt::format("--serve: '{}' is not a number of runs", printable(line)));
  }
  Json ms = Json::array();
  for (int i = 0; i < runs; ++i) {
    INGOT_ASSIGN(const double one, timed_run(session));
    ms.push_back(one);
  }
  return print_result(to_compact_text(Json{{"ms", std::move(ms)}}) + "\n");
}

Result<void> serve(Session& session) {
  INGOT_RETURN_IF_ERROR(print_result("{\"ready\":true}\n"));
  for (std::string line; std::getline(std::cin, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) INGOT_RETURN_IF_ERROR(serve_line(session, line));
  }
  return {};
}

// ---------------------------------------------------------------------------------------------
// The command

Result<void> set_inputs(const LoadedArtifact& artifact, const BenchOptions& options,
                        Session& session) {
  INGOT_RETURN_IF_ERROR(session.fill_inputs(options.seed));
  INGOT_ASSIGN(const auto given, name_values(options.inputs, "--input"));
  for (const auto& [name, file] : given) {
    const SlotView* slot = artifact.find_slot(name);
    if (slot == nullptr || slot->direction == INGOT_SLOT_OUTPUT) {
      return usage_error(fmt::format("--input: the artifact has no input '{}'", name));
    }
    INGOT_ASSIGN(const Tensor tensor, read_tensor_file(file, slot->dtype, slot->shape));
    INGOT_RETURN_IF_ERROR(session.set(*slot, tensor.bytes));
  }
  return {};
}

Result<ExitCode> run_bench(const BenchOptions& options, std::vector<Diagnostic>& warnings) {
  INGOT_ASSIGN(const LoadedArtifact artifact,
               LoadedArtifact::open(options.artifact, options.trust, options.camera));
  INGOT_ASSIGN(Session session, Session::create(artifact, 0, options.threads));
  INGOT_RETURN_IF_ERROR(set_inputs(artifact, options, session));
  INGOT_RETURN_IF_ERROR(session.run(&warnings));
  for (int i = 1; i < kWarmUpRuns; ++i) INGOT_RETURN_IF_ERROR(session.run());
  INGOT_RETURN_IF_ERROR(options.serve ? serve(session) : measure(artifact, options, session));
  return ExitCode::Done;
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
  CLI::App& command = add_command(app, "bench", "Measure how long a frame takes",
                                  "ingot bench model.ingot --runs 1000 --rate 20 --pub team.pub");
  auto options = std::make_shared<BenchOptions>();
  command.add_option("ARTIFACT", options->artifact, "Artifact to measure")->required();
  command.add_option("--threads", options->threads, "Threads; the artifact says how many at most")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command.add_option("--runs", options->runs, "Frames to measure, after a warm-up")
      ->check(whole_number(1, 1'000'000'000))
      ->capture_default_str();
  command.add_option("--rate", options->rate, "Frames per second; default: back to back")
      ->check(real_number(kSlowestRate, kFastestRate));
  add_repeatable(command, "--input", options->inputs,
                 "NAME=FILE of an input; the others are seeded random; repeatable");
  command.add_option("--seed", options->seed, "Seed of random inputs")
      ->check(check_counter)
      ->capture_default_str();
  command.add_option("--camera", options->camera, "Use the variant for this camera layout");
  add_trust_options(command, options->trust);
  CLI::Option* per_call =
      command.add_flag("--per-call", options->per_call, "Also time each call of the list");
  CLI::Option* json = command.add_flag("--json", options->json, "Print JSON");
  command
      .add_flag("--serve", options->serve,
                "Print {\"ready\":true}; then for each line N of standard input run N frames and "
                "print {\"ms\":[...]}")
      ->excludes(per_call)
      ->excludes(json);
  set_action(command, invocation, options, run_bench);
}

}  // namespace ingot::cli
