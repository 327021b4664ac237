/* Runs an exported program: follows plan.json step by step.
 *
 *   runner PROGRAM LIBRARY DATA [THREADS]
 *
 * PROGRAM: the exported directory; LIBRARY: a shared library of its objects and the runtime; DATA:
 * a directory with <value>.bin for every input, random value and tangent, which receives <value>.bin for every
 * output, gradient and buffer. These files are packed and row-major. Without tangents there is no backward.
 *
 * Memory that the plan declares dead is filled with rubbish, so a plan that frees too early fails.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mlir_npu_runtime.h"

enum { MAX_RANK = 16, MAX_SLOTS = 4096, RUBBISH = 0xFF };

typedef struct {
  const char *name, *dtype;
  char *data;
  int32_t rank;
  int64_t shape[MAX_RANK], strides[MAX_RANK], size, bytes;
  const json *source;
} value;

static const json *plan;
static value *values;
static int count;
static char *workspace, *scratch;
static const char *data;
static void *library;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "runner: %s %s\n", what, which);
  exit(1);
}

/* --- memory and files --- */

static char *allocate(int64_t bytes) {
  size_t step = (size_t)json_integer(plan, "alignment");
  size_t size = ((size_t)bytes / step + 1) * step;
  char *made = aligned_alloc(step, size);
  if (!made) fail("no memory for", "the program");
  return memset(made, RUBBISH, size);
}

static char *read_file(const char *folder, const char *name, int64_t *bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = ftell(file);
  rewind(file);
  char *contents = calloc(1, (size_t)*bytes + 1);
  if (fread(contents, 1, (size_t)*bytes, file) != (size_t)*bytes) fail("cannot read", path);
  fclose(file);
  return contents;
}

/* --- values --- */

