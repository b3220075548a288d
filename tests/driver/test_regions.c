/* SPDX-License-Identifier: MIT */
/* The address book, against a model that is a plain array with a state per granule. */
#include "contract.h"

#include "driver/regions.h"

#define UNIT 4096u
#define SLOTS 200
#define MOST_UNITS 100

/* A slot of the model: addresses from slot * 2 * MOST_UNITS * UNIT on. */
typedef struct model {
    wr_region *region; /* NULL: nothing there */
    bool is_range;
    uint64_t units;
    bool committed[MOST_UNITS];
} model;

static uint64_t seed = 20240607;

static uint64_t random_below(uint64_t bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
}

static uint64_t address_of(size_t slot)
{
    return (slot + 1) * 2 * MOST_UNITS * UNIT;
}

static void fill_slot(wr_regions *book, model *slots, size_t slot)
{
    model *entry = &slots[slot];
    entry->is_range = random_below(2);
    entry->units = random_below(MOST_UNITS) + 1;
    memset(entry->committed, 0, sizeof entry->committed);
    entry->region = entry->is_range ? wr_region_create_range(entry->units * UNIT, UNIT)
                                    : wr_region_create_page(entry->units * UNIT);
    assert_non_null(entry->region);
    entry->region->address = address_of(slot);
    wr_regions_add(book, entry->region);
}

static void empty_slot(wr_regions *book, model *entry)
{
    wr_regions_remove(book, entry->region);
    wr_region_destroy(entry->region);
    entry->region = NULL;
}

/* Asks for units [first, first + count) of a slot to change their state, and expects what
 * the model says. */
static void change_granules(wr_regions *book, model *slots, size_t slot, bool commit)
{
    model *entry = &slots[slot];
    uint64_t first = random_below(MOST_UNITS);
    uint64_t count = random_below(8) + 1;
    bool right =
        entry->region != NULL && entry->is_range && first + count <= entry->units;
    for (uint64_t i = first; right && i < first + count; i++) {
        right = entry->committed[i] != commit;
    }
    wr_region *found = NULL;
    uint64_t address = address_of(slot) + first * UNIT;
    weir_result result =
        commit ? wr_regions_get_bare(book, "test", address, count * UNIT, &found)
               : wr_regions_get_committed(book, "test", address, count * UNIT, &found);
    assert_result(result, right ? WEIR_OK : WEIR_INVALID);
    if (right) {
        assert_ptr_equal(found, entry->region);
        wr_regions_mark(book, found, address, count * UNIT, commit);
        memset(entry->committed + first, commit, count);
    }
}

static void assert_equal_slot(const wr_regions *book, const model *slots, size_t slot)
{
    const model *entry = &slots[slot];
    uint64_t at = address_of(slot);
    wr_region *found = wr_regions_find(book, at);
    assert_ptr_equal(found, entry->region);
    assert_null(wr_regions_find(book, at - 1));
    if (found == NULL) {
        return;
    }
    uint64_t end = at + entry->units * UNIT;
    uint64_t committed = 0;
    assert_ptr_equal(wr_regions_find(book, end - 1), found);
    assert_null(wr_regions_find(book, end));
    for (uint64_t run_end; at < end; at = run_end) {
        bool backed;
        run_end = wr_regions_run_end(book, found, at, UINT64_MAX, &backed);
        assert_true(run_end > at && run_end <= end);
        for (uint64_t unit = (at - found->address) / UNIT;
             unit < (run_end - found->address) / UNIT; unit++) {
            assert_int_equal(backed, !entry->is_range || entry->committed[unit]);
            committed += entry->is_range && entry->committed[unit];
        }
        assert_result(wr_regions_check_backed(book, "test", at, run_end - at),
                      backed ? WEIR_OK : WEIR_INVALID);
        assert_result(wr_regions_check_backed(book, "test", at, run_end - at + 1),
                      WEIR_INVALID);
    }
    assert_int_equal(found->committed_count, committed);
}

static void a_book__refuses_to_cut_a_chunk(void **state)
{
    (void)state;
    wr_regions book = {.driver = "test", .granule_bytes = UNIT};
    wr_region *range = wr_region_create_range(100 * UNIT, UNIT);
    wr_region *found = NULL;
    assert_non_null(range);
    range->address = 100 * UNIT;
    wr_regions_add(&book, range);
    uint64_t at = range->address + 60 * UNIT; /* over the border of two words */
    wr_regions_mark_chunks(&book, range, at, 10 * UNIT, 6 * UNIT);
    assert_result(wr_regions_get_committed(&book, "test", at, 5 * UNIT, &found),
                  WEIR_INVALID);
    assert_result(wr_regions_get_committed(&book, "test", at + UNIT, 9 * UNIT, &found),
                  WEIR_INVALID);
    assert_ok(wr_regions_get_committed(&book, "test", at, 10 * UNIT, &found));
    wr_regions_move(&book, range, range->address, range, at + 6 * UNIT, 4 * UNIT);
    assert_ok(wr_regions_get_bare(&book, "test", at + 6 * UNIT, 4 * UNIT, &found));
    assert_int_equal(range->committed_count, 10);
    wr_region_destroy(wr_regions_remove_any(&book));
}

