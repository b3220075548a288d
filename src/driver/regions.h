/* SPDX-License-Identifier: MIT */
/* The address book of a driver: every page and every range it handed out, by address, and
 * for ranges two bits per granule: whether it is committed, and whether it belongs to the
 * chunk of the granule before it.
 *
 *   page   | address ......... bytes |
 *   range  | address ......... bytes |   committed: 1 1 0 0 1 ...
 *                                        joined:    0 1 0 0 0 ...
 *
 * What Weir asks is checked against the book before anything is done: a page that is not
 * there, a granule committed twice, a range given back with memory in it are INVALID with
 * a text. No system call and no memory of its own beyond one node per region.
 *
 * Invariant: regions do not overlap; `committed_count` is the number of set bits. A treap
 * keyed by address, the priority a hash of the address, so that depth does not depend on
 * the order of calls. The caller's lock guards all of it. */
#ifndef WR_DRIVER_REGIONS_H
#define WR_DRIVER_REGIONS_H

#include <weir/base.h>

typedef struct wr_region {
    uint64_t address;
    uint64_t bytes;
    uint64_t priority;
    struct wr_region *left;   /* lower addresses */
    struct wr_region *right;  /* higher addresses */
    bool is_range;            /* else a page */
    uint64_t committed_count; /* granules with memory */
    void *data;               /* the driver's own; NULL at first */
    size_t word_count;        /* of each kind of bits */
    uint64_t granules[];      /* ranges only: bits "committed", then bits "joined" */
} wr_region;

typedef struct wr_regions {
    const char *driver;     /* for error texts */
    uint64_t granule_bytes; /* 0: no ranges */
    wr_region *root;
} wr_regions;

/* A region that is in no book yet, without an address; NULL when the host has no memory.
 */
wr_region *wr_region_create_page(uint64_t bytes);
wr_region *wr_region_create_range(uint64_t bytes, uint64_t granule_bytes);
/* NULL is fine. */
void wr_region_destroy(wr_region *region);

/* The size is a positive multiple of the granule, for `call` (its name, for the text). */
weir_result wr_regions_check_size(const wr_regions *book, const char *call,
                                  uint64_t bytes);

/* Enters a region whose address is set. */
void wr_regions_add(wr_regions *book, wr_region *region);
/* Strikes a region of the book out. */
void wr_regions_remove(wr_regions *book, wr_region *region);
/* Strikes any one out; NULL when the book is empty. */
wr_region *wr_regions_remove_any(wr_regions *book);

/* The region that holds the byte at `address`, or NULL. */
wr_region *wr_regions_find(const wr_regions *book, uint64_t address);
/* The page, or the range without memory, that is exactly [address, address + bytes). */
weir_result wr_regions_get_page(const wr_regions *book, const char *call,
                                uint64_t address, uint64_t bytes, wr_region **region);
weir_result wr_regions_get_range(const wr_regions *book, const char *call,
                                 uint64_t address, uint64_t bytes, wr_region **region);
/* The range whose whole granules [address, address + bytes) are all committed, in whole
 * chunks, or all bare. */
weir_result wr_regions_get_committed(const wr_regions *book, const char *call,
                                     uint64_t address, uint64_t bytes,
                                     wr_region **region);
weir_result wr_regions_get_bare(const wr_regions *book, const char *call,
                                uint64_t address, uint64_t bytes, wr_region **region);
/* OK if every byte of [address, address + bytes) has memory. */
weir_result wr_regions_check_backed(const wr_regions *book, const char *call,
                                    uint64_t address, uint64_t bytes);

/* Sets the state of granules that all have the other one; what is committed are chunks
 * of a granule each. */
void wr_regions_mark(const wr_regions *book, wr_region *region, uint64_t address,
                     uint64_t bytes, bool committed);
/* Marks bare granules as committed in chunks of `chunk_bytes`, the last one maybe
 * shorter.
 */
void wr_regions_mark_chunks(const wr_regions *book, wr_region *region, uint64_t address,
                            uint64_t bytes, uint64_t chunk_bytes);
/* Marks bare granules as committed, and the chunks [from, from + bytes) of `source`,
 * whose sizes they take, as bare. */
void wr_regions_move(const wr_regions *book, wr_region *target, uint64_t to,
                     wr_region *source, uint64_t from, uint64_t bytes);
/* How many chunks of one size, `*chunk_bytes`, begin the committed ones [address,
 * address + bytes): 1 of several granules, or as many of one as there are in a row. */
uint64_t wr_regions_chunk_run(const wr_regions *book, const wr_region *region,
                              uint64_t address, uint64_t bytes, uint64_t *chunk_bytes);
/* The size of chunks is a positive multiple of the granule. */
weir_result wr_regions_check_chunk(const wr_regions *book, uint64_t chunk_bytes);
/* The end of the run of bytes from `address` (in `region`) on that have memory, or have
 * none, as that byte; `*backed` says which. A run that goes on behind `limit` may be cut
 * there, or at the end of that granule. */
uint64_t wr_regions_run_end(const wr_regions *book, const wr_region *region,
                            uint64_t address, uint64_t limit, bool *backed);

#endif
