/* SPDX-License-Identifier: MIT */
/* The contract of weir_driver_table, on every built-in driver. */
#include "contract.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_PAGES = 2048 }; /* to fill a device with */

static void skip_if(bool lacking, const char *reason)
{
    if (lacking) {
        print_message("skipped: %s\n", reason);
        skip();
    }
}

static uint64_t granule_of(const driver_rig *rig)
{
    skip_if(rig->properties.granule_bytes == 0, "the device has no granules");
    return rig->properties.granule_bytes;
}

/* ---- open ---- */

static void says_what_its_device_is(driver_rig *rig)
{
    const weir_driver_properties *properties = &rig->properties;
    assert_ptr_equal(rig->driver->table, rig->table);
    assert_int_equal(rig->table->size, sizeof(weir_driver_table));
    assert_true(properties->name[0] != '\0');
    assert_true(properties->capacity_bytes > 0);
    assert_true(properties->context_bytes <= properties->capacity_bytes);
    assert_true(properties->alignment_bytes > 0 && properties->alignment_bytes <= 4096);
    assert_int_equal(properties->alignment_bytes & (properties->alignment_bytes - 1), 0);
    assert_int_equal(properties->granule_bytes & (properties->granule_bytes - 1), 0);
}

static void refuses_a_device_that_it_does_not_have(driver_rig *rig)
{
    weir_driver *driver = (weir_driver *)rig;
    weir_result result =
        rig->table->open("no such device", rig->variant->config, &driver);
    assert_result(result, WEIR_NOT_FOUND);
    assert_ptr_equal(driver, rig);
}

/* ---- pages ---- */

static void gives_pages_that_are_aligned_and_apart(driver_rig *rig)
{
    enum { COUNT = 20 };
    uint64_t addresses[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        addresses[i] = take_page(rig, i * 1000 + 1);
        assert_true(addresses[i] != 0);
        assert_int_equal(addresses[i] % rig->properties.alignment_bytes, 0);
        for (uint64_t j = 0; j < i; j++) {
            assert_true(addresses[j] + j * 1000 + 1 <= addresses[i] ||
                        addresses[i] + i * 1000 + 1 <= addresses[j]);
        }
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_ok(rig->table->page_free(rig->driver, addresses[i], i * 1000 + 1));
    }
}

static void refuses_a_page_of_no_bytes(driver_rig *rig)
{
    uint64_t address = 77;
    assert_result(rig->table->page_alloc(rig->driver, 0, &address), WEIR_INVALID);
    assert_int_equal(address, 77);
}

static void refuses_a_page_larger_than_the_device_and_changes_nothing(driver_rig *rig)
{
    uint64_t too_many[] = {rig->properties.capacity_bytes + 1, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof too_many / sizeof too_many[0]; i++) {
        uint64_t address = 77;
        assert_result(rig->table->page_alloc(rig->driver, too_many[i], &address),
                      WEIR_OUT_OF_MEMORY);
        assert_int_equal(address, 77);
    }
    uint64_t address = take_page(rig, MIB);
    assert_ok(rig->table->page_free(rig->driver, address, MIB));
}

/* Three quarters of the device, in pages of at most the largest size; how many. */
static size_t take_most(driver_rig *rig, uint64_t *addresses, uint64_t *page_bytes)
{
    uint64_t most = rig->properties.capacity_bytes / 4 * 3;
    uint64_t largest = rig->properties.max_page_bytes;
    uint64_t count = largest != 0 ? (most + largest - 1) / largest : 1;
    *page_bytes = most / count;
    assert_true(count <= MOST_PAGES);
    for (uint64_t i = 0; i < count; i++) {
        addresses[i] = take_page(rig, *page_bytes);
    }
    return count;
}

