"""What compiled kernels of every package are made of. Import it only from kernels: numba takes a second to load.

memory    loads, stores and copies at raw addresses
"""

from kwire.wire.kernel_cache import prepare_kernel_cache

prepare_kernel_cache()
