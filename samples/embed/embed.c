/* Smallest useful host of an artifact: a camera thread fills a ring of buffers, the main thread
 * runs a frame for each of them and says where the time went.
 *
 *   ingot_embed ARTIFACT PUBLIC_KEY [--frames N] [--rate HZ] [--back-to-back] [--camera NAME]
 *
 * PUBLIC_KEY is a file of 32 raw bytes. Camera inputs get a moving NV12 picture, 3x3 matrices get
 * the identity, everything else zeros. Nothing is copied by hand: outputs and small inputs are
 * bound once, camera buffers for every frame, with number and time of capture. The loader's binding
 * cache knows each buffer of the ring after its first use.
 *
 * --rate (default 20): frames a second. --back-to-back: the next frame as soon as one is done.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/ingot_loader.h"

enum { MAX_SLOTS = 256, RING = 4 };

/* What the time of a frame consists of. */
enum { BIND, COPY_IN, WARP, MODEL, READBACK, WHOLE, PARTS };
static const char* const part_names[PARTS] = {"bind",  "copy in",  "warp",
                                              "model", "readback", "frame"};

typedef struct {
  const char* artifact;
  const char* key;
  const char* camera; /* NULL: any */
  unsigned frames;
  uint64_t period_ns; /* 0: back to back */
} options;

typedef struct {
  ingot_io_info io;
  ingot_camera_info camera;    /* if io.camera is not INGOT_NONE */
  unsigned char* memory[RING]; /* only camera inputs have more than the first */
} slot;

/* Between the camera thread and the main thread; everything under the lock. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t newest; /* number of the frame captured last, from 1; it lies in buffer newest % RING */
  uint64_t captured_ns[RING];
  uint64_t in_use; /* number of the frame that the main thread works on; 0: none */
  uint64_t taken;  /* number of the frame that was taken last */
  int stop;
} ring;

typedef struct {
  ingot_artifact* artifact;
  ingot_instance* instance;
  slot slots[MAX_SLOTS];
  uint32_t slot_count;
  unsigned char* is_warp; /* for each call of the list: 1 if it reads a camera frame */
  ring ring;
  uint64_t period_ns;
  uint64_t first_call_ns; /* of the frame that runs: when its first call began, 0 before that */
  uint64_t last_call_ns;  /* when its latest call ended */
  uint64_t spent_ns[PARTS];
} host;

typedef struct {
  uint64_t* parts[PARTS]; /* [frames] each, nanoseconds */
  unsigned missed;        /* frames that were not done when the next one was due */
  uint64_t skipped;       /* captured, but the main thread was late and took a newer one */
  unsigned old;           /* older than the artifact allows when they began */
} measurement;

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t ns) {
  struct timespec time;
  time.tv_sec = (time_t)(ns / 1000000000u);
  time.tv_nsec = (long)(ns % 1000000000u);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

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

/* ---------------------------------------------------------------- memory of the slots */

static unsigned char* allocate(const ingot_io_info* io) {
  size_t alignment = io->alignment < 64 ? 64 : io->alignment;
  size_t nbytes = ((size_t)io->nbytes + alignment) / alignment * alignment;
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, nbytes) != 0) return NULL;
  memset(memory, 0, nbytes);
  return memory;
}

static int is_camera_input(const slot* s) {
  return s->io.direction == INGOT_SLOT_INPUT && s->io.camera != INGOT_NONE;
}

/* How many 3x3 matrices a slot holds: [3,3], or [frames,3,3]. */
static uint64_t matrices_of(const ingot_io_info* io) {
  const uint32_t rank = io->rank;
  if (io->dtype != INGOT_ELEMENT_F32 || rank < 2 || rank > 3) return 0;
  if (io->shape[rank - 2] != 3 || io->shape[rank - 1] != 3) return 0;
  return rank == 3 ? io->shape[0] : 1;
}

/* A diagonal ramp, grey colour. */
static void draw_nv12(const ingot_layout* layout, unsigned shift, unsigned char* to) {
  uint32_t x, y;
  for (y = 0; y < layout->height; ++y) {
    for (x = 0; x < layout->width; ++x) {
      to[(size_t)y * layout->stride + x] = (unsigned char)(x + y + shift);
    }
  }
  for (y = 0; y < layout->height / 2; ++y) {
    memset(to + layout->uv_offset + (size_t)y * layout->stride, 128, layout->width);
  }
}

