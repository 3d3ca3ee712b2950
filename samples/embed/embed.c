/* Smallest useful host of an artifact: replays synthetic camera frames at 20 Hz.
 *
 *   ingot_embed ARTIFACT PUBLIC_KEY [FRAMES]
 *
 * PUBLIC_KEY is a file of 32 raw bytes. Inputs with a camera get a moving NV12 picture, 3x3
 * matrices get the identity, everything else zeros. All memory is bound by pointer once; only the
 * camera frame is bound anew for every frame, with its sequence number, as a capture ring would do.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/ingot_loader.h"

enum { MAX_SLOTS = 256, RING = 4, PERIOD_NS = 50000000 };

typedef struct {
  ingot_io_info io;
  ingot_camera_info camera; /* if io.camera is not INGOT_NONE */
  unsigned char* memory[RING];
} slot;

static int report(const char* what, const ingot_error* error) {
  char line[512];
  ingot_error_format(error, line, sizeof line);
  fprintf(stderr, "%s: %s\n", what, line);
  return ingot_status_exit_code(error->number);
}

/* Exactly 32 bytes: the first of a longer file would be a key that signed nothing. */
static int read_key(const char* path, ingot_key* key) {
  static const char pem[] = "-----BEGIN PUBLIC KEY-----";
  unsigned char bytes[sizeof key->public_key + 1];
  FILE* file = fopen(path, "rb");
  size_t got;
  if (file == NULL) {
    fprintf(stderr, "%s: cannot be opened\n", path);
    return -1;
  }
  got = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  if (got == sizeof key->public_key) {
    memcpy(key->public_key, bytes, sizeof key->public_key);
    return 0;
  }
  fprintf(stderr, "%s: not a file of 32 bytes\n", path);
  if (got == sizeof bytes && memcmp(bytes, pem, sizeof pem - 1) == 0) {
    fprintf(stderr,
            "  hint: this is a PEM file; its key alone:"
            " sed '/^-----/d' %s | base64 -d | tail -c 32\n",
            path);
  }
  return -1;
}

static unsigned char* allocate(const ingot_io_info* io) {
  size_t alignment = io->alignment < 64 ? 64 : io->alignment;
  size_t nbytes = ((size_t)io->nbytes + alignment) / alignment * alignment;
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, nbytes) != 0) return NULL;
  memset(memory, 0, nbytes);
  return memory;
}

/* A diagonal ramp that moves with the frame number, grey colour. */
static void draw_nv12(const ingot_layout* layout, unsigned frame, unsigned char* to) {
  uint32_t x, y;
  for (y = 0; y < layout->height; ++y) {
    for (x = 0; x < layout->width; ++x) {
      to[(size_t)y * layout->stride + x] = (unsigned char)(x + y + frame);
    }
  }
  for (y = 0; y < layout->height / 2; ++y) {
    memset(to + layout->uv_offset + (size_t)y * layout->stride, 128, layout->width);
  }
}

static int is_matrix(const ingot_io_info* io) {
  uint32_t i;
  uint64_t elements = 1;
  for (i = 0; i < io->rank; ++i) elements *= io->shape[i];
  return io->dtype == INGOT_ELEMENT_F32 && elements == 9;
}

static int bind_slot(ingot_instance* instance, const ingot_artifact* artifact, const slot* s,
                     unsigned frame) {
  ingot_binding binding;
  ingot_error error;
  ingot_binding_expected(artifact, s->io.index, &binding);
  binding.data = s->memory[0];
  if (s->io.camera != INGOT_NONE) {
    binding.data = s->memory[frame % RING];
    binding.layout = &s->camera.layout;
    binding.has_sequence = 1;
    binding.sequence = frame + 1;
  }
  if (ingot_bind(instance, &binding, 1, &error) != 0) return report(s->io.name, &error);
  return 0;
}

static int prepare_slot(ingot_instance* instance, const ingot_artifact* artifact, uint32_t index,
                        slot* s) {
  static const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  int copies, i;
  ingot_io_describe(artifact, index, &s->io);
  if (s->io.direction == INGOT_SLOT_STATE) return 0; /* the instance keeps those */
  if (s->io.camera != INGOT_NONE) ingot_camera_describe(artifact, s->io.camera, &s->camera);
  copies = s->io.camera != INGOT_NONE ? RING : 1;
  for (i = 0; i < copies; ++i) {
    s->memory[i] = allocate(&s->io);
    if (s->memory[i] == NULL) return 8;
  }
  if (s->io.direction == INGOT_SLOT_INPUT && is_matrix(&s->io)) {
    memcpy(s->memory[0], identity, sizeof identity);
  }
  return bind_slot(instance, artifact, s, 0);
}