static void counts_pages_against_the_capacity_until_they_are_freed(driver_rig *rig)
{
    for (int round = 0; round < 3; round++) {
        uint64_t addresses[2 * MOST_PAGES];
        uint64_t page_bytes;
        size_t count = take_most(rig, addresses, &page_bytes);
        uint64_t other = 77;
        size_t more = 0; /* what is left is less than what was taken */
        weir_result result = WEIR_OK;
        while (more < count && result == WEIR_OK) {
            result = rig->table->page_alloc(rig->driver, page_bytes, &other);
            addresses[count + more] = other;
            more += result == WEIR_OK;
        }
        assert_result(result, WEIR_OUT_OF_MEMORY);
        for (size_t i = 0; i < count + more; i++) {
            assert_ok(rig->table->page_free(rig->driver, addresses[i], page_bytes));
        }
        let_go(rig);
    }
}

static void refuses_to_free_what_is_not_a_page(driver_rig *rig)
{
    uint64_t bytes = 64 * KIB;
    uint64_t address = take_page(rig, bytes);
    assert_result(rig->table->page_free(rig->driver, 0, bytes), WEIR_INVALID);
    assert_result(rig->table->page_free(rig->driver, address + 4096, bytes),
                  WEIR_INVALID);
    assert_result(rig->table->page_free(rig->driver, address, bytes - 1), WEIR_INVALID);
    assert_result(rig->table->page_free(rig->driver, address, bytes + 1), WEIR_INVALID);
    assert_ok(rig->table->page_free(rig->driver, address, bytes));
    assert_result(rig->table->page_free(rig->driver, address, bytes), WEIR_INVALID);
    if (rig->properties.granule_bytes > 0) {
        uint64_t granule = rig->properties.granule_bytes;
        uint64_t range = take_range(rig, 1);
        assert_result(rig->table->page_free(rig->driver, range, granule), WEIR_INVALID);
        assert_ok(rig->table->range_free(rig->driver, range, granule));
    }
}

/* ---- granules ---- */

static void gives_ranges_that_are_aligned_and_bare(driver_rig *rig)
{
    uint64_t address = 77;
    if (rig->properties.granule_bytes == 0) {
        if (rig->table->range_reserve != NULL) {
            assert_result(rig->table->range_reserve(rig->driver, 2 * MIB, &address),
                          WEIR_UNSUPPORTED);
        }
        assert_int_equal(address, 77);
        return;
    }
    uint64_t granule = rig->properties.granule_bytes;
    assert_result(rig->table->range_reserve(rig->driver, 0, &address), WEIR_INVALID);
    assert_result(rig->table->range_reserve(rig->driver, granule + 1, &address),
                  WEIR_INVALID);
    assert_int_equal(address, 77);
    /* Addresses are not memory: several times the capacity can be had. */
    uint64_t bytes = rig->properties.capacity_bytes / granule * granule * 4;
    assert_ok(rig->table->range_reserve(rig->driver, bytes, &address));
    assert_int_equal(address % granule, 0);
    assert_result(rig->table->decommit(rig->driver, address, granule), WEIR_INVALID);
    assert_ok(rig->table->range_free(rig->driver, address, bytes));
    assert_result(rig->table->range_free(rig->driver, address, bytes), WEIR_INVALID);
}

static void commits_and_decommits_any_granules_of_a_range(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    uint64_t range = take_range(rig, 70);
    assert_ok(rig->table->commit(rig->driver, range + 3 * granule, 65 * granule));
    assert_ok(rig->table->decommit(rig->driver, range + 10 * granule, granule));
    assert_ok(rig->table->decommit(rig->driver, range + 60 * granule, 8 * granule));
    assert_ok(rig->table->commit(rig->driver, range + 10 * granule, granule));
    assert_ok(rig->table->decommit(rig->driver, range + 3 * granule, 57 * granule));
    assert_ok(rig->table->range_free(rig->driver, range, 70 * granule));
}