static int64_t element_size(const char *dtype) {
  static const struct {
    const char *name;
    int64_t size;
  } sizes[] = {{"bool", 1},    {"uint8", 1},   {"int8", 1},     {"int16", 2},   {"int32", 4},
               {"int64", 8},   {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    if (!strcmp(sizes[i].name, dtype)) return sizes[i].size;
  fail("unknown type", dtype);
  return 0;
}

static value *find(const char *name) {
  for (int i = 0; i < count; ++i)
    if (!strcmp(values[i].name, name)) return &values[i];
  fail("no value is called", name);
  return NULL;
}

static int32_t list_of(const json *list, int64_t *numbers) {
  int32_t length = 0;
  for (const json *item = list->first; item; item = item->next) {
    if (length == MAX_RANK) fail("too many dimensions of", "a value");
    numbers[length++] = (int64_t)item->number;
  }
  return length;
}

/* Strides of the packed files. */
static void packed_strides(const value *v, int64_t *strides) {
  int64_t step = 1;
  for (int32_t d = v->rank - 1; d >= 0; --d) strides[d] = step, step *= v->shape[d];
}

static int64_t packed_bytes(const value *v) {
  int64_t bytes = v->size;
  for (int32_t d = 0; d < v->rank; ++d) bytes *= v->shape[d];
  return bytes;
}

static void read_value(const value *v) {
  char name[1024];
  int64_t bytes = 0, strides[MAX_RANK];
  snprintf(name, sizeof name, "%s.bin", v->name);
  char *contents = read_file(data, name, &bytes);
  if (!contents || bytes != packed_bytes(v)) fail("no file, or one of another size, for", v->name);
  packed_strides(v, strides);
  mlir_npu_copy(v->data, v->strides, contents, strides, v->shape, v->rank, v->size);
  free(contents);
}

static void write_value(const value *v) {
  char path[4096];
  int64_t strides[MAX_RANK];
  snprintf(path, sizeof path, "%s/%s.bin", data, v->name);
  FILE *file = fopen(path, "wb");
  char *packed = allocate(packed_bytes(v));
  packed_strides(v, strides);
  mlir_npu_copy(packed, strides, v->data, v->strides, v->shape, v->rank, v->size);
  if (!file || fwrite(packed, 1, (size_t)packed_bytes(v), file) != (size_t)packed_bytes(v))
    fail("cannot write", path);
  fclose(file);
  free(packed);
}

static void make_values(const char *program) {
  const json *list = json_need(plan, "values");
  int64_t weights_bytes = 0;
  char *weights =
      read_file(program, json_text(json_need(plan, "files"), "weights"), &weights_bytes);
  if (!weights || weights_bytes != json_integer(plan, "weights_bytes"))
    fail("no weights, or of another size, in", program);
  for (const json *item = list->first; item; item = item->next) ++count;
  values = calloc((size_t)count + 1, sizeof *values);
  value *v = values;
  for (const json *item = list->first; item; item = item->next, ++v) {
    const json *base = json_get(item, "base"), *offset = json_get(item, "byte_offset");
    v->name = json_text(item, "name");
    v->dtype = json_text(item, "dtype");
    v->size = element_size(v->dtype);
    v->rank = list_of(json_need(item, "shape"), v->shape);
    list_of(json_need(item, "strides"), v->strides);
    v->bytes = json_integer(item, "bytes");
    v->source = json_need(item, "source");
    if (base) {
      v->data = find(base->text)->data + (offset ? (int64_t)offset->number : 0);
      continue;
    }
    v->data = allocate(v->bytes);
    if (json_get(v->source, "offset"))
      memcpy(v->data, weights + json_integer(v->source, "offset"), (size_t)v->bytes);
    if (json_is(v->source, "kind", "input") || json_is(v->source, "kind", "random")) read_value(v);
  }
  free(weights);
}

/* --- steps --- */

static void call(const json *step) {
  void *slots[MAX_SLOTS];
  int used = 0;
  for (const json *slot = json_need(step, "slots")->first; slot; slot = slot->next) {
    const json *name = json_get(slot, "value");
    if (used == MAX_SLOTS) fail("too many slots of", json_text(step, "symbol"));
    slots[used++] = name ? find(name->text)->data : json_get(slot, "workspace") ? workspace : scratch;
  }
  /* a pointer to an object, as dlsym gives it, becomes one to a function */
  void (*function)(void *const *);
  *(void **)&function = dlsym(library, json_text(step, "symbol"));
  if (!function) fail("the library has no function", json_text(step, "symbol"));
  function(slots);
}

static void zero(const value *v) {
  static const int64_t none[MAX_RANK];
  static const int64_t nothing;
  mlir_npu_copy(v->data, v->strides, &nothing, none, v->shape, v->rank, v->size);
}

static void add(const value *target, const value *source) {
  static const char *kinds[] = {"float32", "float64", "int32", "int64"};
  for (int32_t kind = 0; kind < 4; ++kind)
    if (!strcmp(kinds[kind], target->dtype)) {
      mlir_npu_add(target->data, target->strides, source->data, source->strides, target->shape,
                   target->rank, kind);
      return;
    }
  fail("cannot add values of type", target->dtype);
}

static void check(const json *step) {
  const value *v = find(json_text(step, "value"));
  const json *expected = json_need(step, "expected");
  double wanted = expected->kind == JSON_NUMBER ? expected->number : expected->kind == JSON_TRUE;
  double found = !strcmp(v->dtype, "float32")   ? *(float *)v->data
                 : !strcmp(v->dtype, "float64") ? *(double *)v->data
                 : !strcmp(v->dtype, "int64")   ? (double)*(int64_t *)v->data
                 : !strcmp(v->dtype, "int32")   ? (double)*(int32_t *)v->data
                                                : (double)*(int8_t *)v->data;
  double rounding = strncmp(v->dtype, "float", 5) ? 0 : 1e-5 * (wanted < 0 ? -wanted : wanted);
  bool both_nan = found != found && wanted != wanted;
  if (!both_nan && !(found >= wanted - rounding && found <= wanted + rounding))
    fail("the program is for another value of", v->name);
}

static void take_steps(const json *list);

static void run_unit(const char *name) {
  const json *unit = json_need(plan, "units")->first;
  while (unit && !json_is(unit, "name", name)) unit = unit->next;
  if (!unit) fail("no unit is called", name);
  const json *dead = json_need(unit, "frees")->first;
  for (const json *step = json_need(unit, "steps")->first; step; step = step->next) {
    json alone = *step;
    alone.next = NULL;
    take_steps(&alone);
    for (const json *item = dead->first; item; item = item->next)
      memset(find(item->text)->data, RUBBISH, (size_t)find(item->text)->bytes);
    dead = dead->next;
  }
}

static void take_steps(const json *step) {
  for (; step; step = step->next) {
    if (json_is(step, "op", "run")) {
      run_unit(json_text(step, "unit"));
    } else if (json_is(step, "op", "call")) {
      call(step);
    } else if (json_is(step, "op", "copy")) {
      const value *target = find(json_text(step, "target")), *from = find(json_text(step, "source"));
      mlir_npu_copy(target->data, target->strides, from->data, from->strides, target->shape,
                    target->rank, target->size);
    } else if (json_is(step, "op", "zero")) {
      zero(find(json_text(step, "value")));
    } else if (json_is(step, "op", "add")) {
      add(find(json_text(step, "target")), find(json_text(step, "source")));
    } else if (json_is(step, "op", "check")) {
      check(step);
    } else if (!json_is(step, "op", "view")) { /* views have their address since make_values */
      fail("a step that needs PyTorch:", json_text(step, "op"));
    }
  }
}

static void write_all(const json *list) {
  for (const json *item = list->first; item; item = item->next) {
    const json *name = json_need(item, "value");
    if (name->kind == JSON_TEXT) write_value(find(name->text));
  }
}

int main(int argc, char **argv) {
  if (argc < 4) fail("usage:", "runner PROGRAM LIBRARY DATA [THREADS]");
  int64_t bytes = 0;
  char *text = read_file(argv[1], "plan.json", &bytes);
  if (!text) fail("no plan in", argv[1]);
  plan = json_parse(text);
  if (!json_is(plan, "format", "mlir-npu-stitching-plan") || json_integer(plan, "version") != 1)
    fail("not a plan of version 1 in", argv[1]);
  library = dlopen(argv[2], RTLD_NOW);
  if (!library) fail("cannot load", dlerror());
  void (*set_threads)(int32_t);
  *(void **)&set_threads = dlsym(library, "mlir_npu_set_threads");
  int32_t threads = argc > 4 ? atoi(argv[4]) : 1, fixed = (int32_t)json_integer(plan, "threads");
  if (fixed) threads = fixed;
  set_threads(threads);
  data = argv[3];
  workspace = allocate(json_integer(plan, "workspace_bytes"));
  scratch = allocate(json_integer(plan, "scratch_bytes") * threads);
  make_values(argv[1]);
  for (const json *unit = json_need(plan, "units")->first; unit; unit = unit->next)
    take_steps(json_need(unit, "prepare")->first);
  take_steps(json_need(plan, "forward")->first);
  write_all(json_need(plan, "outputs"));
  for (int i = 0; i < count; ++i)
    if (json_is(values[i].source, "kind", "buffer")) write_value(&values[i]);
  if (!json_need(plan, "backward")->first) return 0;
  for (int i = 0; i < count; ++i)
    if (json_is(values[i].source, "kind", "tangent")) read_value(&values[i]);
  take_steps(json_need(plan, "backward")->first);
  write_all(json_need(plan, "gradients"));
  return 0;
}