static int by_value(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a;
  const uint64_t y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static void wait_for(struct timespec* deadline) {
  deadline->tv_nsec += PERIOD_NS;
  if (deadline->tv_nsec >= 1000000000L) {
    deadline->tv_nsec -= 1000000000L;
    ++deadline->tv_sec;
  }
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, deadline, NULL);
}

static int run_frames(ingot_instance* instance, const ingot_artifact* artifact, slot* slots,
                      uint32_t slot_count, unsigned frames, uint64_t* times) {
  struct timespec deadline;
  unsigned n;
  uint32_t i;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  for (n = 0; n < frames; ++n) {
    ingot_frame frame;
    for (i = 0; i < slot_count; ++i) {
      slot* s = &slots[i];
      int code;
      if (s->io.camera == INGOT_NONE || s->io.direction != INGOT_SLOT_INPUT) continue;
      draw_nv12(&s->camera.layout, n, s->memory[n % RING]);
      code = bind_slot(instance, artifact, s, n);
      if (code != 0) return code;
    }
    ingot_run(instance, &frame);
    times[n] = frame.nanoseconds;
    /* Never use outputs of a frame that is not valid. */
    if (!frame.valid) {
      fprintf(stderr, "frame %u: %s\n", n, ingot_status_text(frame.status));
      return ingot_status_exit_code(frame.status);
    }
    wait_for(&deadline);
  }
  return 0;
}

static void print_results(const slot* slots, uint32_t slot_count, uint64_t* times,
                          unsigned frames) {
  static const double shares[] = {0, 0.5, 0.9, 0.99, 1};
  static const char* const names[] = {"min", "median", "p90", "p99", "max"};
  uint32_t i;
  qsort(times, frames, sizeof *times, by_value);
  for (i = 0; i < 5; ++i) {
    const double at = shares[i] * (double)(frames - 1);
    printf("%s %.4f ms\n", names[i], (double)times[(size_t)at] * 1e-6);
  }
  for (i = 0; i < slot_count; ++i) {
    const slot* s = &slots[i];
    uint64_t n;
    if (s->io.direction != INGOT_SLOT_OUTPUT) continue;
    printf("%s:", s->io.name);
    for (n = 0; n < s->io.nbytes && n < 32; n += ingot_element_size(s->io.dtype)) {
      if (s->io.dtype == INGOT_ELEMENT_F32) {
        float value;
        memcpy(&value, s->memory[0] + n, sizeof value);
        printf(" %g", (double)value);
      } else {
        printf(" %02x", s->memory[0][n]);
      }
    }
    printf("\n");
  }
}

int main(int argc, char** argv) {
  static slot slots[MAX_SLOTS];
  ingot_policy policy = {0};
  static ingot_key key; /* zeros: every purpose, every counter */
  ingot_artifact* artifact = NULL;
  ingot_instance* instance = NULL;
  ingot_artifact_info info;
  ingot_error error;
  uint64_t* times;
  uint32_t i;
  unsigned frames = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 100;
  int fd, code = 0;

  if (argc < 3 || frames == 0) {
    fprintf(stderr, "usage: %s ARTIFACT PUBLIC_KEY [FRAMES]\n", argv[0]);
    return 2;
  }
  if (read_key(argv[2], &key) != 0) return 8;
  fd = open(argv[1], O_RDONLY);
  if (fd < 0) {
    fprintf(stderr, "%s: cannot be opened\n", argv[1]);
    return 8;
  }
  policy.keys = &key;
  policy.key_count = 1;
  if (ingot_open_fd(fd, &policy, NULL, &artifact, &error) != 0) {
    close(fd);
    return report(argv[1], &error);
  }
  close(fd);
  /* A product would not drive without this; neither does the sample. */
  if (ingot_self_test(artifact, NULL, 0, NULL, &error) != 0 ||
      ingot_instance_create(artifact, NULL, &instance, &error) != 0) {
    code = report(argv[1], &error);
    ingot_close(artifact);
    return code;
  }
  ingot_artifact_describe(artifact, &info);
  times = calloc(frames, sizeof *times);
  if (times == NULL) code = 8;
  for (i = 0; i < info.io_count && code == 0; ++i) {
    code = prepare_slot(instance, artifact, i, &slots[i]);
  }
  if (code == 0) code = run_frames(instance, artifact, slots, info.io_count, frames, times);
  if (code == 0) print_results(slots, info.io_count, times, frames);
  ingot_instance_destroy(instance);
  ingot_close(artifact);
  for (i = 0; i < info.io_count; ++i) {
    int n;
    for (n = 0; n < RING; ++n) free(slots[i].memory[n]);
  }
  free(times);
  return code;
}
