/* SPDX-License-Identifier: MIT */
/* The search for a place: in ranges with few segments it must find the best window there
 * is, which is sought here unit by unit. */
#include "manager/place.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESS UINT64_C(0x40000000)
#define GRANULES 12u
#define PER_GRANULE 4u /* units */
#define GRANULE (PER_GRANULE * WR_UNIT_BYTES)
#define UNITS (GRANULES * PER_GRANULE)

/* What a unit of the range is. */
typedef enum kind { TAKEN, OWN, UNHELD, BARE } kind;

typedef struct rig {
    wr_bank bank;
    wr_manager manager;
    wr_pool pool, stranger;
    wr_class *class;
    wr_page *page;
    wr_slab_cache cache;
    wr_index own, unheld, bare;
    kind units[UNITS];
    uint32_t touched; /* granules */
} rig;

static rig *open_rig(void)
{
    static rig r;
    memset(&r, 0, sizeof r);
    wr_index_init(&r.own);
    wr_index_init(&r.unheld);
    wr_index_init(&r.bare);
    assert_true(wr_slab_open());
    assert_true(wr_slab_fill(&r.cache, 64));
    r.page = wr_page_create(ADDRESS, GRANULES * GRANULE, GRANULE, NULL);
    assert_non_null(r.page);
    r.bank.granule_bytes = GRANULE;
    r.class = &r.bank.classes[0];
    r.class->range = r.page;
    r.class->bare = &r.bare;
    r.class->bank.index = &r.unheld;
    r.class->bank.range = r.page;
    r.pool.index = &r.own;
    r.pool.range = r.page;
    r.pool.manager = &r.manager;
    r.manager.bank = &r.bank;
    for (uint32_t i = 0; i < UNITS; i++) {
        r.units[i] = BARE;
    }
    return &r;
}

static void close_rig(rig *r)
{
    wr_page_destroy(r->page);
    wr_slab_trim(&r->cache, 0); /* the few that are linked stay the page's */
}

static wr_slice *spare(rig *r, uint64_t unit, uint64_t count, wr_slice_state state)
{
    wr_slice *slice = wr_slab_pop(&r->cache);
    slice->address = ADDRESS + unit * WR_UNIT_BYTES;
    slice->extent_bytes = count * WR_UNIT_BYTES;
    slice->page = r->page->id;
    slice->state = (uint8_t)state;
    return slice;
}

/* Whole granules behind those that are touched already. */
static wr_slice *add(rig *r, uint32_t granules, kind of, wr_pool *owner)
{
    wr_slice_state state = of == TAKEN  ? WR_SLICE_STATE_HELD
                           : of == BARE ? WR_SLICE_STATE_BARE
                                        : WR_SLICE_STATE_FREE;
    wr_slice *slice = spare(r, r->touched * PER_GRANULE, granules * PER_GRANULE, state);
    for (uint32_t i = 0; i < granules * PER_GRANULE; i++) {
        r->units[r->touched * PER_GRANULE + i] = of;
    }
    r->touched += granules;
    r->page->touched = r->touched;
    wr_page_link(r->page, slice, owner);
    if (of == UNHELD) {
        wr_index_insert(&r->unheld, slice);
    } else if (of == BARE) {
        wr_index_insert(&r->bare, slice);
    }
    return slice;
}

static void add_bank(rig *r, uint32_t granules, kind of)
{
    add(r, granules, of, &r->class->bank);
}

static void add_stranger(rig *r, uint32_t granules)
{
    add(r, granules, TAKEN, &r->stranger);
}

