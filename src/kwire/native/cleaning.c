/* Compact logs: put the keys of batches into an offset map, decide which records to retain, write what is retained.
 *
 * Batches are rows of the table of batches; of a compressed batch, start, end and count describe its decompressed records.
 * The other arrays: kwire.log.cleaner.layout.
 */
#include "cleaner_layout.h"
#include "encoder_layout.h"
#include "kernels.h"
#include "message.h"
#include "record.h"

/* SipHash-2-4 with 128 bits: the hash of a key. Two keys with the same hash would count as one key, and the older record
 * would be removed. With a random secret of 16 bytes per pass, the probability of a collision among 2**32 keys is 2**-65,
 * and collisions cannot be constructed. Kafka's MD5 has as many bits, takes four times as long, and collisions are known.
 * Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", and their siphash.c for the 128 bits. */

typedef struct {
    uint64_t v0, v1, v2, v3;
} Sip;

static inline uint64_t rotated(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

static inline void stir(Sip *sip, int rounds) {
    while (rounds--) {
        sip->v0 += sip->v1;
        sip->v2 += sip->v3;
        sip->v1 = rotated(sip->v1, 13) ^ sip->v0;
        sip->v3 = rotated(sip->v3, 16) ^ sip->v2;
        sip->v0 = rotated(sip->v0, 32) + sip->v3;
        sip->v2 += sip->v1;
        sip->v3 = rotated(sip->v3, 21) ^ sip->v0;
        sip->v1 = rotated(sip->v1, 17) ^ sip->v2;
        sip->v2 = rotated(sip->v2, 32);
    }
}

static inline void add_word(Sip *sip, uint64_t word) {
    sip->v3 ^= word;
    stir(sip, 2);
    sip->v0 ^= word;
}

static inline uint64_t sum(const Sip *sip) { return sip->v0 ^ sip->v1 ^ sip->v2 ^ sip->v3; }

static inline void hash_key(const uint8_t *key, int64_t size, const uint64_t *secret, uint64_t *first, uint64_t *second) {
    Sip sip = {secret[0] ^ 0x736F6D6570736575, secret[1] ^ 0x646F72616E646F6D ^ 0xEE, secret[0] ^ 0x6C7967656E657261,
               secret[1] ^ 0x7465646279746573};
    uint64_t word, last = (uint64_t)size << 56;
    for (; size >= 8; key += 8, size -= 8) {
        memcpy(&word, key, sizeof word);
        add_word(&sip, word);
    }
    while (size--) last |= (uint64_t)key[size] << (8 * size);
    add_word(&sip, last);
    sip.v2 ^= 0xEE;
    stir(&sip, 4);
    *first = sum(&sip);
    sip.v1 ^= 0xDD;
    stir(&sip, 4);
    *second = sum(&sip);
}

/* The offset map */

typedef struct {
    Slot *slots;
    uint64_t count;
} SlotTable;

static inline void mark_key(SlotTable map, const uint8_t *key, int64_t size, const uint64_t *secret, int64_t offset,
                            Mark *mark) {
    hash_key(key, size, secret, &mark->first, &mark->second);
    mark->offset = (uint64_t)offset;
    mark->slot = mark->first % map.count;
    __builtin_prefetch(&map.slots[mark->slot]);
}

/* The slot of a key, or the free slot for it. */
static inline Slot *find_slot(SlotTable map, uint64_t at, uint64_t first, uint64_t second) {
    Slot *slot = map.slots + at;
    while (slot->next_offset && (slot->first != first || slot->second != second))
        if (++slot == map.slots + map.count) slot = map.slots;
    return slot;
}

/* The newest offset of a key, or -1. */
static inline int64_t newest_offset(SlotTable map, const Mark *mark) {
    return (int64_t)find_slot(map, mark->slot, mark->first, mark->second)->next_offset - 1;
}

/* Set the newest offset of a key. A full map takes no record, not even of a key that it has. */
static inline int put_mark(SlotTable map, MapState *state, const Mark *mark) {
    if (state->keys >= state->limit) return PUT_FULL;
    if (state->keys >= state->room) return PUT_MUST_GROW;
    Slot *slot = find_slot(map, mark->slot, mark->first, mark->second);
    if (!slot->next_offset) {
        slot->first = mark->first;
        slot->second = mark->second;
        state->keys++;
    }
    slot->next_offset = mark->offset + 1;
    state->latest_offset = (int64_t)mark->offset;
    return PUT_ADDED;
}

/* (slots, state, secret, key, bytes of the key, offset) -> a Put */
KERNEL(put_key) {
    const SlotTable map = {(Slot *)arguments[0], (uint64_t)arguments[1]};
    Mark mark;
    mark_key(map, (const uint8_t *)arguments[7], arguments[8], (const uint64_t *)arguments[5], arguments[9], &mark);
    results[0] = put_mark(map, (MapState *)arguments[3], &mark);
}

/* (slots, secret, key, bytes of the key) -> its newest offset or -1 */
KERNEL(get_offset) {
    const SlotTable map = {(Slot *)arguments[0], (uint64_t)arguments[1]};
    Mark mark;
    mark_key(map, (const uint8_t *)arguments[5], arguments[6], (const uint64_t *)arguments[3], 0, &mark);
    results[0] = newest_offset(map, &mark);
}

/* (old, new): copy all keys of a table to a larger, empty one. */
KERNEL(move_slots) {
    const Slot *old = (const Slot *)arguments[0], *end = old + arguments[1];
    const SlotTable map = {(Slot *)arguments[3], (uint64_t)arguments[4]};
    for (; old < end; old++)
        if (old->next_offset) *find_slot(map, old->first % map.count, old->first, old->second) = *old;
}

/* Records of any magic */

typedef struct {
    int64_t offset, key_bytes, value_bytes; /* negative for null */
    const uint8_t *key;
    int is_canonical; /* encoded as by Kafka; below magic 2: its magic is that of the outer message */
} Entry;

/* Take the next record of a batch: a fault or 0. */
static inline int take_entry(Cursor *records, const Batch *batch, Entry *entry) {
    if (batch->magic == 2) {
        Record record;
        int fault = take_record(records, &record);
        if (!fault && record.has_headers) fault = check_headers(&record);
        if (UNLIKELY(fault)) return fault;
        entry->offset = wrapping_sum(batch->base_offset, record.offset_delta);
        entry->key = record.key;
        entry->key_bytes = record.key_bytes;
        entry->value_bytes = record.value_bytes;
        entry->is_canonical = record.is_canonical;
        return 0;
    }
    Message message;
    const int fault = take_message(records, &message);
    if (UNLIKELY(fault)) return fault == NO_MESSAGE ? FAULT_INNER_SIZE : fault;
    if (UNLIKELY(batch->attributes & CODEC_MASK && message.attributes & CODEC_MASK)) return FAULT_INNER_COMPRESSED;
    if (UNLIKELY(take_key_and_value(&message))) return FAULT_MESSAGE_FIELDS;
    entry->offset = wrapping_sum(batch->shift, message.offset);
    entry->key = message.key;
    entry->key_bytes = message.key_bytes;
    entry->value_bytes = message.value_bytes;
    entry->is_canonical = message.magic == batch->magic;
    return 0;
}

static inline Cursor records_of(const Batch *batch) {
    return (Cursor){(const uint8_t *)batch->start, (const uint8_t *)batch->end};
}

static inline int has_bytes_left(const Batch *batch, const Cursor *records) {
    return batch->magic == 2 && batch->count > 0 && records->at != records->end;
}

/* (table, first, last, lowest offset, slots, state, secret, marks, outcome) -> the batch after the last one read
 *
 * Put the keys of batches [first, last) into an offset map; records below the lowest offset are skipped. If not all are
 * read, the outcome is FULL, MUST_GROW (call again with that batch; repeated records are harmless), or the fault of the
 * batch there. A large map exceeds the caches, so keys are hashed first and their slots prefetched: misses then overlap. */
KERNEL(map_batches) {
    const Batch *const table = (const Batch *)arguments[0];
    const int64_t last = arguments[4], lowest_offset = arguments[5];
    const SlotTable map = {(Slot *)arguments[6], (uint64_t)arguments[7]};
    MapState *const state = (MapState *)arguments[9];
    const uint64_t *const secret = (const uint64_t *)arguments[11];
    Mark *const marks = (Mark *)arguments[13];
    Outcome *const outcome = (Outcome *)arguments[16];
    *outcome = (Outcome){0, 0};
    for (results[0] = arguments[3]; results[0] < last; results[0]++) {
        const Batch *const batch = table + results[0];
        Cursor records = records_of(batch);
        int64_t keyed = 0;
        for (int64_t index = 0; index < batch->count; index++) {
            Entry entry;
            const int fault = take_entry(&records, batch, &entry);
            if (UNLIKELY(fault)) {
                *outcome = (Outcome){fault, index};
                return;
            }
            if (entry.key_bytes >= 0 && entry.offset >= lowest_offset)
                mark_key(map, entry.key, entry.key_bytes, secret, entry.offset, &marks[keyed++]);
        }
        if (has_bytes_left(batch, &records)) {
            *outcome = (Outcome){FAULT_BYTES_LEFT, -1};
            return;
        }
        for (const Mark *mark = marks; mark < marks + keyed; mark++) {
            outcome->fault = put_mark(map, state, mark);
            if (outcome->fault != PUT_ADDED) return;
        }
        if (batch->last_offset >= lowest_offset) state->latest_offset = batch->last_offset;
    }
}

/* What weigh_batches finds out about a record before it looks at the map. */
enum { DROPPED = 0, STAYS = 1, ASK_MAP = 2, IS_TOMBSTONE = 4, IS_ODD = 8 };

/* (table, first, last, now ms, keep old tombstones, slots, state, secret, marks, keeps, weights, outcome)
 * -> the batch after the last one read
 *
 * Decide for each record of batches [first, last) whether to retain it: keeps has 1 for retained records of
 * these batches, one after another. Old tombstones are of magic 0 or 1, without a delete horizon. */
KERNEL(weigh_batches) {
    const Batch *const table = (const Batch *)arguments[0];
    const int64_t last = arguments[4], now_ms = arguments[5], keeps_old_tombstones = arguments[6];
    const SlotTable map = {(Slot *)arguments[7], (uint64_t)arguments[8]};
    const int64_t latest_offset = ((const MapState *)arguments[10])->latest_offset;
    const uint64_t *const secret = (const uint64_t *)arguments[12];
    Mark *const marks = (Mark *)arguments[14];
    uint8_t *keeps = (uint8_t *)arguments[17];
    Weights *const weights = (Weights *)arguments[19];
    Outcome *const outcome = (Outcome *)arguments[22];
    *outcome = (Outcome){0, 0};
    for (results[0] = arguments[3]; results[0] < last; results[0]++) {
        const Batch *const batch = table + results[0];
        Cursor records = records_of(batch);
        const int has_horizon = (batch->attributes & DELETE_HORIZON_FLAG) != 0;
        const int keeps_tombstones =
            batch->magic == 2 ? !has_horizon || now_ms < batch->base_timestamp : keeps_old_tombstones != 0;
        Weights found = {.is_canonical = 1};
        for (int64_t index = 0; index < batch->count; index++) {
            Entry entry;
            const int fault = take_entry(&records, batch, &entry);
            if (UNLIKELY(fault)) {
                *outcome = (Outcome){fault, index};
                return;
            }
            int known = DROPPED;
            if (entry.offset > latest_offset) {
                known = STAYS;
            } else if (entry.key_bytes < 0) {
                found.keyless++;
            } else if (entry.value_bytes >= 0 || keeps_tombstones) {
                known = ASK_MAP;
                mark_key(map, entry.key, entry.key_bytes, secret, entry.offset, &marks[index]);
            }
            keeps[index] = (uint8_t)(known | (entry.value_bytes < 0 ? IS_TOMBSTONE : 0) | (entry.is_canonical ? 0 : IS_ODD));
        }
        if (has_bytes_left(batch, &records)) {
            *outcome = (Outcome){FAULT_BYTES_LEFT, -1};
            return;
        }
        for (int64_t index = 0; index < batch->count; index++) {
            const int known = keeps[index], is_tombstone = (known & IS_TOMBSTONE) != 0;
            const int stays = known & ASK_MAP ? (int64_t)marks[index].offset >= newest_offset(map, &marks[index])
                                              : (known & STAYS) != 0;
            keeps[index] = (uint8_t)stays;
            found.kept += stays;
            found.tombstones += is_tombstone && stays;
            found.dropped_tombstones += is_tombstone && !stays;
            if (stays && known & IS_ODD) found.is_canonical = 0;
        }
        keeps += batch->count;
        weights[results[0]] = found;
    }
}

/* Writing */

typedef struct {
    int64_t bytes, base_timestamp, max_timestamp;
} Kept;

/* Write the retained records of a batch, which weigh_batches has found valid and canonical, as the payload of a new one.
 * The room needs the size of the records, LONGEST_NUMBERS for each and WIDE. horizon: -1 for none.
 *
 * The base offset and offset deltas are unchanged; timestamp deltas are relative to the first retained record or to the
 * delete horizon. */
static Kept put_kept(const Batch *batch, const uint8_t *keeps, int64_t horizon, uint8_t *room) {
    const int is_append_time = (batch->attributes & LOG_APPEND_TIME_FLAG) != 0;
    Kept kept = {0, horizon, NO_TIMESTAMP};
    Cursor records = records_of(batch);
    uint8_t *at = room;
    int is_first = horizon < 0;
    for (int64_t index = 0; index < batch->count; index++) {
        int64_t size, delta;
        int is_shortest;
        if (!take_varint(&records, &size, &is_shortest)) break;
        const uint8_t *start = take(&records, size);
        if (!start || !keeps[index]) continue;
        Cursor rest = {start, start + size};
        if (!take(&rest, 1) || !take_varlong(&rest, &delta, &is_shortest)) break;
        const int64_t timestamp = is_append_time ? batch->max_timestamp : wrapping_sum(batch->base_timestamp, delta);
        if (is_first) kept.base_timestamp = timestamp;
        is_first = 0;
        if (timestamp > kept.max_timestamp) kept.max_timestamp = timestamp;
        delta = wrapping_difference(timestamp, kept.base_timestamp);
        at = put_varint(at, 1 + uvarint_bytes(zigzag(delta)) + bytes_left(&rest));
        *at++ = 0; /* attributes */
        at = put_varint(at, delta);
        copy_wide(at, rest.at, bytes_left(&rest), records.end);
        at += bytes_left(&rest);
    }
    kept.bytes = at - room;
    return kept;
}

/* (batch, keeps, delete horizon ms, room) -> bytes written, base timestamp, largest timestamp */
KERNEL(write_kept) {
    const Kept kept =
        put_kept((const Batch *)arguments[0], (const uint8_t *)arguments[2], arguments[4], (uint8_t *)arguments[5]);
    results[0] = kept.bytes;
    results[1] = kept.base_timestamp;
    results[2] = kept.max_timestamp;
}

/* Rebuild a plain batch of magic 2, except its checksum: its size. */
static int64_t rebuild(const Batch *batch, const uint8_t *source, const uint8_t *keeps, const Weights *weights,
                       int64_t new_horizon_ms, uint8_t *room) {
    int64_t horizon = -1, attributes = batch->attributes & KNOWN_FLAGS;
    if (attributes & DELETE_HORIZON_FLAG)
        horizon = batch->base_timestamp; /* once set, it stays */
    else if (weights->tombstones > 0)
        horizon = new_horizon_ms;
    if (horizon >= 0) attributes |= DELETE_HORIZON_FLAG;
    memcpy(room, source, DEFAULT_HEADER_BYTES);
    const Kept kept = put_kept(batch, keeps, horizon, room + DEFAULT_HEADER_BYTES);
    const int64_t size = DEFAULT_HEADER_BYTES + kept.bytes;
    put_big32(room + SIZE_POSITION, (int32_t)(size - FRAME_BYTES));
    put_big16(room + ATTRIBUTES_POSITION, (int16_t)attributes);
    put_big64(room + BASE_TIMESTAMP_POSITION, kept.base_timestamp);
    if (!(attributes & LOG_APPEND_TIME_FLAG)) put_big64(room + MAX_TIMESTAMP_POSITION, kept.max_timestamp);
    put_big32(room + COUNT_POSITION, (int32_t)weights->kept);
    return size;
}

/* (source, table, verdicts, first, last, starts, keeps, weights, new horizon ms, room, places)
 * -> the batch with verdict LOOK or last, bytes written, rows of places
 *
 * Write the retained plain batches [first, last), in order, up to one with verdict LOOK. source: where the positions of
 * the table count from. starts: of each batch in keeps. A batch whose retained tombstones have no delete horizon gets the
 * new one. places: position in the room and size of each rebuilt batch; the caller sets its checksum. */
KERNEL(write_batches) {
    const uint8_t *const source = (const uint8_t *)arguments[0], *const keeps = (const uint8_t *)arguments[10];
    const Batch *const table = (const Batch *)arguments[1];
    const int64_t *const verdicts = (const int64_t *)arguments[4], *const starts = (const int64_t *)arguments[8];
    const int64_t last = arguments[7], new_horizon_ms = arguments[15];
    const Weights *const weights = (const Weights *)arguments[12];
    uint8_t *const room = (uint8_t *)arguments[16];
    NewBatch *const places = (NewBatch *)arguments[17];
    int64_t used = 0, count = 0, i = arguments[6];
    for (; i < last && verdicts[i] != VERDICT_LOOK; i++) {
        const Batch *const batch = table + i;
        if (verdicts[i] == VERDICT_COPY) {
            int64_t size = batch->size;
            while (i + 1 < last && verdicts[i + 1] == VERDICT_COPY) size += table[++i].size; /* adjacent ones at once */
            memcpy(room + used, source + batch->position, (size_t)size);
            used += size;
        } else if (verdicts[i] == VERDICT_REBUILD) {
            const uint8_t *const before = source + batch->position;
            places[count].position = used;
            places[count].size =
                rebuild(batch, before, keeps + starts[i], &weights[i], new_horizon_ms, room + used);
            used += places[count++].size;
        }
    }
    results[0] = i;
    results[1] = used;
    results[2] = count;
}