static void commits_chunks_that_go_and_move_whole(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    skip_if(rig->properties.chunk_bytes == 0, "the driver knows no chunks");
    const weir_driver_table *table = rig->table;
    uint64_t range = take_range(rig, 40);
    uint64_t far = range + 20 * granule;
    assert_true(rig->properties.chunk_bytes % granule == 0);
    assert_result(table->commit_chunks(rig->driver, range, granule, 0), WEIR_INVALID);
    assert_result(table->commit_chunks(rig->driver, range, granule, granule - 1),
                  WEIR_INVALID);
    /* three of 4 granules, and one of 1 */
    assert_ok(table->commit_chunks(rig->driver, range, 13 * granule, 4 * granule));
    assert_result(table->decommit(rig->driver, range, 3 * granule), WEIR_INVALID);
    assert_result(table->decommit(rig->driver, range + granule, 3 * granule),
                  WEIR_INVALID);
    assert_result(table->move(rig->driver, far, range + 4 * granule, 6 * granule),
                  WEIR_INVALID);
    assert_ok(table->decommit(rig->driver, range + 4 * granule, 4 * granule));
    assert_ok(table->move(rig->driver, far, range + 8 * granule, 5 * granule));
    assert_result(table->decommit(rig->driver, far, granule), WEIR_INVALID);
    assert_ok(table->decommit(rig->driver, far, 4 * granule));
    assert_ok(table->decommit(rig->driver, far + 4 * granule, granule));
    assert_ok(table->commit(rig->driver, range + 4 * granule, 2 * granule));
    assert_ok(table->decommit(rig->driver, range, 5 * granule));
    assert_ok(table->decommit(rig->driver, range + 5 * granule, granule));
    assert_ok(table->range_free(rig->driver, range, 40 * granule));
}

static void counts_commits_against_the_capacity_until_they_are_gone(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    uint64_t count = rig->properties.capacity_bytes / granule;
    uint64_t most = count / 4 * 3 * granule;
    uint64_t range = take_range(rig, 2 * count);
    uint64_t address = 0;
    for (int round = 0; round < 2; round++) {
        assert_ok(rig->table->commit(rig->driver, range, most));
        assert_result(rig->table->commit(rig->driver, range + most, most),
                      WEIR_OUT_OF_MEMORY);
        assert_result(rig->table->page_alloc(rig->driver, most, &address),
                      WEIR_OUT_OF_MEMORY);
        assert_result(rig->table->decommit(rig->driver, range + most, granule),
                      WEIR_INVALID);
        assert_ok(rig->table->decommit(rig->driver, range, most));
    }
    assert_ok(rig->table->range_free(rig->driver, range, 2 * count * granule));
}

static void refuses_granules_in_the_wrong_state_and_changes_nothing(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    uint64_t range = take_range(rig, 4);
    assert_ok(rig->table->commit(rig->driver, range + granule, granule));
    assert_result(rig->table->commit(rig->driver, range + granule, granule),
                  WEIR_INVALID);
    assert_result(rig->table->commit(rig->driver, range, 2 * granule), WEIR_INVALID);
    assert_result(rig->table->commit(rig->driver, range, 4 * granule), WEIR_INVALID);
    assert_result(rig->table->decommit(rig->driver, range, 2 * granule), WEIR_INVALID);
    assert_result(rig->table->decommit(rig->driver, range + granule, 2 * granule),
                  WEIR_INVALID);
    assert_result(rig->table->decommit(rig->driver, range, granule), WEIR_INVALID);
    assert_ok(rig->table->commit(rig->driver, range, granule));
    assert_ok(rig->table->commit(rig->driver, range + 2 * granule, 2 * granule));
    assert_ok(rig->table->decommit(rig->driver, range, 4 * granule));
    assert_ok(rig->table->range_free(rig->driver, range, 4 * granule));
}

static void refuses_addresses_outside_granules_and_ranges(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    uint64_t range = take_range(rig, 4);
    uint64_t page = take_page(rig, 4 * granule);
    uint64_t bad[][2] = {
        {0, granule},
        {range + 1, granule},
        {range, granule - 1},
        {range, 0},
        {range + 3 * granule, 2 * granule},
        {range, UINT64_MAX / granule * granule},
        {range + 4 * granule, granule},
        {page, granule},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_result(rig->table->commit(rig->driver, bad[i][0], bad[i][1]),
                      WEIR_INVALID);
        assert_result(rig->table->decommit(rig->driver, bad[i][0], bad[i][1]),
                      WEIR_INVALID);
    }
    assert_ok(rig->table->page_free(rig->driver, page, 4 * granule));
    assert_ok(rig->table->range_free(rig->driver, range, 4 * granule));
}