/* The chunks of [address, end) as "count x granules" words. */
static const char *chunks_of(const wr_regions *book, const wr_region *range,
                             uint64_t address, uint64_t end)
{
    static char text[100];
    size_t length = 0;
    text[0] = 0;
    while (address < end) {
        uint64_t bytes = 0;
        uint64_t count =
            wr_regions_chunk_run(book, range, address, end - address, &bytes);
        length += (size_t)snprintf(text + length, sizeof text - length, "%dx%d ",
                                   (int)count, (int)(bytes / UNIT));
        address += count * bytes;
    }
    return text;
}

static void a_book__tells_chunks_apart_wherever_they_have_moved(void **state)
{
    (void)state;
    wr_regions book = {.driver = "test", .granule_bytes = UNIT};
    wr_region *range = wr_region_create_range(300 * UNIT, UNIT);
    assert_non_null(range);
    range->address = 300 * UNIT;
    wr_regions_add(&book, range);
    uint64_t at = range->address + 60 * UNIT; /* over the border of two words */
    wr_regions_mark_chunks(&book, range, at, 10 * UNIT, 6 * UNIT);
    wr_regions_mark_chunks(&book, range, at + 10 * UNIT, 80 * UNIT, UNIT);
    wr_regions_mark_chunks(&book, range, at + 90 * UNIT, 70 * UNIT, 70 * UNIT);
    assert_string_equal(chunks_of(&book, range, at, at + 160 * UNIT),
                        "1x6 1x4 80x1 1x70 ");
    wr_regions_move(&book, range, range->address, range, at + 6 * UNIT, 24 * UNIT);
    assert_string_equal(
        chunks_of(&book, range, range->address, range->address + 24 * UNIT), "1x4 20x1 ");
    wr_regions_move(&book, range, range->address + 225 * UNIT, range, at + 89 * UNIT,
                    71 * UNIT);
    assert_string_equal(chunks_of(&book, range, range->address + 225 * UNIT,
                                  range->address + 296 * UNIT),
                        "1x1 1x70 ");
    assert_string_equal(chunks_of(&book, range, at + 30 * UNIT, at + 89 * UNIT), "59x1 ");
    assert_int_equal(range->committed_count, 160);
    wr_region_destroy(wr_regions_remove_any(&book));
}

static void a_book__agrees_with_a_plain_list_after_any_calls(void **state)
{
    (void)state;
    static model slots[SLOTS];
    wr_regions book = {.driver = "test", .granule_bytes = UNIT};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 100000; round++) {
        size_t slot = random_below(SLOTS);
        if (random_below(4) > 0) {
            change_granules(&book, slots, slot, random_below(3) > 0);
        } else if (slots[slot].region == NULL) {
            fill_slot(&book, slots, slot);
        } else if (random_below(4) == 0) {
            empty_slot(&book, &slots[slot]);
        }
        assert_equal_slot(&book, slots, random_below(SLOTS));
    }
    for (wr_region *region; (region = wr_regions_remove_any(&book)) != NULL;) {
        wr_region_destroy(region);
    }
    assert_null(wr_regions_find(&book, address_of(3)));
}

static void a_book__stays_shallow_whatever_the_order(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    wr_regions book = {.driver = "test"};
    for (uint64_t i = 0; i < COUNT; i++) {
        wr_region *page = wr_region_create_page(UNIT);
        assert_non_null(page);
        page->address = (i + 1) * UNIT;
        wr_regions_add(&book, page);
    }
    int deepest = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        int depth = 0;
        for (wr_region *node = book.root; node->address != (i + 1) * UNIT; depth++) {
            node = (i + 1) * UNIT < node->address ? node->left : node->right;
        }
        deepest = depth > deepest ? depth : deepest;
    }
    assert_true(deepest < 50);
    for (wr_region *region; (region = wr_regions_remove_any(&book)) != NULL;) {
        wr_region_destroy(region);
    }
}

static void a_book__names_the_call_the_size_and_the_address_it_refuses(void **state)
{
    (void)state;
    wr_regions book = {.driver = "test", .granule_bytes = UNIT};
    wr_region *region = NULL;
    assert_result(wr_regions_get_page(&book, "page_free", 0xabc000, 1234, &region),
                  WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "test: page_free of 1234 bytes at 0xabc000: no page"
                        " has this address and size");
    assert_null(region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_book__refuses_to_cut_a_chunk),
        cmocka_unit_test(a_book__tells_chunks_apart_wherever_they_have_moved),
        cmocka_unit_test(a_book__agrees_with_a_plain_list_after_any_calls),
        cmocka_unit_test(a_book__stays_shallow_whatever_the_order),
        cmocka_unit_test(a_book__names_the_call_the_size_and_the_address_it_refuses),
    };
    return cmocka_run_group_tests_name("driver regions", tests, NULL, NULL);
}
