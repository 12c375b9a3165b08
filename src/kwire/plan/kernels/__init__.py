"""The compiled interpreters of a plan. Importing this package imports numba; `kwire.plan.engine` decides when.

memory    loads, stores and copies at plain addresses; MessagePack tokens; Python buffers
decode    wire -> MessagePack
encode    MessagePack -> wire
flatten   wire -> columns
entry     the functions that Python calls, and their cache
"""

from kwire.wire.kernel_cache import prepare_kernel_cache

prepare_kernel_cache()
