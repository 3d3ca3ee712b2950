// ingot_replay: loads an artifact and runs it, with nothing but the loader.
//
// Small enough to be cross-compiled and started under an emulator, so that code for another
// processor can be tried before there is a device.
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "loader/ingot_loader.h"
#include "loader/replay_key.h"
#include "loader/replay_name.h"
#include "loader/replay_npy.h"

namespace {

using namespace ingot::replay;

constexpr int kExitUsage = 2;
constexpr int kExitMalformed = 3;
constexpr int kExitUnsupported = 4;
constexpr int kExitIo = 8;
constexpr uint32_t kMaxKeys = 16;
constexpr uint32_t kMaxInputs = 256;
constexpr uint32_t kMaxThreads = 256;
constexpr uint64_t kMaxFrames = 1000000000;
constexpr double kSlowestRate = 0.001;
constexpr double kFastestRate = 1000000;

struct Options {
  const char* artifact = nullptr;
  ingot_key keys[kMaxKeys] = {};
  uint32_t key_count = 0;
  bool allow_unsigned = false;
  const char* inputs[kMaxInputs] = {};
  uint32_t input_count = 0;
  uint64_t frames = 1;
  uint32_t threads = 1;
  double rate = 0;
  const char* output_dir = nullptr;
  bool self_test = false;
  const char* camera = nullptr;
  bool list = false;
};

void print_usage(std::FILE* to) {
  std::fputs(
      "usage: ingot_replay A.ingot (--pub-hex KEY | --pub FILE"
#ifdef INGOT_LOADER_ALLOW_UNSIGNED
      " | --allow-unsigned"
#endif
      ")\n"
      "         [--input NAME=FILE.npy|FILE.bin]... [--frames N] [--rate HZ] [--threads N]\n"
      "         [--output-dir DIR] [--self-test] [--camera NAME] [--list]\n"
      "example: ingot_replay road.ingot --pub dev.pub --input img=frame.npy --output-dir out\n",
      to);
}

int fail_usage(const char* message, const char* what) {
  std::fprintf(stderr, "ingot_replay: error: %s '%s'\n", message, what);
  print_usage(stderr);
  return kExitUsage;
}

int fail_file(int code, const char* path, const char* message) {
  std::fprintf(stderr, "%s: error: %s\n", path, message);
  return code;
}

int fail_status(const char* path, const ingot_error& error) {
  char line[512];
  ingot_error_format(&error, line, sizeof line);
  std::fprintf(stderr, "%s: error: %s\n", path, line);
  return ingot_status_exit_code(error.number);
}

int add_key_file(const char* path, Options* options) {
  FileBytes file;
  if (!read_file(path, &file)) {
    std::free(file.data);
    return fail_file(kExitIo, path, "cannot be read");
  }
  const bool good =
      key_from_file(file.data, file.nbytes, options->keys[options->key_count].public_key);
  std::free(file.data);
  if (!good) return fail_file(kExitMalformed, path, "holds no Ed25519 public key");
  ++options->key_count;
  return 0;
}

// Options that take a value.
int take_value(const char* name, const char* value, Options* options) {
  const auto is = [name](const char* text) { return std::strcmp(name, text) == 0; };
  char* end = nullptr;
  if (is("--pub-hex") || is("--pub")) {
    if (options->key_count == kMaxKeys) return fail_usage("too many keys at", value);
    if (is("--pub")) return add_key_file(value, options);
    if (!key_from_hex(value, options->keys[options->key_count].public_key)) {
      FileBytes file;
      const bool is_file = read_file(value, &file);
      std::free(file.data);
      if (is_file) return fail_usage("a file is given with --pub, as --pub", value);
      return fail_usage("not 64 hexadecimal digits:", value);
    }
    ++options->key_count;
  } else if (is("--input")) {
    if (options->input_count == kMaxInputs || std::strrchr(value, '=') == nullptr) {
      return fail_usage("not NAME=FILE:", value);
    }
    options->inputs[options->input_count++] = value;
  } else if (is("--frames")) {
    options->frames = std::strtoull(value, &end, 10);
    const bool number = value[0] >= '0' && value[0] <= '9' && *end == 0;
    if (!number || options->frames == 0 || options->frames > kMaxFrames) {
      return fail_usage("--frames is a whole number from 1 to 1000000000, not", value);
    }
  } else if (is("--threads")) {
    const unsigned long threads = std::strtoul(value, &end, 10);
    const bool number = value[0] >= '0' && value[0] <= '9' && *end == 0;
    if (!number || threads == 0 || threads > kMaxThreads) {
      return fail_usage("--threads is a whole number from 1 to 256, not", value);
    }
    options->threads = static_cast<uint32_t>(threads);
  } else if (is("--rate")) {
    options->rate = std::strtod(value, &end);
    const bool inside = options->rate >= kSlowestRate && options->rate <= kFastestRate;
    if (end == value || *end != 0 || !inside) {
      return fail_usage("--rate is a number from 0.001 to 1000000, not", value);
    }
  } else if (is("--output-dir")) {
    options->output_dir = value;
  } else if (is("--camera")) {
    options->camera = value;
  } else {
    return fail_usage("unknown option", name);
  }
  return 0;
}

int parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const char* text = argv[i];
    const auto is = [text](const char* name) { return std::strcmp(text, name) == 0; };
    if (is("--help")) {
      print_usage(stdout);
      std::exit(0);
    } else if (is("--self-test")) {
      options->self_test = true;
    } else if (is("--list")) {
      options->list = true;
#ifdef INGOT_LOADER_ALLOW_UNSIGNED
    } else if (is("--allow-unsigned")) {
      options->allow_unsigned = true;
#endif
    } else if (text[0] == '-') {
      if (i + 1 == argc) return fail_usage("missing value of", text);
      const int code = take_value(text, argv[++i], options);
      if (code != 0) return code;
    } else if (options->artifact == nullptr) {
      options->artifact = text;
    } else {
      return fail_usage("unexpected argument", text);
    }
  }
  if (options->artifact == nullptr) return fail_usage("missing argument", "A.ingot");
  if (options->key_count == 0 && !options->allow_unsigned) {
    return fail_usage("missing option", "--pub");
  }
  return 0;
}

