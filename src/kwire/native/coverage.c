/* Which steps of the code an input takes, for coverage-guided fuzzing (tests/fuzz/guided.py). Only in builds with
 * sanitizers: the compiler calls the function at the start of each basic block. */
#include <stdint.h>

enum { STEPS = 1 << 16 };

__attribute__((visibility("default"))) uint8_t kwire_steps[STEPS]; /* how often each was taken, at most 255 times */

static __thread uintptr_t block_before;

__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) {
    uintptr_t block = (uintptr_t)__builtin_return_address(0) - (uintptr_t)kwire_steps; /* the same in every process */
    block = (block ^ block >> 15) * 0x2C1B3C6D;
    uint8_t *count = &kwire_steps[(block ^ block_before) % STEPS];
    *count += *count < 255;
    block_before = block >> 1;
}
