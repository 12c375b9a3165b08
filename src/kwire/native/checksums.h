/* The checksums of messages of magic 0 and 1, and of batches of magic 2. */
#pragma once
#include "message.h"

/* CRC-32 (ISO 3309): a table look-up for each byte, sixteen side by side. */
uint32_t crc32_of(const uint8_t *bytes, int64_t size);

static inline int has_right_crc(const Message *message) {
    const uint8_t *start = message->start + MAGIC_POSITION;
    return crc32_of(start, message->end - start) == stored_crc(message);
}

/* Whether the processor has an instruction for CRC-32C: without it, kernels that need it are not called. */
int has_crc32c(void);