// ---- one replay ---------------------------------------------------------------------------------

class Replay {
 public:
  explicit Replay(const Options& options) : options_(options) {}
  ~Replay();
  int run();

 private:
  int open();
  void list() const;
  int self_test();
  int prepare();
  int start_workers();
  int load_inputs();
  int load_input(const char* argument);
  int run_frames();
  bool is_written(uint32_t i, ingot_io_info* io, char (&stem)[kStemSize]) const;
  int check_output_names() const;
  int save_outputs() const;

  const Options& options_;
  ingot_artifact* artifact_ = nullptr;
  ingot_instance* instance_ = nullptr;
  ingot_artifact_info info_ = {};
  pthread_t threads_[kMaxThreads] = {};
  uint32_t thread_count_ = 0;
  uint8_t* memory_[kMaxInputs] = {};
  bool loaded_[kMaxInputs] = {};
};

Replay::~Replay() {
  if (instance_ != nullptr) ingot_stop_work(instance_);
  for (uint32_t i = 0; i < thread_count_; ++i) pthread_join(threads_[i], nullptr);
  ingot_instance_destroy(instance_);
  ingot_close(artifact_);
  for (uint8_t* memory : memory_) std::free(memory);
}

int Replay::open() {
  const int fd = ::open(options_.artifact, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_file(kExitIo, options_.artifact, "cannot be opened");
  ingot_policy policy = {};
  policy.keys = options_.keys;
  policy.key_count = options_.key_count;
  policy.allow_unsigned = options_.allow_unsigned ? 1 : 0;
  policy.camera = options_.camera;
  policy.run_without_self_test = 1;
  ingot_error error;
  const ingot_status status = ingot_open_fd(fd, &policy, nullptr, &artifact_, &error);
  ::close(fd);
  if (status != 0) return fail_status(options_.artifact, error);
  ingot_artifact_describe(artifact_, &info_);
  return 0;
}

void Replay::list() const {
  static const char* const directions[] = {"?", "input", "output", "state"};
  std::printf("id ");
  for (const uint8_t byte : info_.id) std::printf("%02x", byte);
  std::printf("\nproduct %s\n", info_.product);
  for (uint32_t i = 0; i < info_.variant_count; ++i) {
    ingot_variant_info v;
    ingot_variant_describe(artifact_, i, &v);
    std::printf("variant %s%s%s\n", v.name, i == info_.variant ? " chosen" : "",
                v.fits != 0 ? " does not fit" : "");
  }
  for (uint32_t i = 0; i < info_.io_count; ++i) {
    ingot_io_info io;
    ingot_io_describe(artifact_, i, &io);
    std::printf("%s %s dtype %u shape", directions[io.direction & 3], io.name, io.dtype);
    for (uint32_t d = 0; d < io.rank; ++d) std::printf("%s%u", d > 0 ? "x" : " ", io.shape[d]);
    std::printf(" nbytes %llu%s\n", static_cast<unsigned long long>(io.nbytes),
                io.by_pointer != 0 ? " by pointer" : "");
  }
  for (uint32_t i = 0; i < info_.camera_count; ++i) {
    ingot_camera_info c;
    ingot_camera_describe(artifact_, i, &c);
    std::printf("camera %s %ux%u stride %u\n", c.name, c.layout.width, c.layout.height,
                c.layout.stride);
  }
}

int Replay::self_test() {
  ingot_slot_report reports[kMaxInputs];
  uint32_t count = 0;
  ingot_error error;
  const ingot_status status = ingot_self_test(artifact_, reports, kMaxInputs, &count, &error);
  for (uint32_t i = 0; i < count; ++i) {
    ingot_io_info io;
    ingot_io_describe(artifact_, reports[i].slot, &io);
    std::printf("self-test %s: %s, max abs %.9g, max rel %.9g, worst index %llu\n", io.name,
                reports[i].failed != 0 ? "outside tolerance" : "ok", reports[i].max_abs_error,
                reports[i].max_rel_error, static_cast<unsigned long long>(reports[i].worst_index));
  }
  return status == 0 ? 0 : fail_status(options_.artifact, error);
}

struct Worker {
  ingot_instance* instance;
  uint32_t number;
};

void* work(void* argument) {
  const Worker worker = *static_cast<Worker*>(argument);
  std::free(argument);
  ingot_work(worker.instance, worker.number);
  return nullptr;
}

int Replay::start_workers() {
  for (uint32_t i = 1; i < options_.threads; ++i) {
    auto* worker = static_cast<Worker*>(std::malloc(sizeof(Worker)));
    if (worker == nullptr) return fail_file(kExitIo, options_.artifact, "out of memory");
    *worker = {instance_, i};
    if (pthread_create(&threads_[thread_count_], nullptr, work, worker) != 0) {
      std::free(worker);
      return fail_file(kExitIo, options_.artifact, "the system gives no more threads");
    }
    ++thread_count_;
  }
  while (ingot_workers_inside(instance_) < thread_count_) ::usleep(100);
  return 0;
}

int Replay::prepare() {
  ingot_variant_info variant;
  ingot_variant_describe(artifact_, info_.variant, &variant);
  if (options_.threads > variant.threads) {
    return fail_usage("--threads: more than this artifact was made for:", options_.artifact);
  }
  ingot_error error;
  ingot_instance_options run = {};
  run.workers = options_.threads;
  if (ingot_instance_create(artifact_, &run, &instance_, &error) != 0) {
    return fail_status(options_.artifact, error);
  }
  for (uint32_t i = 0; i < info_.io_count; ++i) {
    ingot_io_info io;
    ingot_io_describe(artifact_, i, &io);
    const size_t alignment = io.alignment < 64 ? 64 : io.alignment;
    const size_t nbytes = (static_cast<size_t>(io.nbytes) + alignment) & ~(alignment - 1);
    memory_[i] = static_cast<uint8_t*>(std::aligned_alloc(alignment, nbytes));
    if (memory_[i] == nullptr) return fail_file(kExitIo, options_.artifact, "out of memory");
    std::memset(memory_[i], 0, nbytes);
    if (io.direction == INGOT_SLOT_STATE) continue;  // the instance has the state itself
    ingot_binding binding;
    ingot_binding_expected(artifact_, i, &binding);
    binding.data = memory_[i];
    ingot_camera_info camera;
    if (io.camera != INGOT_NONE) {
      ingot_camera_describe(artifact_, io.camera, &camera);
      binding.layout = &camera.layout;
    }
    if (ingot_bind(instance_, &binding, 1, &error) != 0) {
      return fail_status(options_.artifact, error);
    }
  }
  return 0;
}

// NAME=FILE, split at the last '='. A state may be given too: its value before the first frame.
int Replay::load_input(const char* argument) {
  char name[256];
  const char* path = std::strrchr(argument, '=') + 1;
  const size_t length = static_cast<size_t>(path - argument) - 1;
  if (length >= sizeof name) return fail_usage("name too long in", argument);
  std::memcpy(name, argument, length);
  name[length] = 0;
  const uint32_t slot = ingot_find_io(artifact_, name);
  ingot_io_info io;
  if (slot == INGOT_NONE || ingot_io_describe(artifact_, slot, &io) != 0 ||
      io.direction == INGOT_SLOT_OUTPUT) {
    return fail_usage("no such input:", name);
  }
  FileBytes file;
  if (!read_file(path, &file)) {
    std::free(file.data);
    return fail_file(kExitIo, path, "cannot be read");
  }
  int code = 0;
  const size_t path_length = std::strlen(path);
  if (path_length > 4 && std::strcmp(path + path_length - 4, ".npy") == 0) {
    const NpyResult result = load_npy(file, io, memory_[slot]);
    static const char* const texts[] = {"", "is no .npy file", "has another element type",
                                        "has another shape", "has another length"};
    if (result != NpyResult::Done) {
      code = fail_file(kExitMalformed, path, texts[static_cast<int>(result)]);
    }
  } else if (file.nbytes == io.nbytes) {
    std::memcpy(memory_[slot], file.data, file.nbytes);
  } else {
    code = fail_file(kExitMalformed, path, "has another length than the input");
  }
  std::free(file.data);
  loaded_[slot] = true;
  ingot_error error = {};
  if (code == 0 && io.direction == INGOT_SLOT_STATE) {
    error.number = ingot_set_state(instance_, slot, memory_[slot], io.nbytes);
    if (error.number != 0) code = fail_status(options_.artifact, error);
  }
  return code;
}

int Replay::load_inputs() {
  for (uint32_t i = 0; i < options_.input_count; ++i) {
    const int code = load_input(options_.inputs[i]);
    if (code != 0) return code;
  }
  for (uint32_t i = 0; i < info_.io_count; ++i) {
    ingot_io_info io;
    ingot_io_describe(artifact_, i, &io);
    if (io.direction == INGOT_SLOT_INPUT && !loaded_[i]) {
      return fail_usage("missing --input for", io.name);
    }
  }
  return 0;
}

void wait_until(timespec* deadline, double period) {
  const auto nanoseconds = static_cast<long>(period * 1e9);
  deadline->tv_sec += nanoseconds / 1000000000L;
  deadline->tv_nsec += nanoseconds % 1000000000L;
  if (deadline->tv_nsec >= 1000000000L) {
    deadline->tv_nsec -= 1000000000L;
    ++deadline->tv_sec;
  }
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, deadline, nullptr);
}

