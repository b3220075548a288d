/* SPDX-License-Identifier: MIT */
/* What every driver must do, and how tests of drivers ask. A driver, or a way to open
 * one, is one line in VARIANT_LIST; a test is one line in CONTRACT_LIST. Each test runs
 * on each variant. */
#ifndef TESTS_DRIVER_CONTRACT_H
#define TESTS_DRIVER_CONTRACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* What is special about a way to open a driver. */
enum {
    MAY_BE_MISSING = 1, /* needs hardware or a library: without it tests are skipped */
    IS_HOLLOW = 2,      /* memory without contents */
};

/* Variant, driver, the text behind the colon, its configuration, what is special. */
#define VARIANT_LIST(X)                                                                  \
    X(host, "host", "", NULL, 0)                                                         \
    X(sim, "sim", "", NULL, IS_HOLLOW)                                                   \
    X(sim_plain, "sim", "", &sim_plain_desc, IS_HOLLOW)                                  \
    X(sim_chunks, "sim", "", &sim_chunks_desc, IS_HOLLOW)                                \
    X(cuda, "cuda", "", NULL, MAY_BE_MISSING)                                            \
    X(pinned, "pinned", "", &pinned_desc, MAY_BE_MISSING)                                \
    X(webgpu, "webgpu", "", NULL, MAY_BE_MISSING)                                        \
    X(webgpu_null, "webgpu", "null", NULL, MAY_BE_MISSING | IS_HOLLOW)

static const weir_pinned_desc pinned_desc = {.capacity_bytes = 256 * MIB};
static const weir_sim_desc sim_plain_desc = {.context_bytes = UINT64_MAX};
static const weir_sim_desc sim_chunks_desc = {
    .context_bytes = UINT64_MAX, .granule_bytes = 2 * MIB, .chunk_bytes = 32 * MIB};

#define CONTRACT_LIST(X, variant)                                                        \
    X(says_what_its_device_is, variant)                                                  \
    X(refuses_a_device_that_it_does_not_have, variant)                                   \
    X(gives_pages_that_are_aligned_and_apart, variant)                                   \
    X(refuses_a_page_of_no_bytes, variant)                                               \
    X(refuses_a_page_larger_than_the_device_and_changes_nothing, variant)                \
    X(counts_pages_against_the_capacity_until_they_are_freed, variant)                   \
    X(refuses_to_free_what_is_not_a_page, variant)                                       \
    X(gives_ranges_that_are_aligned_and_bare, variant)                                   \
    X(commits_and_decommits_any_granules_of_a_range, variant)                            \
    X(commits_chunks_that_go_and_move_whole, variant)                                    \
    X(counts_commits_against_the_capacity_until_they_are_gone, variant)                  \
    X(refuses_granules_in_the_wrong_state_and_changes_nothing, variant)                  \
    X(refuses_addresses_outside_granules_and_ranges, variant)                            \
    X(keeps_a_range_while_granules_are_committed, variant)                               \
    X(moves_memory_to_bare_granules, variant)                                            \
    X(reads_what_was_written_and_copied, variant)                                        \
    X(writes_and_copies_at_any_byte, variant)                                            \
    X(moves_more_than_fits_a_buffer_in_between, variant)                                 \
    X(maps_shared_memory_a_second_time, variant)                                         \
    X(keeps_shared_memory_while_one_page_has_it, variant)                                \
    X(refuses_to_share_what_cannot_be, variant)                                          \
    X(finds_a_stream_without_work_idle, variant)                                         \
    X(hands_back_the_stream_it_adopted, variant)                                         \
    X(passes_fences_of_streams_without_work, variant)                                    \
    X(passes_fence_0_at_once, variant)                                                   \
    X(refuses_a_launch_without_a_kernel, variant)                                        \
    X(says_how_much_memory_is_used, variant)                                             \
    X(closes_with_everything_still_taken, variant)                                       \
    X(fails_cleanly_at_every_host_allocation, variant)                                   \
    X(serves_several_threads_at_once, variant)

typedef struct variant {
    const char *driver;
    const char *argument;
    const void *config;
    int traits;
} variant;

/* One open driver. */
typedef struct driver_rig {
    const variant *variant;
    const weir_driver_table *table;
    weir_driver *driver;
    weir_driver_properties properties;
} driver_rig;

static inline const weir_driver_table *find_table(const char *name)
{
    for (size_t i = 0; weir_driver_at(i) != NULL; i++) {
        if (strcmp(weir_driver_at(i)->name, name) == 0) {
            return weir_driver_at(i);
        }
    }
    fail_msg("no driver \"%s\" is built in", name);
    return NULL;
}

static inline void check_result(weir_result result, weir_result expected,
                                const char *call, const char *file, int line)
{
    if (result != expected) {
        print_error("%s: %s, expected %s: %s\n", call, weir_result_name(result),
                    weir_result_name(expected), weir_last_error());
        _fail(file, line);
    }
    if (result != WEIR_OK && result != WEIR_NOT_READY && weir_last_error()[0] == '\0') {
        print_error("%s: %s without a text\n", call, weir_result_name(result));
        _fail(file, line);
    }
}

/* The call returns `expected`; if that is a failure, it left a text. */
#define assert_result(call, expected)                                                    \
    check_result((call), (expected), #call, __FILE__, __LINE__)
#define assert_ok(call) assert_result(call, WEIR_OK)

static inline void rig_open(driver_rig *rig, const char *driver, const void *config)
{
    rig->table = find_table(driver);
    assert_ok(rig->table->open("", config, &rig->driver));
    rig->table->properties(rig->driver, &rig->properties);
}

static inline void rig_close(driver_rig *rig)
{
    rig->table->close(rig->driver);
}

static inline uint64_t take_page(driver_rig *rig, uint64_t bytes)
{
    uint64_t address = 0;
    assert_ok(rig->table->page_alloc(rig->driver, bytes, &address));
    return address;
}

/* Has the driver really let go of what it was handed back, as Weir does when a page does
 * not fit. */
static inline void let_go(driver_rig *rig)
{
    if (rig->table->progress != NULL) {
        assert_ok(rig->table->progress(rig->driver, true));
    }
}

static inline uint64_t take_range(driver_rig *rig, uint64_t granules)
{
    uint64_t address = 0;
    assert_ok(rig->table->range_reserve(
        rig->driver, granules * rig->properties.granule_bytes, &address));
    return address;
}

static inline weir_driver_stream take_stream(driver_rig *rig)
{
    weir_driver_stream stream = 0;
    assert_ok(rig->table->stream_open(rig->driver, NULL, &stream));
    return stream;
}

#endif
