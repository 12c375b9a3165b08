/* One scan over the records of a magic 2 batch: the fields of a SectionScan (kwire.records.format.section_scan). 6 ns a record
 * of 116 bytes. */
#include "kernels.h"
#include "record.h"

enum { FAULT, FAULT_INDEX, IS_CONTIGUOUS, SMALLEST, LARGEST, NULL_KEYS, FIRST_DELTA, IS_CANONICAL };

static void set_fault(int64_t *results, int fault, int64_t index) {
    results[FAULT] = fault;
    results[FAULT_INDEX] = index;
    results[IS_CONTIGUOUS] = results[IS_CANONICAL] = results[NULL_KEYS] = results[FIRST_DELTA] = 0;
    results[SMALLEST] = results[LARGEST] = NO_TIMESTAMP;
}

KERNEL(scan_section) {
    Cursor section = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[0] + arguments[1]};
    const int64_t count = arguments[2], base_timestamp = arguments[3];
    int64_t smallest = NO_TIMESTAMP, largest = NO_TIMESTAMP, null_keys = 0, first_delta = 0;
    int is_contiguous = 1, is_canonical = 1;
    for (int64_t index = 0; index < count; index++) {
        Record record;
        int fault = take_record(&section, &record);
        if (!fault && record.has_headers) fault = check_headers(&record);
        if (UNLIKELY(fault)) {
            set_fault(results, fault, index);
            return;
        }
        const int64_t timestamp = wrapping_sum(base_timestamp, record.timestamp_delta);
        if (timestamp != NO_TIMESTAMP) {
            if (smallest == NO_TIMESTAMP || timestamp < smallest) smallest = timestamp;
            if (largest == NO_TIMESTAMP || timestamp > largest) largest = timestamp;
        }
        if (index == 0) first_delta = record.timestamp_delta;
        is_contiguous &= record.offset_delta == index;
        is_canonical &= record.is_canonical;
        null_keys += record.key_bytes < 0;
    }
    if (section.at != section.end) {
        set_fault(results, FAULT_BYTES_LEFT, -1);
        return;
    }
    results[FAULT] = results[FAULT_INDEX] = 0;
    results[IS_CONTIGUOUS] = is_contiguous;
    results[SMALLEST] = smallest;
    results[LARGEST] = largest;
    results[NULL_KEYS] = null_keys;
    results[FIRST_DELTA] = first_delta;
    results[IS_CANONICAL] = is_canonical;
}