/* A span of the pool: held but for the units [begin, end). */
static void add_own(rig *r, uint32_t granules, uint32_t begin, uint32_t end)
{
    uint32_t first = r->touched * PER_GRANULE, all = granules * PER_GRANULE;
    wr_slice *slice = add(r, granules, TAKEN, &r->pool);
    if (begin > 0) {
        wr_slice *rest = wr_slab_pop(&r->cache);
        wr_page_split(r->page, slice, ADDRESS + (first + begin) * WR_UNIT_BYTES, rest);
        slice = rest;
    }
    if (end < all) {
        wr_page_split(r->page, slice, ADDRESS + (first + end) * WR_UNIT_BYTES,
                      wr_slab_pop(&r->cache));
    }
    slice->state = WR_SLICE_STATE_FREE;
    wr_index_insert(&r->own, slice);
    for (uint32_t i = first + begin; i < first + end; i++) {
        r->units[i] = OWN;
    }
}

/* The fewest bare bytes that any window takes; UINT64_MAX: there is none. */
static uint64_t seek(const rig *r, uint32_t run)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t begin = 0; begin + run <= UNITS; begin++) {
        uint32_t from = begin, to = begin + run;
        bool fits = true;
        for (uint32_t i = from; i < to && fits; i++) {
            fits = r->units[i] != TAKEN;
        }
        if (!fits) {
            continue;
        }
        from = r->units[from] == OWN ? from : from / PER_GRANULE * PER_GRANULE;
        to = r->units[to - 1] == OWN ? to
                                     : (to + PER_GRANULE - 1) / PER_GRANULE * PER_GRANULE;
        uint64_t bare = 0;
        for (uint32_t i = from; i < to; i++) {
            bare += r->units[i] == BARE ? WR_UNIT_BYTES : 0;
        }
        best = bare < best ? bare : best;
    }
    return best;
}

/* The place touches only what is free, without a gap, and is long enough. */
static void check_place(const rig *r, const wr_place *place, uint64_t run_bytes)
{
    uint64_t at = place->segments[0].begin, bare = 0;
    for (uint32_t i = 0; i < place->count; i++) {
        const wr_segment *segment = &place->segments[i];
        assert_int_equal(segment->begin, at);
        assert_true(segment->end > segment->begin);
        at = segment->end;
        for (uint64_t a = segment->begin; a < segment->end; a += WR_UNIT_BYTES) {
            kind of = r->units[(a - ADDRESS) / WR_UNIT_BYTES];
            assert_int_not_equal(of, TAKEN);
            bare += of == BARE ? WR_UNIT_BYTES : 0;
        }
    }
    assert_true(at - place->segments[0].begin >= run_bytes);
    assert_int_equal(bare, place->bare_bytes);
}

static bool has_own_run(const rig *r, uint32_t run)
{
    uint32_t length = 0, longest = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        length = r->units[i] == OWN ? length + 1 : 0;
        longest = length > longest ? length : longest;
    }
    return longest >= run;
}

/* The tight search looks less far, but where the pool has a run already it finds one. */
static void check_find_tight(rig *r, uint32_t run)
{
    wr_place place;
    wr_place_find_tight(&r->bank, &r->pool, run * WR_UNIT_BYTES, &place);
    assert_true(place.count > 0 || !has_own_run(r, run));
    if (place.count > 0) {
        check_place(r, &place, run * WR_UNIT_BYTES);
    }
}

static void check_find(rig *r, uint32_t run)
{
    wr_place place;
    uint64_t best = seek(r, run);
    wr_place_find(&r->bank, &r->pool, run * WR_UNIT_BYTES, &place);
    if (best == UINT64_MAX) {
        assert_int_equal(place.count, 0);
        return;
    }
    assert_true(place.count > 0);
    check_place(r, &place, run * WR_UNIT_BYTES);
    assert_int_equal(place.bare_bytes, best);
    check_find_tight(r, run);
}

/* ---- edges ---- */

static void place__of_all_addresses_is_found_and_none_of_more(void **state)
{
    (void)state;
    rig *r = open_rig();
    check_find(r, 1);
    check_find(r, UNITS);
    wr_place place;
    wr_place_find(&r->bank, &r->pool, (UNITS + 1) * WR_UNIT_BYTES, &place);
    assert_int_equal(place.count, 0);
    close_rig(r);
}