int Replay::run_frames() {
  auto* times = static_cast<uint64_t*>(std::calloc(options_.frames, sizeof(uint64_t)));
  if (times == nullptr) return fail_file(kExitIo, options_.artifact, "out of memory");
  timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  int code = 0;
  for (uint64_t i = 0; i < options_.frames && code == 0; ++i) {
    ingot_frame frame;
    ingot_run(instance_, &frame);
    times[i] = frame.nanoseconds;
    if (frame.status != 0) {
      std::fprintf(stderr, "%s: error: frame %llu: %s (%u): %s\n", options_.artifact,
                   static_cast<unsigned long long>(i), ingot_status_name(frame.status),
                   frame.status, ingot_status_text(frame.status));
      code = ingot_status_exit_code(frame.status);
    }
    if (options_.rate > 0) wait_until(&deadline, 1.0 / options_.rate);
  }
  if (code == 0) {
    std::sort(times, times + options_.frames);
    const auto at = [&](double share) {
      const auto last = static_cast<double>(options_.frames - 1);
      return static_cast<double>(times[static_cast<size_t>(share * last)]) * 1e-6;
    };
    std::printf("frames %llu, min %.4f ms, median %.4f, p99 %.4f, max %.4f\n",
                static_cast<unsigned long long>(options_.frames), at(0), at(0.5), at(0.99), at(1));
  }
  std::free(times);
  return code;
}