static int prepare_slots(host* h) {
  static const float identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  uint32_t i;
  for (i = 0; i < h->slot_count; ++i) {
    slot* s = &h->slots[i];
    int n, buffers;
    ingot_io_describe(h->artifact, i, &s->io);
    if (s->io.direction == INGOT_SLOT_STATE) continue; /* the instance keeps those */
    if (s->io.camera != INGOT_NONE) ingot_camera_describe(h->artifact, s->io.camera, &s->camera);
    buffers = is_camera_input(s) ? RING : 1;
    for (n = 0; n < buffers; ++n) {
      s->memory[n] = allocate(&s->io);
      if (s->memory[n] == NULL) return 8;
      if (is_camera_input(s)) draw_nv12(&s->camera.layout, 16u * (unsigned)n, s->memory[n]);
    }
    if (s->io.direction == INGOT_SLOT_INPUT) {
      uint64_t k;
      for (k = 0; k < matrices_of(&s->io); ++k) {
        memcpy(s->memory[0] + k * sizeof identity, identity, sizeof identity);
      }
    }
  }
  return 0;
}

/* What stays bound: everything but the camera frames. */
static int bind_fixed_slots(host* h) {
  uint32_t i;
  for (i = 0; i < h->slot_count; ++i) {
    slot* s = &h->slots[i];
    ingot_binding binding;
    ingot_error error;
    if (s->io.direction == INGOT_SLOT_STATE || is_camera_input(s)) continue;
    ingot_binding_expected(h->artifact, i, &binding);
    binding.data = s->memory[0];
    if (s->io.camera != INGOT_NONE) binding.layout = &s->camera.layout;
    if (ingot_bind(h->instance, &binding, 1, &error) != 0) return report(s->io.name, &error);
  }
  return 0;
}

/* The frame with this number on all camera inputs, as one list: all of it is taken, or nothing. */
static int bind_frame(host* h, uint64_t number, uint64_t captured_ns) {
  ingot_binding list[MAX_SLOTS];
  ingot_error error;
  uint32_t i, count = 0;
  for (i = 0; i < h->slot_count; ++i) {
    slot* s = &h->slots[i];
    ingot_binding* binding = &list[count];
    if (!is_camera_input(s)) continue;
    ingot_binding_expected(h->artifact, i, binding);
    binding->data = s->memory[number % RING];
    binding->layout = &s->camera.layout;
    binding->generation = 1; /* these buffers are never mapped anew */
    binding->has_sequence = 1;
    binding->sequence = number;
    binding->has_timestamp = 1;
    binding->timestamp_ns = captured_ns;
    ++count;
  }
  if (ingot_bind(h->instance, list, count, &error) != 0) return report("camera frame", &error);
  return 0;
}

/* ---------------------------------------------------------------- the camera */

/* Stands for the capture hardware: at its rate it fills the next buffer, whether the last frame was
 * taken or not, but never the buffer that is in use. */