static void keeps_a_range_while_granules_are_committed(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    uint64_t range = take_range(rig, 4);
    assert_ok(rig->table->commit(rig->driver, range + granule, granule));
    assert_result(rig->table->range_free(rig->driver, range, 4 * granule), WEIR_INVALID);
    assert_result(rig->table->range_free(rig->driver, range, granule), WEIR_INVALID);
    assert_ok(rig->table->decommit(rig->driver, range + granule, granule));
    assert_ok(rig->table->range_free(rig->driver, range, 4 * granule));
}

static void moves_memory_to_bare_granules(driver_rig *rig)
{
    uint64_t granule = granule_of(rig);
    skip_if(rig->table->move == NULL,
            "the driver does not move, Weir decommits and commits");
    uint64_t range = take_range(rig, 8);
    assert_ok(rig->table->commit(rig->driver, range, 2 * granule));
    uint64_t far = range + 6 * granule;
    assert_ok(rig->table->move(rig->driver, far, range, 2 * granule));
    assert_result(rig->table->move(rig->driver, far, range, granule), WEIR_INVALID);
    assert_result(rig->table->move(rig->driver, far, far + granule, granule),
                  WEIR_INVALID);
    assert_result(rig->table->move(rig->driver, far + granule, far, 2 * granule),
                  WEIR_INVALID);
    assert_ok(rig->table->decommit(rig->driver, far, 2 * granule));
    assert_ok(rig->table->range_free(rig->driver, range, 8 * granule));
}

/* ---- contents ---- */

static void assert_contents(const driver_rig *rig, const void *got, const void *expected,
                            size_t bytes)
{
    if ((rig->variant->traits & IS_HOLLOW) == 0) {
        assert_memory_equal(got, expected, bytes);
    }
}

static void reads_what_was_written_and_copied(driver_rig *rig)
{
    weir_driver_stream stream = take_stream(rig);
    uint64_t page = take_page(rig, MIB);
    char sent[1000];
    char got[1000];
    memset(sent, 'w', sizeof sent);
    memset(got, 'x', sizeof got);
    assert_ok(rig->table->write(rig->driver, stream, page + 8, sent, sizeof sent));
    assert_ok(rig->table->copy(rig->driver, stream, page + 5000, page + 8, sizeof sent));
    assert_ok(rig->table->copy(rig->driver, stream, page + 5100, page + 5000, 900));
    assert_ok(rig->table->read(rig->driver, stream, page + 5000, got, sizeof got));
    assert_contents(rig, got, sent, sizeof sent);
    if (rig->properties.host_visible) {
        assert_int_equal(((const char *)(uintptr_t)page)[5999], 'w');
    }
    assert_ok(rig->table->write(rig->driver, stream, page, NULL, 0));
    assert_ok(rig->table->read(rig->driver, stream, page, NULL, 0));
    assert_ok(rig->table->page_free(rig->driver, page, MIB));
    rig->table->stream_close(rig->driver, stream);
}

