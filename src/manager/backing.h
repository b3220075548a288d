/* SPDX-License-Identifier: MIT */
/* Memory for bare addresses: unheld chunks are moved there, longest unheld first, and
 * only what they cannot cover is asked of the driver.
 *
 *      piece      [    moved    |  not backed, after a failure  |  new  ]
 */
#ifndef WR_MANAGER_BACKING_H
#define WR_MANAGER_BACKING_H

#include "harvest.h"
#include "place.h"

/* A bare stretch of addresses: backed from its start by moves, at its end by new
 * granules.
 */
typedef struct wr_piece {
    wr_slice *slice; /* in transit: in no index */
    wr_loot loot;    /* chunks to move there; they fit */
    uint64_t moved_bytes, new_bytes;
} wr_piece;

typedef struct wr_backing {
    wr_bank *bank;
    wr_manager *manager; /* whose own unheld chunks are taken first, after the bank's */
    wr_class *class;
    wr_page *page;
    bool only_new; /* nothing is moved there */
    bool tight;    /* only for a better place: no new granules */
    wr_piece pieces[WR_PLACE_SEGMENTS];
    uint32_t piece_count;
    uint64_t bare_bytes; /* of all pieces */

    bool full;               /* the class's cap has refused */
    uint64_t promised_bytes; /* counted in the class... */
    uint64_t new_bytes;      /* ...and in the bank; the caller subtracts both */
    uint64_t planned_bytes;  /* in the pieces' loot */
    wr_loot loot;            /* taken, but in no piece's loot; the caller keeps it */
    wr_slice_id moved;       /* slices whose memory has been moved, by held.link */
} wr_backing;

/* Backs all pieces, with no lock held. BUSY: a tight one would take new memory. On
 * failure no piece has new memory, unless the driver refused to take it back, but some
 * may have moved memory. */
weir_result wr_backing_fill(wr_backing *backing);

/* Bytes that are new. */
uint64_t wr_backing_made(const wr_backing *backing);

#endif