static void place__is_found_where_no_address_is_untouched(void **state)
{
    (void)state;
    rig *r = open_rig();
    add_stranger(r, 5);
    add_bank(r, 2, BARE);
    add_stranger(r, 5);
    for (uint32_t run = 1; run <= 3 * PER_GRANULE; run++) {
        check_find(r, run);
    }
    close_rig(r);
}

static void place__begins_at_the_first_and_ends_at_the_last_address(void **state)
{
    (void)state;
    rig *r = open_rig();
    add_own(r, 1, 0, 3);
    add_stranger(r, GRANULES - 2);
    add_own(r, 1, 1, 4);
    for (uint32_t run = 1; run <= PER_GRANULE; run++) {
        check_find(r, run);
    }
    close_rig(r);
}

static void place__joins_own_ends_with_what_the_bank_has_between(void **state)
{
    (void)state;
    rig *r = open_rig();
    add_own(r, 2, 3, 8);
    add_bank(r, 1, UNHELD);
    add_bank(r, 1, BARE);
    add_own(r, 2, 0, 5);
    wr_place place;
    wr_place_find(&r->bank, &r->pool, 18 * WR_UNIT_BYTES, &place);
    assert_int_equal(place.count, 4);
    assert_int_equal(place.bare_bytes, GRANULE);
    check_find(r, 18);
    close_rig(r);
}

static void place__is_not_made_of_neighbours_that_are_held(void **state)
{
    (void)state;
    rig *r = open_rig();
    add_own(r, 3, 5, 7); /* held on both sides, of this pool */
    add_stranger(r, 1);
    add_bank(r, 1, UNHELD);
    add_stranger(r, GRANULES - 5);
    for (uint32_t run = 1; run <= 5; run++) {
        check_find(r, run);
    }
    close_rig(r);
}

/* ---- at random ---- */

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random % below);
}

static void add_random(rig *r, uint64_t *random, kind *before)
{
    uint32_t room = GRANULES - r->touched;
    uint32_t granules = 1 + draw(random, room < 4 ? room : 4);
    kind of = (kind)draw(random, 4);
    if (of == OWN && *before != OWN) {
        uint32_t begin = draw(random, granules * PER_GRANULE);
        uint32_t left = granules * PER_GRANULE - begin;
        add_own(r, granules, begin, begin + 1 + draw(random, left));
    } else if ((of == UNHELD || of == BARE) && *before != of) {
        add_bank(r, granules, of);
    } else {
        add_stranger(r, granules);
        of = TAKEN;
    }
    *before = of;
}

static void place__takes_the_fewest_new_granules_at_random(void **state)
{
    (void)state;
    const char *seed = getenv("WEIR_SEED");
    uint64_t random = seed == NULL ? 362436069u : strtoull(seed, NULL, 0) * 2 + 1;
    print_message("seed %llu\n", (unsigned long long)random);
    for (int round = 0; round < 3000; round++) {
        rig *r = open_rig();
        kind before = TAKEN;
        for (int i = 0; i < 4 && r->touched < GRANULES; i++) {
            add_random(r, &random, &before);
        }
        for (int i = 0; i < 4; i++) {
            check_find(r, 1 + draw(&random, UNITS));
        }
        close_rig(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place__of_all_addresses_is_found_and_none_of_more),
        cmocka_unit_test(place__is_found_where_no_address_is_untouched),
        cmocka_unit_test(place__begins_at_the_first_and_ends_at_the_last_address),
        cmocka_unit_test(place__joins_own_ends_with_what_the_bank_has_between),
        cmocka_unit_test(place__is_not_made_of_neighbours_that_are_held),
        cmocka_unit_test(place__takes_the_fewest_new_granules_at_random),
    };
    return cmocka_run_group_tests_name("manager, place", tests, NULL, NULL);
}