/* Against a copy on the host: runs of every alignment, apart and overlapping. */
static void writes_and_copies_at_any_byte(driver_rig *rig)
{
    enum { BYTES = 300 };
    weir_driver_stream stream = take_stream(rig);
    uint64_t page = take_page(rig, MIB);
    unsigned char mirror[BYTES];
    unsigned char got[BYTES];
    memset(mirror, 0xee, sizeof mirror);
    assert_ok(rig->table->write(rig->driver, stream, page, mirror, sizeof mirror));
    for (unsigned i = 0; i < 64; i++) {
        unsigned char data[40];
        unsigned at = i * 3, length = 1 + i % 37, from = i * 5 % 250, to = i * 7 % 250;
        memset(data, (int)i, sizeof data);
        memcpy(mirror + at, data, length);
        assert_ok(rig->table->write(rig->driver, stream, page + at, data, length));
        memmove(mirror + to, mirror + from, length);
        assert_ok(rig->table->copy(rig->driver, stream, page + to, page + from, length));
        memset(got, 0, sizeof got);
        assert_ok(rig->table->read(rig->driver, stream, page + i % 8, got, BYTES - 8));
        assert_contents(rig, got, mirror + i % 8, BYTES - 8);
    }
    assert_ok(rig->table->page_free(rig->driver, page, MIB));
    rig->table->stream_close(rig->driver, stream);
}

