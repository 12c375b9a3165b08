"""The compiled interpreters of a plan. Importing this package imports numba; `kwire.plan.engine` decides when.

memory                          varints, MessagePack tokens, Python buffers, on top of kwire.wire.kernels
operands                        where the operands of a row and the fields of a frame are
decode, encode                  wire -> MessagePack, MessagePack -> wire
walk                            the walk over a message that flatten and nest share
flatten, nest                   wire -> columns
entry, columns_entry, nested_entry    the functions that Python calls, and their cache
"""

from kwire.wire.kernel_cache import prepare_kernel_cache

prepare_kernel_cache()