// Whether slot i is written to a file, and under which stem.
bool Replay::is_written(uint32_t i, ingot_io_info* io, char (&stem)[kStemSize]) const {
  ingot_io_describe(artifact_, i, io);
  if (io->direction == INGOT_SLOT_INPUT) return false;
  file_stem(io->name, stem);
  return true;
}

// Two outputs or states must not go to one file.
int Replay::check_output_names() const {
  ingot_io_info a, b;
  char stem[kStemSize], other[kStemSize];
  for (uint32_t i = 0; i < info_.io_count; ++i) {
    if (!is_written(i, &a, stem)) continue;
    for (uint32_t j = i + 1; j < info_.io_count; ++j) {
      if (!is_written(j, &b, other) || std::strcmp(stem, other) != 0) continue;
      std::fprintf(stderr, "%s: error: '%s' and '%s' would both be written to '%s'\n",
                   options_.artifact, a.name, b.name, stem);
      return kExitUnsupported;
    }
  }
  return 0;
}

// Each output, and each state as the next frame would read it.
int Replay::save_outputs() const {
  for (uint32_t i = 0; i < info_.io_count; ++i) {
    ingot_io_info io;
    char stem[kStemSize];
    if (!is_written(i, &io, stem)) continue;
    const auto* data = io.direction == INGOT_SLOT_STATE
                           ? static_cast<const uint8_t*>(ingot_slot_data(instance_, i))
                           : memory_[i];
    char path[1024];
    const int length = std::snprintf(path, sizeof path, "%s/%s.npy", options_.output_dir, stem);
    if (length >= static_cast<int>(sizeof path) || !save_npy(path, io, data)) {
      return fail_file(kExitIo, path, "cannot be written");
    }
  }
  return 0;
}

int Replay::run() {
  int code = open();
  if (code == 0 && options_.list) list();
  if (code == 0 && options_.self_test) code = self_test();
  const bool run_asked = options_.input_count > 0 || options_.output_dir != nullptr;
  if (code != 0 || (!run_asked && (options_.list || options_.self_test))) return code;
  if (options_.output_dir != nullptr) code = check_output_names();
  if (code == 0) code = prepare();
  if (code == 0) code = load_inputs();
  if (code == 0) code = start_workers();
  if (code == 0) code = run_frames();
  if (code == 0 && options_.output_dir != nullptr) code = save_outputs();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  static Options options;
  const int code = parse(argc, argv, &options);
  return code != 0 ? code : Replay(options).run();
}