/* Between pages, and inside one with an overlap, both ways. */
static void moves_more_than_fits_a_buffer_in_between(driver_rig *rig)
{
    enum { BYTES = 11 << 20, SHIFT = 1001 * 4 };
    weir_driver_stream stream = take_stream(rig);
    uint64_t page = take_page(rig, 2 * BYTES);
    uint64_t other = take_page(rig, BYTES);
    unsigned char *sent = malloc(BYTES);
    unsigned char *got = calloc(1, BYTES);
    assert_non_null(sent);
    assert_non_null(got);
    for (uint32_t i = 0; i < BYTES; i++) {
        sent[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    uint64_t up = page + SHIFT, down = page + 4;
    assert_ok(rig->table->write(rig->driver, stream, other, sent, BYTES));
    assert_ok(rig->table->copy(rig->driver, stream, page, other, BYTES));
    assert_ok(rig->table->copy(rig->driver, stream, up, page, BYTES));
    assert_ok(rig->table->copy(rig->driver, stream, down, up, BYTES));
    assert_ok(rig->table->read(rig->driver, stream, down, got, BYTES));
    assert_contents(rig, got, sent, BYTES);
    free(got);
    free(sent);
    assert_ok(rig->table->page_free(rig->driver, page, 2 * BYTES));
    assert_ok(rig->table->page_free(rig->driver, other, BYTES));
    rig->table->stream_close(rig->driver, stream);
}

/* ---- streams and fences ---- */

static void finds_a_stream_without_work_idle(driver_rig *rig)
{
    weir_driver_stream stream = take_stream(rig);
    weir_driver_stream other = take_stream(rig);
    assert_true(stream != other);
    assert_ok(rig->table->stream_test(rig->driver, stream));
    assert_ok(rig->table->stream_sync(rig->driver, stream));
    assert_ok(rig->table->stream_test(rig->driver, stream));
    rig->table->stream_close(rig->driver, stream);
    assert_ok(rig->table->stream_test(rig->driver, other));
    rig->table->stream_close(rig->driver, other);
}

static void hands_back_the_stream_it_adopted(driver_rig *rig)
{
    int queue;
    weir_driver_stream stream = 0;
    skip_if(rig->table->stream_native == NULL, "the driver has no streams to adopt");
    assert_ok(rig->table->stream_open(rig->driver, &queue, &stream));
    assert_ptr_equal(rig->table->stream_native(rig->driver, stream), &queue);
    rig->table->stream_close(rig->driver, stream);
}

static void passes_fences_of_streams_without_work(driver_rig *rig)
{
    weir_driver_stream stream = take_stream(rig);
    weir_driver_stream other = take_stream(rig);
    weir_driver_fence fences[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(rig->table->fence_record(rig->driver, stream, &fences[i]));
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(rig->table->stream_wait(rig->driver, other, fences[i]));
        assert_ok(rig->table->fence_wait(rig->driver, fences[i]));
        assert_ok(rig->table->fence_test(rig->driver, fences[i]));
    }
    assert_ok(rig->table->stream_sync(rig->driver, other));
    rig->table->stream_close(rig->driver, stream);
    for (int i = 0; i < 3; i++) {
        assert_ok(rig->table->fence_test(rig->driver, fences[i]));
        rig->table->fence_release(rig->driver, fences[i]);
    }
    rig->table->stream_close(rig->driver, other);
}

static void passes_fence_0_at_once(driver_rig *rig)
{
    weir_driver_stream stream = take_stream(rig);
    assert_ok(rig->table->fence_test(rig->driver, 0));
    assert_ok(rig->table->fence_wait(rig->driver, 0));
    assert_ok(rig->table->stream_wait(rig->driver, stream, 0));
    assert_ok(rig->table->stream_test(rig->driver, stream));
    rig->table->fence_release(rig->driver, 0);
    rig->table->stream_close(rig->driver, stream);
}

static void refuses_a_launch_without_a_kernel(driver_rig *rig)
{
    weir_driver_stream stream = take_stream(rig);
    if (rig->table->launch != NULL) {
        assert_result(rig->table->launch(rig->driver, stream, &(weir_launch){0}),
                      WEIR_INVALID);
    }
    rig->table->stream_close(rig->driver, stream);
}

/* ---- accounting ---- */

static void says_how_much_memory_is_used(driver_rig *rig)
{
    weir_memory_info info = {0};
    skip_if(rig->table->memory_info == NULL, "the driver has no such figures");
    assert_ok(rig->table->memory_info(rig->driver, &info));
    assert_int_equal(info.capacity_bytes, rig->properties.capacity_bytes);
    assert_true(info.footprint_bytes == WEIR_UNKNOWN_BYTES ||
                info.footprint_bytes <= info.capacity_bytes);
    assert_true(info.others_bytes == WEIR_UNKNOWN_BYTES ||
                info.others_bytes <= info.capacity_bytes);
}

/* ---- ends ---- */

/* ---- memory for other processes ---- */

static uint64_t take_shared(driver_rig *rig, uint64_t bytes)
{
    uint64_t address = 0;
    skip_if(rig->table->share_alloc == NULL, "the driver shares no memory");
    weir_result result = rig->table->share_alloc(rig->driver, bytes, &address);
    skip_if(result == WEIR_UNSUPPORTED, weir_last_error());
    assert_ok(result);
    assert_int_equal(address % (2 * MIB), 0);
    return address;
}

static int export_shared(driver_rig *rig, uint64_t address, uint64_t bytes)
{
    int file = -1;
    assert_ok(rig->table->share_export(rig->driver, address, bytes, &file));
    assert_true(file >= 0);
    return file;
}

static void assert_holds(driver_rig *rig, uint64_t address, uint64_t expected)
{
    uint64_t value = 0;
    weir_driver_stream stream = take_stream(rig);
    assert_ok(rig->table->read(rig->driver, stream, address, &value, sizeof value));
    assert_int_equal(value, expected);
    rig->table->stream_close(rig->driver, stream);
}

static void put(driver_rig *rig, uint64_t address, uint64_t value)
{
    weir_driver_stream stream = take_stream(rig);
    assert_ok(rig->table->write(rig->driver, stream, address, &value, sizeof value));
    assert_ok(rig->table->stream_sync(rig->driver, stream));
    rig->table->stream_close(rig->driver, stream);
}

static void maps_shared_memory_a_second_time(driver_rig *rig)
{
    uint64_t bytes = 4 * MIB, again = 0;
    uint64_t address = take_shared(rig, bytes);
    int file = export_shared(rig, address, bytes);
    assert_ok(rig->table->share_import(rig->driver, file, bytes, &again));
    close(file);
    assert_true(again >= address + bytes || address >= again + bytes);
    put(rig, address + 3 * MIB, 1234);
    assert_holds(rig, again + 3 * MIB, 1234);
    put(rig, again, 77);
    assert_holds(rig, address, 77);
    assert_ok(rig->table->page_free(rig->driver, again, bytes));
    assert_holds(rig, address, 77);
    assert_ok(rig->table->page_free(rig->driver, address, bytes));
}

static void keeps_shared_memory_while_one_page_has_it(driver_rig *rig)
{
    uint64_t bytes = 2 * MIB, again = 0;
    driver_rig other = {0};
    uint64_t address = take_shared(rig, bytes);
    put(rig, address + 8, 5);
    rig_open(&other, rig->variant->driver, rig->variant->config);
    int file = export_shared(rig, address, bytes);
    assert_ok(rig->table->page_free(rig->driver, address, bytes));
    assert_ok(other.table->share_import(other.driver, file, bytes, &again));
    close(file);
    assert_holds(&other, again + 8, 5);
    rig_close(&other); /* with the page still there */
}

static void refuses_to_share_what_cannot_be(driver_rig *rig)
{
    uint64_t bytes = 2 * MIB, other = 99;
    uint64_t address = take_shared(rig, bytes);
    uint64_t page = take_page(rig, bytes);
    int file = 77, ends[2];
    assert_result(rig->table->share_alloc(rig->driver, 0, &other), WEIR_INVALID);
    assert_result(rig->table->share_alloc(rig->driver, bytes + 1, &other), WEIR_INVALID);
    assert_result(rig->table->share_alloc(
                      rig->driver, (rig->properties.capacity_bytes / bytes + 1) * bytes,
                      &other),
                  WEIR_OUT_OF_MEMORY);
    assert_result(rig->table->share_export(rig->driver, page, bytes, &file),
                  WEIR_INVALID);
    assert_result(rig->table->share_export(rig->driver, address + 4096, bytes, &file),
                  WEIR_INVALID);
    assert_int_equal(file, 77);
    assert_int_equal(pipe(ends), 0);
    assert_result(rig->table->share_import(rig->driver, ends[0], bytes, &other),
                  WEIR_INVALID);
    assert_result(rig->table->share_import(rig->driver, -1, bytes, &other), WEIR_INVALID);
    assert_int_equal(other, 99);
    close(ends[0]);
    close(ends[1]);
    assert_ok(rig->table->page_free(rig->driver, page, bytes));
    assert_ok(rig->table->page_free(rig->driver, address, bytes));
}

static void closes_with_everything_still_taken(driver_rig *rig)
{
    weir_driver *driver = NULL;
    assert_ok(rig->table->open(rig->variant->argument, rig->variant->config, &driver));
    for (int i = 0; i < 10; i++) {
        uint64_t address;
        weir_driver_stream stream;
        weir_driver_fence fence;
        assert_ok(rig->table->page_alloc(driver, MIB, &address));
        assert_ok(rig->table->stream_open(driver, NULL, &stream));
        assert_ok(rig->table->fence_record(driver, stream, &fence));
        if (rig->properties.granule_bytes > 0) {
            uint64_t granule = rig->properties.granule_bytes;
            assert_ok(rig->table->range_reserve(driver, 100 * granule, &address));
            assert_ok(rig->table->commit(driver, address + granule, granule));
        }
    }
    rig->table->close(driver);
}

/* A bit of everything; stops at the first failure and gives back what it took. */
static weir_result use_all(const driver_rig *rig)
{
    const weir_driver_table *table = rig->table;
    weir_driver *driver = NULL;
    uint64_t granule = rig->properties.granule_bytes;
    uint64_t page;
    uint64_t range;
    weir_driver_stream stream;
    weir_driver_fence fence;
    weir_result result =
        table->open(rig->variant->argument, rig->variant->config, &driver);
    if (result != WEIR_OK) {
        return result;
    }
    if ((result = table->page_alloc(driver, MIB, &page)) == WEIR_OK &&
        (granule == 0 ||
         (result = table->range_reserve(driver, 3 * granule, &range)) == WEIR_OK) &&
        (granule == 0 || (result = table->commit(driver, range, granule)) == WEIR_OK) &&
        (result = table->stream_open(driver, NULL, &stream)) == WEIR_OK &&
        (result = table->fence_record(driver, stream, &fence)) == WEIR_OK) {
        table->fence_release(driver, fence);
        table->stream_close(driver, stream);
        result = table->page_free(driver, page, MIB);
    }
    table->close(driver);
    return result;
}

static void fails_cleanly_at_every_host_allocation(driver_rig *rig)
{
    uint64_t nth = 1;
    for (;; nth++) {
        wr_host_fail_nth(nth);
        weir_result result = use_all(rig);
        wr_host_fail_nth(0);
        if (result == WEIR_OK) {
            break;
        }
        assert_result(result, WEIR_OUT_OF_HOST_MEMORY);
        assert_true(nth < 100);
    }
    assert_true(nth > 3);
}

static void *use_one_thread(void *argument)
{
    driver_rig *rig = argument;
    const weir_driver_table *table = rig->table;
    uint64_t granule = rig->properties.granule_bytes;
    uint64_t range = granule > 0 ? take_range(rig, 8) : 0;
    weir_driver_stream stream = take_stream(rig);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t page = take_page(rig, (i % 7 + 1) * 4096);
        uint64_t value = 0;
        weir_driver_fence fence;
        assert_ok(table->write(rig->driver, stream, page, &i, sizeof i));
        assert_ok(table->read(rig->driver, stream, page, &value, sizeof value));
        assert_ok(table->fence_record(rig->driver, stream, &fence));
        assert_ok(table->fence_wait(rig->driver, fence));
        table->fence_release(rig->driver, fence);
        if (granule > 0) {
            uint64_t address = range + i % 8 * granule;
            assert_ok(table->commit(rig->driver, address, granule));
            assert_ok(table->write(rig->driver, stream, address, &i, sizeof i));
            assert_ok(table->decommit(rig->driver, address, granule));
        }
        assert_ok(table->page_free(rig->driver, page, (i % 7 + 1) * 4096));
    }
    table->stream_close(rig->driver, stream);
    return NULL;
}

static void serves_several_threads_at_once(driver_rig *rig)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_one_thread, rig), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t addresses[MOST_PAGES];
    uint64_t page_bytes;
    let_go(rig);
    size_t count = take_most(rig, addresses, &page_bytes);
    for (size_t i = 0; i < count; i++) {
        assert_ok(rig->table->page_free(rig->driver, addresses[i], page_bytes));
    }
}

