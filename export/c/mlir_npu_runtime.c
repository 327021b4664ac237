/* See mlir_npu_runtime.h. Portable C11. */
#include "mlir_npu_runtime.h"

#include <stddef.h>
#include <string.h>

static int32_t team = 1;

void mlir_npu_set_threads(int32_t count) { team = count < 1 ? 1 : count; }
int32_t mlir_npu_max_threads(void) { return team; }

#if defined(_OPENMP)

#include <omp.h>

void mlir_npu_parallel(void (*body)(void *), void *data, uint32_t count, uint32_t flags) {
  (void)flags;
  int size = count ? (int)count : team;
#pragma omp parallel num_threads(size)
  body(data);
}
int32_t mlir_npu_thread(void) { return omp_get_thread_num(); }
int32_t mlir_npu_team_size(void) { return omp_get_num_threads(); }

#else

static _Thread_local int32_t own_thread = 0, own_team = 1;

int32_t mlir_npu_thread(void) { return own_thread; }
int32_t mlir_npu_team_size(void) { return own_team; }

typedef struct {
  void (*body)(void *);
  void *data;
  int32_t thread, team;
} member;

static void *run(void *argument) {
  member *self = argument;
  int32_t thread = own_thread, size = own_team;
  own_thread = self->thread;
  own_team = self->team;
  self->body(self->data);
  own_thread = thread;
  own_team = size;
  return NULL;
}

#if defined(MLIR_NPU_SINGLE_THREAD)

void mlir_npu_parallel(void (*body)(void *), void *data, uint32_t count, uint32_t flags) {
  (void)count;
  (void)flags;
  member alone = {body, data, 0, 1};
  run(&alone);
}

#else

#include <pthread.h>

enum { MAX_TEAM = 256 };

void mlir_npu_parallel(void (*body)(void *), void *data, uint32_t count, uint32_t flags) {
  (void)flags;
  int32_t size = count ? (int32_t)count : team, started = 1;
  if (size > MAX_TEAM) size = MAX_TEAM;
  pthread_t threads[MAX_TEAM];
  member members[MAX_TEAM];
  for (int32_t i = 0; i < size; ++i) members[i] = (member){body, data, i, size};
  while (started < size && !pthread_create(&threads[started], NULL, run, &members[started]))
    ++started;
  for (int32_t i = started; i < size; ++i) run(&members[i]); /* the system gives no more threads */
  run(&members[0]);
  for (int32_t i = 1; i < started; ++i) pthread_join(threads[i], NULL);
}

#endif
#endif

/* The tensor at an index of the first dimension. */
static const char *at(const void *base, int64_t index, int64_t stride, int64_t size) {
  return (const char *)base + index * stride * size;
}

void mlir_npu_copy(void *target, const int64_t *target_strides, const void *source,
                   const int64_t *source_strides, const int64_t *shape, int32_t rank,
                   int64_t size) {
  if (rank == 0) {
    memcpy(target, source, (size_t)size);
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    mlir_npu_copy((char *)at(target, i, target_strides[0], size), target_strides + 1,
                  at(source, i, source_strides[0], size), source_strides + 1, shape + 1, rank - 1,
                  size);
}

#define ADD(type) (*(type *)target += *(const type *)source)

static const int64_t sizes[] = {4, 8, 4, 8};

int32_t mlir_npu_add(void *target, const int64_t *target_strides, const void *source,
                     const int64_t *source_strides, const int64_t *shape, int32_t rank,
                     int32_t kind) {
  if (kind < MLIR_NPU_FLOAT32 || kind > MLIR_NPU_INT64) return 0;
  if (rank == 0) {
    switch (kind) {
      case MLIR_NPU_FLOAT32: ADD(float); break;
      case MLIR_NPU_FLOAT64: ADD(double); break;
      case MLIR_NPU_INT32: ADD(int32_t); break;
      default: ADD(int64_t);
    }
    return 1;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    mlir_npu_add((char *)at(target, i, target_strides[0], sizes[kind]), target_strides + 1,
                 at(source, i, source_strides[0], sizes[kind]), source_strides + 1, shape + 1,
                 rank - 1, kind);
  return 1;
}
