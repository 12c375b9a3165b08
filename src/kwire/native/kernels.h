/* Kernels: functions on numbers and arrays, without Python and without the GIL.
 *
 * _kernels.pyi declares them; build.py makes from its signatures the table with which module.c reads the arguments:
 * numbers as they are, an array as its address and its length (a table: rows and columns). A kernel writes as many
 * results as its signature says. It checks every byte against the end of its input and allocates nothing.
 */
#pragma once
#include <stdint.h>

#define KERNEL(name) void kwire_##name(const int64_t *arguments, int64_t *results)