static void* capture(void* argument) {
  host* h = argument;
  ring* r = &h->ring;
  uint64_t number = 0;
  uint64_t due_ns = now_ns();
  for (;;) {
    uint32_t i;
    ++number;
    pthread_mutex_lock(&r->lock);
    while (!r->stop && (h->period_ns == 0 ? r->taken + 1 < number
                                          : r->in_use != 0 && r->in_use + RING <= number)) {
      pthread_cond_wait(&r->changed, &r->lock);
    }
    if (r->stop) break;
    pthread_mutex_unlock(&r->lock);

    if (h->period_ns != 0) {
      sleep_until(due_ns);
      due_ns += h->period_ns;
    }
    for (i = 0; i < h->slot_count; ++i) { /* a line that moves */
      slot* s = &h->slots[i];
      if (!is_camera_input(s)) continue;
      memset(s->memory[number % RING] + number % s->camera.layout.height * s->camera.layout.stride,
             (int)(number & 255), s->camera.layout.width);
    }

    pthread_mutex_lock(&r->lock);
    r->captured_ns[number % RING] = now_ns();
    r->newest = number;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

/* Waits for a frame that was not taken yet and takes the newest. */
static uint64_t take_frame(ring* r, uint64_t* captured_ns) {
  uint64_t number;
  pthread_mutex_lock(&r->lock);
  while (r->newest == r->taken) pthread_cond_wait(&r->changed, &r->lock);
  number = r->taken = r->in_use = r->newest;
  *captured_ns = r->captured_ns[number % RING];
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
  return number;
}

static void give_frame_back(ring* r) {
  pthread_mutex_lock(&r->lock);
  r->in_use = 0;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

/* ---------------------------------------------------------------- where the time goes */

/* A call that reads a camera frame is part of a warp. */
static int find_warps(host* h, uint32_t call_count) {
  uint32_t c, a;
  h->is_warp = calloc(call_count + 1, 1);
  if (h->is_warp == NULL) return 8;
  for (c = 0; c < call_count; ++c) {
    ingot_argument_info argument;
    for (a = 0; ingot_argument_describe(h->artifact, c, a, &argument) == 0; ++a) {
      ingot_buffer_info buffer;
      if (argument.buffer == INGOT_NONE) continue;
      ingot_buffer_describe(h->artifact, argument.buffer, &buffer);
      if (buffer.kind == INGOT_STORE_INPUT && is_camera_input(&h->slots[buffer.io])) {
        h->is_warp[c] = 1;
      }
    }
  }
  return 0;
}

/* The loader calls this after each call of the list. */
static void note_call(void* user, uint32_t call, uint64_t nanoseconds) {
  host* h = user;
  h->last_call_ns = now_ns();
  if (h->first_call_ns == 0) h->first_call_ns = h->last_call_ns - nanoseconds;
  h->spent_ns[h->is_warp[call] ? WARP : MODEL] += nanoseconds;
}

static int run_frames(host* h, unsigned frames, measurement* m) {
  unsigned n;
  uint64_t before = 0; /* number of the frame before this one */
  for (n = 0; n < frames; ++n) {
    ingot_frame frame;
    uint64_t captured, number, begin, bound, done;
    int code, part;
    number = take_frame(&h->ring, &captured);
    if (before != 0) m->skipped += number - before - 1;
    before = number;

    memset(h->spent_ns, 0, sizeof h->spent_ns);
    h->first_call_ns = 0;
    begin = now_ns();
    code = bind_frame(h, number, captured);
    if (code != 0) return code;
    bound = now_ns();
    ingot_run(h->instance, &frame);
    done = now_ns();
    give_frame_back(&h->ring);
    if (h->first_call_ns == 0) h->first_call_ns = h->last_call_ns = done; /* nothing to call */
    /* Never use outputs of a frame that is not valid. */
    if (!frame.valid) {
      fprintf(stderr, "frame %u: %s\n", n, ingot_status_text(frame.status));
      return ingot_status_exit_code(frame.status);
    }

    h->spent_ns[BIND] = bound - begin;
    h->spent_ns[COPY_IN] = h->first_call_ns - bound; /* and the checks of the matrices */
    h->spent_ns[READBACK] = done - h->last_call_ns;  /* and the checks of the next states */
    h->spent_ns[WHOLE] = done - begin;
    for (part = 0; part < PARTS; ++part) m->parts[part][n] = h->spent_ns[part];
    if (h->period_ns != 0 && done - captured > h->period_ns) ++m->missed;
    if ((frame.flags & INGOT_FRAME_OLD) != 0) ++m->old;
  }
  return 0;
}

static int by_value(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a;
  const uint64_t y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

static void print_times(const host* h, measurement* m, unsigned frames) {
  static const double shares[] = {0.5, 0.99, 0.999, 1};
  ingot_bind_info known;
  int part, i;
  printf("%-10s %10s %10s %10s %10s   ms\n", "", "p50", "p99", "p99.9", "max");
  for (part = 0; part < PARTS; ++part) {
    uint64_t* times = m->parts[part];
    qsort(times, frames, sizeof *times, by_value);
    printf("%-10s", part_names[part]);
    for (i = 0; i < 4; ++i) {
      const double at = shares[i] * (double)(frames - 1);
      printf(" %10.4f", (double)times[(size_t)(at + 0.5)] * 1e-6);
    }
    printf("\n");
  }
  ingot_bind_describe(h->instance, &known);
  printf("%u frames", frames);
  if (h->period_ns != 0) {
    printf(" at %.4g Hz, %u missed deadlines, %llu skipped, %u too old", 1e9 / (double)h->period_ns,
           m->missed, (unsigned long long)m->skipped, m->old);
  } else {
    printf(" back to back");
  }
  printf("; bindings: %llu hits, %llu misses\n", (unsigned long long)known.hits,
         (unsigned long long)known.misses);
}

static void print_outputs(const host* h) {
  uint32_t i;
  for (i = 0; i < h->slot_count; ++i) {
    const slot* s = &h->slots[i];
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

/* ---------------------------------------------------------------- from the file to the first frame
 */

/* The camera thread lives as long as frames run. */
static int run_with_camera(host* h, const options* o) {
  measurement m;
  pthread_t camera;
  int code = 0, part;
  memset(&m, 0, sizeof m);
  for (part = 0; part < PARTS; ++part) {
    m.parts[part] = calloc(o->frames, sizeof(uint64_t));
    if (m.parts[part] == NULL) code = 8;
  }
  pthread_mutex_init(&h->ring.lock, NULL);
  pthread_cond_init(&h->ring.changed, NULL);
  if (code == 0 && pthread_create(&camera, NULL, capture, h) != 0) code = 8;
  if (code == 0) {
    code = run_frames(h, o->frames, &m);
    pthread_mutex_lock(&h->ring.lock);
    h->ring.stop = 1;
    pthread_cond_broadcast(&h->ring.changed);
    pthread_mutex_unlock(&h->ring.lock);
    pthread_join(camera, NULL);
  }
  if (code == 0) print_times(h, &m, o->frames);
  if (code == 0) print_outputs(h);
  for (part = 0; part < PARTS; ++part) free(m.parts[part]);
  return code;
}

static int open_artifact(host* h, const options* o) {
  static ingot_key key; /* zeros: every purpose, every counter */
  ingot_policy policy = {0};
  ingot_error error;
  ingot_status status;
  int fd;
  if (read_key(o->key, &key) != 0) return 8;
  fd = open(o->artifact, O_RDONLY);
  if (fd < 0) {
    fprintf(stderr, "%s: cannot be opened\n", o->artifact);
    return 8;
  }
  policy.keys = &key;
  policy.key_count = 1;
  policy.camera = o->camera;
  status = ingot_open_fd(fd, &policy, NULL, &h->artifact, &error);
  close(fd);
  /* A product would not drive without this; neither does the sample. */
  if (status == 0) status = ingot_self_test(h->artifact, NULL, 0, NULL, &error);
  if (status == 0) status = ingot_instance_create(h->artifact, NULL, &h->instance, &error);
  return status == 0 ? 0 : report(o->artifact, &error);
}

static int parse(int argc, char** argv, options* o) {
  int i, positional = 0;
  double rate = 20;
  o->frames = 100;
  for (i = 1; i < argc; ++i) {
    const int more = i + 1 < argc;
    if (strcmp(argv[i], "--back-to-back") == 0) {
      rate = 0;
    } else if (strcmp(argv[i], "--frames") == 0 && more) {
      o->frames = (unsigned)strtoul(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--rate") == 0 && more) {
      rate = strtod(argv[++i], NULL);
      if (!(rate >= 0.1 && rate <= 10000)) return -1;
    } else if (strcmp(argv[i], "--camera") == 0 && more) {
      o->camera = argv[++i];
    } else if (argv[i][0] == '-' || positional == 2) {
      return -1;
    } else if (positional++ == 0) {
      o->artifact = argv[i];
    } else {
      o->key = argv[i];
    }
  }
  o->period_ns = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
  return positional == 2 && o->frames > 0 ? 0 : -1;
}

int main(int argc, char** argv) {
  static host h;
  options o = {0};
  ingot_artifact_info info;
  int code, n;
  uint32_t i;
  if (parse(argc, argv, &o) != 0) {
    fprintf(stderr,
            "usage: %s ARTIFACT PUBLIC_KEY [--frames N] [--rate HZ] [--back-to-back]"
            " [--camera NAME]\n",
            argv[0]);
    return 2;
  }
  h.period_ns = o.period_ns;
  code = open_artifact(&h, &o);
  if (code == 0) {
    ingot_artifact_describe(h.artifact, &info);
    h.slot_count = info.io_count;
    code = prepare_slots(&h);
    if (code == 0) code = bind_fixed_slots(&h);
    if (code == 0) code = find_warps(&h, info.call_count);
    if (code == 0) {
      ingot_set_call_hook(h.instance, note_call, &h);
      code = run_with_camera(&h, &o);
    }
  }
  ingot_instance_destroy(h.instance);
  ingot_close(h.artifact);
  for (i = 0; i < h.slot_count; ++i) {
    for (n = 0; n < RING; ++n) free(h.slots[i].memory[n]);
  }
  free(h.is_warp);
  return code;
}
