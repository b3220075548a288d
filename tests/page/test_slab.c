/* SPDX-License-Identifier: MIT */
/* The slab of slice records: caches, the end of host memory, the end of addresses. The
 * slab is the process's, so the order of the tests matters. */
#include "page/slice.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define ROOM ((size_t)24 << 20) /* addresses left to the slab: 16 MiB of records */
#define RECORDS_MOST (((uint32_t)16 << 20) / sizeof(wr_slice))

static bool is_limited;

/* Bytes of addresses that the process has. */
static size_t addresses(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * 4096;
}

static void open__takes_what_addresses_there_are(void **state)
{
    (void)state;
    const char *sanitizers = getenv("WEIR_SANITIZE");
    is_limited = sanitizers == NULL || sanitizers[0] == 0;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    if (is_limited) { /* sanitizers live on addresses */
        limit = before;
        limit.rlim_cur = addresses() + ROOM;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    }
    assert_false(wr_slab_has(64));
    assert_true(wr_slab_open());
    wr_slice *base = wr_slab_base;
    assert_non_null(base);
    assert_true(wr_slab_open()); /* once per process */
    assert_ptr_equal(wr_slab_base, base);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

static void fill__hands_out_different_records_of_generation_one(void **state)
{
    (void)state;
    wr_slab_cache cache = {0};
    assert_true(wr_slab_fill(&cache, 100));
    assert_true(cache.count >= 100);
    uint32_t count = cache.count;
    assert_true(wr_slab_fill(&cache, 50)); /* it has them */
    assert_int_equal(cache.count, count);
    wr_slice_id last = 0;
    for (uint32_t i = 0; i < 100; i++) {
        wr_slice *slice = wr_slab_pop(&cache);
        wr_slice_id id = wr_slice_id_of(slice);
        assert_true(id != 0 && id != last && id % sizeof(wr_slice) == 0);
        assert_true(wr_slab_has(id));
        assert_false(wr_slab_has(id + 1));
        assert_int_equal(wr_word_generation(slice->word), 1);
        assert_int_equal(wr_word_references(slice->word), 0);
        slice->held.link = last;
        last = id;
    }
    while (last != 0) {
        wr_slice *slice = wr_slice_get(last);
        last = slice->held.link;
        wr_slab_push(&cache, slice);
        assert_int_equal(slice->state, WR_SLICE_STATE_SPARE);
    }
    wr_slab_trim(&cache, 7);
    assert_int_equal(cache.count, 7);
    wr_slab_trim(&cache, 8);
    assert_int_equal(cache.count, 7);
    wr_slab_trim(&cache, 0);
    assert_int_equal(cache.first, 0);
}

static void caches__that_grow_too_large_give_most_of_it_back(void **state)
{
    (void)state;
    wr_slab_cache cache = {0};
    assert_true(wr_slab_fill(&cache, WR_SLAB_CACHE_MAX));
    wr_slab_trim(&cache, WR_SLAB_CACHE_MAX);
    wr_slab_trim_above(&cache);
    assert_int_equal(cache.count, WR_SLAB_CACHE_MAX);
    assert_true(wr_slab_fill(&cache, WR_SLAB_CACHE_MAX + 1));
    wr_slab_trim_above(&cache);
    assert_int_equal(cache.count, WR_SLAB_CACHE_MAX / 4);
    wr_slab_trim(&cache, 0);
}

/* Marks the records of a cache, none of which may be marked. */
static void mark(const wr_slab_cache *cache, unsigned char *marks)
{
    wr_slice_id id = cache->first;
    for (uint32_t i = 0; i < cache->count; i++) {
        assert_true(wr_slab_has(id) && marks[id / sizeof(wr_slice)] == 0);
        marks[id / sizeof(wr_slice)] = 1;
        id = wr_slice_get(id)->next;
    }
}

static void records__go_from_cache_to_cache_and_none_is_in_two(void **state)
{
    (void)state;
    static unsigned char marks[65536];
    wr_slab_cache caches[3] = {{0}};
    uint32_t seed = 1;
    for (int round = 0; round < 500; round++) {
        wr_slab_cache *cache = &caches[round % 3];
        seed = seed * 1664525 + 1013904223;
        uint32_t count = (seed >> 16) % 300;
        if (cache->count > count) {
            wr_slab_trim(cache, count);
            assert_int_equal(cache->count, count);
        } else {
            assert_true(wr_slab_fill(cache, count));
        }
        memset(marks, 0, sizeof marks);
        for (int i = 0; i < 3; i++) {
            mark(&caches[i], marks);
        }
    }
    /* Nothing was lost: four chunks have what the caches held at most. */
    assert_false(wr_slab_has(4 * 512 * sizeof(wr_slice)));
    for (int i = 0; i < 3; i++) {
        wr_slab_trim(&caches[i], 0);
    }
}

static void fill__without_host_memory_keeps_what_could_be_had(void **state)
{
    (void)state;
    wr_slab_cache cache = {0};
    wr_host_fail_nth(1);
    assert_false(wr_slab_fill(&cache, 5000)); /* more than one chunk has */
    wr_host_fail_nth(0);
    uint32_t had = cache.count;
    assert_true(had < 5000);
    assert_true(wr_slab_fill(&cache, 5000));
    assert_true(cache.count >= 5000);
    wr_slab_trim(&cache, 0);
}

static void fill__ends_with_the_addresses_and_hands_out_again_what_came_back(void **state)
{
    (void)state;
    if (!is_limited) {
        skip();
    }
    wr_slab_cache all = {0}, late = {0};
    while (wr_slab_fill(&all, all.count + 1000)) {
        assert_true(all.count <= RECORDS_MOST);
    }
    assert_true(all.count >= 1000);
    assert_false(wr_slab_fill(&late, 1));
    assert_int_equal(late.count, 0);
    uint32_t had = all.count;
    wr_slab_trim(&all, had - 3);
    assert_true(wr_slab_fill(&late, 3));
    assert_int_equal(late.count, 3); /* and no more */
    assert_false(wr_slab_fill(&late, 4));
    wr_slab_trim(&late, 0);
    wr_slab_trim(&all, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open__takes_what_addresses_there_are),
        cmocka_unit_test(fill__hands_out_different_records_of_generation_one),
        cmocka_unit_test(caches__that_grow_too_large_give_most_of_it_back),
        cmocka_unit_test(records__go_from_cache_to_cache_and_none_is_in_two),
        cmocka_unit_test(fill__without_host_memory_keeps_what_could_be_had),
        cmocka_unit_test(
            fill__ends_with_the_addresses_and_hands_out_again_what_came_back),
    };
    return cmocka_run_group_tests_name("page, slab", tests, NULL, NULL);
}