/* ---- the lists ---- */

static driver_rig under_test;

static int open_variant(void **state)
{
    const variant *asked = *state;
    const weir_driver_table *table = find_table(asked->driver);
    under_test = (driver_rig){.variant = asked, .table = table};
    if ((asked->traits & MAY_BE_MISSING) != 0 &&
        table->open(asked->argument, asked->config, &under_test.driver) ==
            WEIR_NOT_FOUND) {
        return 0; /* see below */
    }
    if (under_test.driver == NULL) {
        assert_ok(table->open(asked->argument, asked->config, &under_test.driver));
    }
    table->properties(under_test.driver, &under_test.properties);
    return 0;
}

static int close_variant(void **state)
{
    (void)state;
    if (under_test.driver != NULL) {
        rig_close(&under_test);
    }
    return 0;
}

#define DEFINE_TEST(test, unused)                                                        \
    static void run_##test(void **state)                                                 \
    {                                                                                    \
        (void)state;                                                                     \
        skip_if(under_test.driver == NULL, weir_last_error());                           \
        test(&under_test);                                                               \
    }
CONTRACT_LIST(DEFINE_TEST, unused)

#define DEFINE_VARIANT(name, driver, argument, config, traits)                           \
    static variant variant_##name = {driver, argument, config, traits};
VARIANT_LIST(DEFINE_VARIANT)

#define ENTRY(test, name)                                                                \
    {#name "__" #test, run_##test, open_variant, close_variant, &variant_##name},
#define ENTRIES(name, driver, argument, config, traits) CONTRACT_LIST(ENTRY, name)

/* An argument names the tests to run, as "cuda__*". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {VARIANT_LIST(ENTRIES)};
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("driver contract", tests, NULL, NULL);
}
