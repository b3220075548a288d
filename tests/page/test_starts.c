/* SPDX-License-Identifier: MIT */
/* The tree of starts, against a plain list of buffers. */
#include "page/starts.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define BASE ((uint64_t)0x7f0000000000)
#define BUFFERS 400

typedef struct buffer {
    uint64_t begin, bytes, value;
} buffer;

static bool take_any(void *context, const wr_start *start)
{
    *(wr_start *)context = *start;
    return true;
}

/* The nearest entry that holds the address, whatever its value. */
typedef struct query {
    uint64_t address;
    wr_start start;
} query;

static bool take_holder(void *context, const wr_start *start)
{
    query *q = context;
    q->start = *start;
    return q->address - start->begin < start->bytes;
}

static bool enter(wr_starts *starts, uint64_t address, uint64_t bytes, uint64_t value)
{
    wr_starts_block *block = wr_starts_get(starts, address);
    return block != NULL && wr_starts_enter(starts, block, address, bytes, value);
}

static bool find_small(const wr_starts *starts, uint64_t address, wr_start *start)
{
    wr_starts_block *block = wr_starts_find(starts, address);
    return block != NULL && wr_start_read_small(block, address, start);
}

static bool find_large(const wr_starts *starts, uint64_t address, wr_start *start)
{
    wr_starts_block *block = wr_starts_find(starts, address);
    return block != NULL && wr_start_read_large(block, start) && start->begin == address;
}

static uint64_t value_of(uint64_t number)
{
    return wr_start_value((uint32_t)number * 64, 7);
}

static void starts__an_empty_tree_knows_nothing(void **state)
{
    (void)state;
    static wr_starts starts;
    wr_start start;
    const uint64_t addresses[] = {0, 256, BASE, (uint64_t)1 << 56, UINT64_MAX};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_false(find_small(&starts, addresses[i], &start));
        assert_false(find_large(&starts, addresses[i], &start));
        assert_false(wr_starts_search(&starts, addresses[i], take_any, &start));
    }
    wr_starts_finish(&starts);
}

static void starts__finds_a_start_by_its_exact_address_only(void **state)
{
    (void)state;
    static wr_starts starts;
    wr_start start;
    uint64_t small = BASE + 256, large = BASE + 64 * KIB + 512;
    assert_true(enter(&starts, small, 512, value_of(1)));
    assert_true(enter(&starts, large, 8 * MIB, value_of(2)));
    assert_true(find_small(&starts, small, &start));
    assert_int_equal(start.value, value_of(1));
    assert_int_equal(start.bytes, 512);
    assert_false(find_small(&starts, small + 1, &start));
    assert_false(find_small(&starts, small + 256, &start));
    assert_false(find_large(&starts, small, &start));
    assert_true(find_large(&starts, large, &start));
    assert_int_equal(start.value, value_of(2));
    assert_int_equal(start.bytes, 8 * MIB);
    assert_false(find_large(&starts, large - 256, &start));
    assert_false(find_small(&starts, large, &start));
    wr_starts_finish(&starts);
}

static void starts__refuses_addresses_beyond_its_bits(void **state)
{
    (void)state;
    static wr_starts starts;
    assert_false(enter(&starts, (uint64_t)1 << 57, 256, value_of(1)));
    assert_true(enter(&starts, ((uint64_t)1 << 57) - 256, 256, value_of(1)));
    wr_starts_finish(&starts);
}

/* Buffers of all sizes, side by side and with gaps, across granules and leaves. */
static size_t lay_out(wr_starts *starts, buffer *buffers)
{
    uint64_t at = BASE + 8188 * MIB; /* soon the next leaf */
    for (size_t i = 0; i < BUFFERS; i++) {
        unsigned shift = 8 + (unsigned)rand() % 17;
        uint64_t bytes =
            (((uint64_t)1 << shift) + (uint64_t)rand() % ((uint64_t)1 << shift)) &
            ~255ULL;
        at += (uint64_t)(rand() % 3) * 256 * (uint64_t)(rand() % 300);
        buffers[i] = (buffer){at, bytes, value_of(i + 1)};
        assert_true(enter(starts, at, bytes, buffers[i].value));
        at += bytes;
    }
    return BUFFERS;
}

static void starts__finds_the_holder_of_any_byte_as_a_list_does(void **state)
{
    (void)state;
    static wr_starts starts;
    static buffer buffers[BUFFERS];
    srand(5);
    size_t count = lay_out(&starts, buffers);
    for (size_t i = 0; i < count; i++) {
        const buffer *b = &buffers[i];
        const uint64_t inside[] = {0,           1, 255, 256, b->bytes / 2, b->bytes / 3,
                                   b->bytes - 1};
        for (size_t k = 0; k < sizeof inside / sizeof *inside; k++) {
            query q = {.address = b->begin + inside[k] % b->bytes};
            assert_true(wr_starts_search(&starts, q.address, take_holder, &q));
            assert_int_equal(q.start.value, b->value);
            assert_int_equal(q.start.begin, b->begin);
            assert_int_equal(q.start.bytes, b->bytes);
        }
        uint64_t end = b->begin + b->bytes;
        if (i + 1 == count || buffers[i + 1].begin > end) {
            query q = {.address = end};
            assert_false(wr_starts_search(&starts, q.address, take_holder, &q));
        }
    }
    wr_starts_finish(&starts);
}

static void starts__without_host_memory_enters_nothing_that_is_found(void **state)
{
    (void)state;
    uint64_t refused = 0;
    bool entered = false;
    for (uint64_t nth = 1; !entered; nth++) {
        static wr_starts starts;
        wr_start start;
        wr_host_fail_nth(nth);
        entered = enter(&starts, BASE + 256, 40 * KIB, value_of(1));
        wr_host_fail_nth(0);
        assert_int_equal(find_small(&starts, BASE + 256, &start), entered);
        refused += !entered;
        wr_starts_finish(&starts);
    }
    assert_int_equal(refused, 4); /* a node, a leaf, its blocks, a block's units */
}

static void starts__a_later_entry_takes_the_place_of_an_earlier_one(void **state)
{
    (void)state;
    static wr_starts starts;
    wr_start start;
    assert_true(enter(&starts, BASE, 64 * KIB, value_of(1)));
    assert_true(enter(&starts, BASE + 256, 128 * KIB, value_of(2)));
    assert_false(find_large(&starts, BASE, &start));
    assert_true(find_large(&starts, BASE + 256, &start));
    uint64_t calls = wr_host_calls();
    assert_true(enter(&starts, BASE + 512, 100 * KIB, value_of(3)));
    assert_int_equal(wr_host_calls(), calls);
    assert_true(find_large(&starts, BASE + 512, &start));
    assert_int_equal(start.value, value_of(3));
    assert_int_equal(start.bytes, 100 * KIB);
    wr_starts_finish(&starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts__an_empty_tree_knows_nothing),
        cmocka_unit_test(starts__finds_a_start_by_its_exact_address_only),
        cmocka_unit_test(starts__refuses_addresses_beyond_its_bits),
        cmocka_unit_test(starts__finds_the_holder_of_any_byte_as_a_list_does),
        cmocka_unit_test(starts__without_host_memory_enters_nothing_that_is_found),
        cmocka_unit_test(starts__a_later_entry_takes_the_place_of_an_earlier_one),
    };
    return cmocka_run_group_tests_name("page, starts", tests, NULL, NULL);
}
