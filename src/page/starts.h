/* SPDX-License-Identifier: MIT */
/* Where buffers begin: from an address to the handle of the buffer that begins there, or
 * that holds it. For the pointer interface only; nobody else enters anything, and nothing
 * else asks.
 *
 * A tree like a processor's page table. Its leaves know granules of 2 MiB, these blocks
 * of 64 KiB, and these units of 256 bytes, in which every buffer begins:
 *
 *      address  | 56 .. 45 | 44 .. 33 | 32 .. 21 | 20 .. 16 | 15 .. 8 | 7 .. 0 |
 *                  root       node       leaf       block      unit       0
 *
 *      leaf     cover: where the buffer begins that holds the granule's first byte
 *      block    the one buffer of 64 KiB and more that begins here: two have no room
 *      small    one entry per unit, made when the first smaller buffer begins in the
 * block
 *
 * So large buffers cost 1/2,000 of the memory they lie in and small ones 1/28, and what
 * is larger than a granule one more store for each.
 *
 * An entry is the value of the buffer, see wr_start_value. It stays when the buffer goes:
 * generations tell that it is stale, and a mark that its pointer has been freed. So
 * nothing needs to be taken out, and an address that was freed is known as such.
 *
 * No lock: all words are atomic, and `begin` and size are written before the value; parts
 * of the tree are made once, by compare-and-swap, and stay until the whole tree goes. */
#ifndef WR_PAGE_STARTS_H
#define WR_PAGE_STARTS_H

#include "slice.h"

#include "base/hot.h"

#define WR_STARTS_FANOUT 4096
#define WR_STARTS_ADDRESS_BITS 57
#define WR_STARTS_BLOCKS 32u /* in a granule */
#define WR_STARTS_UNITS 256u /* in a block */
#define WR_STARTS_LARGE_BYTES (UINT64_C(1) << 16)

/* An entry's bit that says that the pointer has been freed. Handles' indexes are
 * multiples of 64, so it is none of theirs. */
#define WR_START_FREED UINT64_C(1)

static inline uint64_t wr_start_value(uint32_t index, uint32_t generation)
{
    return (uint64_t)generation << 32 | index;
}

typedef struct wr_starts_small {
    _Atomic uint64_t value[WR_STARTS_UNITS];
    _Atomic uint8_t units[WR_STARTS_UNITS]; /* sizes */
} wr_starts_small;

typedef struct wr_starts_block {
    _Atomic uint64_t value; /* of the large one */
    _Atomic uint64_t begin, bytes;
    wr_starts_small *_Atomic small;
} wr_starts_block;

typedef struct wr_starts_leaf {
    _Atomic uint64_t cover[WR_STARTS_FANOUT];
    wr_starts_block *_Atomic blocks[WR_STARTS_FANOUT]; /* WR_STARTS_BLOCKS each */
} wr_starts_leaf;

typedef struct wr_starts_node {
    wr_starts_leaf *_Atomic leaves[WR_STARTS_FANOUT];
} wr_starts_node;

/* The root; zeroed it is empty. */
typedef struct wr_starts {
    wr_starts_node *_Atomic nodes[WR_STARTS_FANOUT];
} wr_starts;

#define WR_STARTS_LOAD(place) atomic_load_explicit(&(place), memory_order_acquire)

/* The place of an address below one of WR_STARTS_ADDRESS_BITS in its root, node or leaf.
 */
static inline uint32_t wr_starts_index(uint64_t address, uint32_t shift)
{
    return (uint32_t)(address >> shift) % WR_STARTS_FANOUT;
}

/* ---- entering ---- */

/* The block of an address, made if need be; NULL: no host memory, or an address of more
 * bits. */
wr_starts_block *wr_starts_get(wr_starts *starts, uint64_t address);

/* Enters the buffer [address, address + bytes), not empty, which begins in `block`.
 * False, with nothing entered: no host memory. */
bool wr_starts_enter(wr_starts *starts, wr_starts_block *block, uint64_t address,
                     uint64_t bytes, uint64_t value);

/* ---- finding ---- */

static inline wr_starts_leaf *wr_starts_find_leaf(const wr_starts *starts,
                                                  uint64_t address)
{
    if (WR_UNLIKELY(address >> WR_STARTS_ADDRESS_BITS != 0)) {
        return NULL;
    }
    const wr_starts_node *node =
        WR_STARTS_LOAD(starts->nodes[wr_starts_index(address, 45)]);
    return node == NULL ? NULL
                        : WR_STARTS_LOAD(node->leaves[wr_starts_index(address, 33)]);
}

/* The block of an address, NULL if nothing began near it ever. */
static inline wr_starts_block *wr_starts_find(const wr_starts *starts, uint64_t address)
{
    const wr_starts_leaf *leaf = wr_starts_find_leaf(starts, address);
    wr_starts_block *blocks =
        leaf == NULL ? NULL : WR_STARTS_LOAD(leaf->blocks[wr_starts_index(address, 21)]);
    return blocks == NULL ? NULL : &blocks[(address >> 16) % WR_STARTS_BLOCKS];
}

/* An entry as it was read. */
typedef struct wr_start {
    _Atomic uint64_t *entry;
    uint64_t value;
    uint64_t begin, bytes; /* the buffer's, if its handle is valid after the reading */
} wr_start;

/* The entry of the last small buffer that began at `address`, which lies in `block`;
 * false if there was none. */
static inline bool wr_start_read_small(const wr_starts_block *block, uint64_t address,
                                       wr_start *start)
{
    wr_starts_small *small = WR_STARTS_LOAD(block->small);
    uint32_t unit = (uint32_t)(address >> WR_UNIT_SHIFT) % WR_STARTS_UNITS;
    if (small == NULL || address % WR_UNIT_BYTES != 0) {
        return false;
    }
    start->entry = &small->value[unit];
    start->value = WR_STARTS_LOAD(small->value[unit]);
    start->begin = address;
    start->bytes = WR_STARTS_LOAD(small->units[unit]) * WR_UNIT_BYTES;
    return start->value != 0;
}

/* The entry of the last large buffer that began in the block; false if there was none. */
static inline bool wr_start_read_large(wr_starts_block *block, wr_start *start)
{
    start->entry = &block->value;
    start->value = WR_STARTS_LOAD(block->value);
    start->begin = WR_STARTS_LOAD(block->begin);
    start->bytes = WR_STARTS_LOAD(block->bytes);
    return start->value != 0;
}

/* Shows `accept` the entries of buffers that may hold the byte at `address`, nearest
 * first, until it returns true. */
typedef bool (*wr_starts_accept)(void *context, const wr_start *start);
bool wr_starts_search(const wr_starts *starts, uint64_t address, wr_starts_accept accept,
                      void *context);

/* Frees the tree, but not the root. No other call may be under way. */
void wr_starts_finish(wr_starts *starts);

#endif
