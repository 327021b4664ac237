/* What exported objects of mlir_npu need, and helpers for programs that follow a stitching plan.
 *
 * Compile mlir_npu_runtime.c with the program, in one of three ways:
 *   -fopenmp                        teams of OpenMP threads
 *   (nothing)                       teams of POSIX threads, made for every kernel
 *   -DMLIR_NPU_SINGLE_THREAD        no threads at all
 */
#ifndef MLIR_NPU_RUNTIME_H
#define MLIR_NPU_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The size of teams, 1 at first. Scratch memory is needed for every thread. Set it while nothing
 * runs. A program compiled for another number (the option num_threads) keeps its own. */
void mlir_npu_set_threads(int32_t count);

/* Called by compiled code. A team of `count` threads (0: as set above) runs body(data), and all of
 * them have returned when this does. flags is 0. */
void mlir_npu_parallel(void (*body)(void *), void *data, uint32_t count, uint32_t flags);
int32_t mlir_npu_thread(void);      /* of the running team, from 0 */
int32_t mlir_npu_team_size(void);   /* 1 outside of a team */
int32_t mlir_npu_max_threads(void); /* as set above */

/* The steps "copy" and "add" of a plan, on tensors of one shape. Strides are in elements; size is
 * that of an element in bytes. `kind` of add: see the constants; 0 is returned for any other. */
enum {
  MLIR_NPU_FLOAT32, MLIR_NPU_FLOAT64, MLIR_NPU_INT32, MLIR_NPU_INT64
};
void mlir_npu_copy(void *target, const int64_t *target_strides, const void *source,
                   const int64_t *source_strides, const int64_t *shape, int32_t rank,
                   int64_t size);
int32_t mlir_npu_add(void *target, const int64_t *target_strides, const void *source,
                     const int64_t *source_strides, const int64_t *shape, int32_t rank,
                     int32_t kind);

#ifdef __cplusplus
}
#endif

#endif
