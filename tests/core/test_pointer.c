/* SPDX-License-Identifier: MIT */
/* The pointer interface: what it knows, what it refuses, and that it costs others
 * nothing.
 */
#define _GNU_SOURCE
#include "support.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *take(weir_stream *stream, uint64_t bytes)
{
    void *pointer = NULL;
    assert_ok(weir_malloc(stream, bytes, NULL, &pointer));
    assert_non_null(pointer);
    return pointer;
}

static void *behind(void *pointer, uint64_t bytes)
{
    return (char *)pointer + bytes;
}

static weir_device *open_host(const char *preset)
{
    weir_device *device = NULL;
    weir_device_desc desc = {.preset = preset, .no_thread = true};
    assert_ok(weir_device_open("host", &desc, &device));
    return device;
}

/* ---- right use ---- */

static void check_round_trip(rig *r)
{
    static const uint64_t sizes[] = {1,        256,          4096,    64 * KIB - 256,
                                     64 * KIB, 64 * KIB + 1, 3 * MIB, 70 * MIB};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    void *pointers[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        pointers[i] = take(r->stream, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t bytes = 0, offset = 1;
        weir_buffer buffer = WEIR_NO_BUFFER;
        assert_ok(weir_usable_bytes(r->device, pointers[i], &bytes));
        assert_ok(weir_buffer_find(r->device, pointers[i], &buffer, &offset));
        assert_int_equal(offset, 0);
        assert_int_equal(weir_buffer_bytes(buffer), sizes[i]);
        assert_int_equal(weir_buffer_extent(buffer), bytes);
        assert_int_equal(weir_buffer_address(buffer), (uintptr_t)pointers[i]);
        assert_int_equal(weir_buffer_references(buffer), 1);
    }
    assert_int_equal(usage_of(r->device).live_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(weir_free(r->device, pointers[i]));
    }
    assert_int_equal(usage_of(r->device).live_count, 0);
    assert_consistent(r);
}

static void pointer__goes_to_its_buffer_and_back(void **state)
{
    (void)state;
    on_both(check_round_trip);
}

static void pointer__works_under_every_preset(void **state)
{
    (void)state;
    static const char *const presets[] = {"elastic", "adaptive", "subslices",
                                          "exclusive"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        rig r =
            rig_open(NULL, &(weir_device_desc){.preset = presets[i], .no_thread = true});
        check_round_trip(&r);
        rig_close(&r);
    }
}

static void pointer__takes_the_options_of_a_buffer(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer_desc desc = {
        .tag = "kv", .alignment_bytes = 64 * KIB, .persistent = true};
    void *pointer = NULL;
    assert_ok(weir_malloc(r.stream, 5000, &desc, &pointer));
    assert_int_equal((uintptr_t)pointer % (64 * KIB), 0);
    weir_tag_usage usage;
    assert_ok(weir_device_tag_usage(r.device, "kv", &usage));
    assert_int_equal(usage.in_use_bytes, 5000);
    uint64_t bytes = 0;
    assert_ok(weir_usable_bytes(r.device, pointer, &bytes));
    assert_true(bytes >= 5000);
    assert_ok(weir_free(r.device, pointer));
    rig_close(&r);
}

static void pointer__is_found_from_any_byte_inside(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static const uint64_t sizes[] = {700, 60 * KIB, 100 * KIB, 5 * MIB, 200 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *pointer = take(r.stream, sizes[i]);
        const uint64_t at[] = {1, 255, sizes[i] / 3, sizes[i] / 2, sizes[i] - 1};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            weir_buffer buffer = WEIR_NO_BUFFER;
            uint64_t offset = 0;
            assert_ok(
                weir_buffer_find(r.device, behind(pointer, at[k]), &buffer, &offset));
            assert_int_equal(offset, at[k]);
            assert_int_equal(weir_buffer_address(buffer), (uintptr_t)pointer);
        }
        assert_ok(weir_free(r.device, pointer));
    }
    rig_close(&r);
}

static void pointer__tells_its_device_where_addresses_are_real(void **state)
{
    (void)state;
    weir_device *one = open_host(NULL), *other = open_host("exclusive");
    void *a = take(weir_device_default_stream(one), 10000);
    void *b = take(weir_device_default_stream(other), 3 * MIB);
    memset(a, 1, 10000);
    memset(b, 2, 3 * MIB);
    weir_buffer buffer;
    assert_ok(weir_buffer_find(NULL, behind(b, 2 * MIB), &buffer, NULL));
    assert_ptr_equal(weir_stream_device(weir_buffer_stream(buffer)), other);
    assert_result(weir_free(one, b), WEIR_INVALID);
    assert_says(weir_last_error(), "memory of device host");
    assert_ok(weir_free(NULL, a));
    assert_ok(weir_free(other, b));
    assert_ok(weir_device_close(one));
    assert_ok(weir_device_close(other));
}

static void pointer__is_told_apart_on_devices_with_the_same_addresses(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), other = rig_open(NULL, NULL);
    void *a = take(one.stream, 1000), *b = take(other.stream, 5000);
    assert_ptr_equal(a, b); /* both devices are new, and sim's addresses are alike */
    uint64_t bytes = 0;
    assert_ok(weir_usable_bytes(other.device, b, &bytes));
    assert_int_equal(bytes, 5120);
    assert_ok(weir_free(one.device, a));
    assert_result(weir_free(one.device, a), WEIR_STALE);
    assert_ok(weir_usable_bytes(other.device, b, &bytes));
    assert_ok(weir_free(other.device, b));
    rig_close(&one);
    rig_close(&other);
}

static void pointer__keeps_nothing_that_was_retained_from_living_on(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    void *pointer = take(r.stream, MIB);
    weir_buffer buffer;
    assert_ok(weir_buffer_find(r.device, pointer, &buffer, NULL));
    assert_ok(weir_buffer_retain(buffer));
    assert_ok(weir_free(r.device, pointer));
    assert_int_equal(weir_buffer_references(buffer), 1);
    assert_result(weir_free(r.device, pointer), WEIR_STALE);
    assert_result(weir_buffer_find(r.device, pointer, &buffer, NULL), WEIR_STALE);
    assert_int_equal(weir_buffer_references(buffer), 1);
    drop(buffer);
    rig_close(&r);
}

static void pointer__has_only_requested_bytes_in_checked_mode(void **state)
{
    (void)state;
    weir_device *device = NULL;
    weir_device_desc desc = {.no_thread = true, .checked = true};
    assert_ok(weir_device_open("host", &desc, &device));
    void *pointer = take(weir_device_default_stream(device), 1000);
    uint64_t bytes = 0;
    assert_ok(weir_usable_bytes(NULL, pointer, &bytes));
    assert_int_equal(bytes, 1000);
    memset(pointer, 7, bytes);
    assert_ok(weir_free(NULL, pointer));
    assert_ok(weir_device_close(device));
}

static void pointer__takes_no_host_memory_in_a_steady_state(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    uint64_t before = 0;
    for (int round = 0; round < 50; round++) {
        void *pointers[64];
        for (size_t i = 0; i < 64; i++) {
            pointers[i] = take(r.stream, (i + 1) * 3000);
        }
        for (size_t i = 0; i < 64; i++) {
            assert_ok(weir_free(r.device, pointers[i]));
        }
        if (round == 2) {
            before = wr_host_calls();
        }
    }
    assert_int_equal(wr_host_calls(), before);
    rig_close(&r);
}

/* ---- wrong use ---- */

static void check_refusals(rig *r)
{
    void *kept = take(r->stream, 3 * MIB), *gone = take(r->stream, 3000);
    weir_buffer handle = make(r->stream, 3 * MIB, NULL);
    void *other = (void *)(uintptr_t)weir_buffer_address(handle);
    assert_ok(weir_free(r->device, gone));
    uint64_t bytes = 77;
    const struct {
        void *pointer;
        weir_result result;
        const char *says;
    } wrong[] = {
        {gone, WEIR_STALE, "already been freed"},
        {behind(kept, 256), WEIR_INVALID, "256 behind its begin"},
        {behind(kept, 1), WEIR_INVALID, "inside a buffer of 3145728 bytes"},
        {behind(kept, 3 * MIB - 1), WEIR_INVALID, "inside a buffer"},
        {other, WEIR_NOT_FOUND, "handed out nothing"},
        {(void *)(uintptr_t)8, WEIR_NOT_FOUND, "handed out nothing at 0x8"},
        {(void *)UINTPTR_MAX, WEIR_NOT_FOUND, "handed out nothing"},
    };
    still was = hold_still(r);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_result(weir_free(r->device, wrong[i].pointer), wrong[i].result);
        assert_says(weir_last_error(), wrong[i].says);
        assert_result(weir_usable_bytes(r->device, wrong[i].pointer, &bytes),
                      wrong[i].result);
        assert_int_equal(bytes, 77);
        assert_unchanged(&was);
    }
    assert_ok(weir_free(r->device, kept));
    drop(handle);
}

static void pointer__that_is_wrong_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    on_both(check_refusals);
}

static void pointer__arguments_are_checked(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    void *pointer = NULL;
    uint64_t bytes = 0;
    weir_buffer buffer;
    still was = hold_still(&r);
    assert_ok(weir_free(r.device, NULL));
    assert_ok(weir_free(NULL, NULL));
    assert_result(weir_malloc(r.stream, 100, NULL, NULL), WEIR_INVALID);
    assert_result(weir_malloc(NULL, 100, NULL, &pointer), WEIR_INVALID);
    assert_result(weir_malloc(r.stream, 0, NULL, &pointer), WEIR_INVALID);
    assert_null(pointer);
    assert_result(weir_usable_bytes(r.device, NULL, &bytes), WEIR_INVALID);
    assert_result(weir_buffer_find(r.device, NULL, &buffer, NULL), WEIR_INVALID);
    assert_unchanged(&was);
    void *taken = take(r.stream, 100);
    was = hold_still(&r);
    assert_result(weir_usable_bytes(r.device, taken, NULL), WEIR_INVALID);
    assert_result(weir_buffer_find(r.device, taken, NULL, NULL), WEIR_INVALID);
    assert_result(weir_free(NULL, taken), WEIR_NOT_FOUND); /* sim needs its device */
    assert_says(weir_last_error(), "name the device");
    assert_unchanged(&was);
    assert_ok(weir_free(r.device, taken));
    rig_close(&r);
}

static void pointer__whose_handle_was_released_is_stale(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    void *pointer = take(r.stream, 4000);
    weir_buffer buffer;
    assert_ok(weir_buffer_find(r.device, pointer, &buffer, NULL));
    drop(buffer);
    weir_buffer next = make(r.stream, 4000, NULL);
    assert_int_equal(weir_buffer_address(next), (uintptr_t)pointer);
    still was = hold_still(&r);
    assert_result(weir_free(r.device, pointer), WEIR_STALE);
    assert_result(weir_buffer_find(r.device, pointer, &buffer, NULL), WEIR_STALE);
    assert_unchanged(&was);
    drop(next);
    assert_ptr_equal(take(r.stream, 4000), pointer); /* and its entry serves again */
    assert_ok(weir_free(r.device, pointer));
    rig_close(&r);
}

static void pointer__of_an_abandoned_device_is_stale(void **state)
{
    (void)state;
    weir_device *device = open_host(NULL);
    void *pointer = take(weir_device_default_stream(device), 3 * MIB);
    weir_device_abandon(device);
    assert_result(weir_free(NULL, pointer), WEIR_STALE);
    weir_buffer buffer;
    assert_result(weir_buffer_find(NULL, behind(pointer, MIB), &buffer, NULL),
                  WEIR_NOT_FOUND);
}

/* The sim driver as one that wrongly says that its addresses are the process's. */
static weir_driver_table liar;

static void lie(weir_driver *driver, weir_driver_properties *properties)
{
    weir_driver_at(1)->properties(driver, properties);
    properties->own_addresses = false;
}

static void pointer__of_two_devices_at_one_address_is_refused(void **state)
{
    (void)state;
    liar = *weir_driver_at(1);
    assert_string_equal(liar.name, "sim");
    liar.properties = lie;
    weir_device_desc desc = {.no_thread = true};
    weir_device *one = NULL, *other = NULL;
    assert_ok(weir_device_open_driver(&liar, "", &desc, &one));
    assert_ok(weir_device_open_driver(&liar, "", &desc, &other));
    void *a = take(weir_device_default_stream(one), 4096), *b = NULL;
    assert_result(weir_malloc(weir_device_default_stream(other), 4096, NULL, &b),
                  WEIR_INVALID);
    assert_says(weir_last_error(), "own_addresses");
    assert_null(b);
    assert_int_equal(usage_of(other).live_count, 0);
    assert_ok(weir_free(NULL, a));
    assert_ok(weir_malloc(weir_device_default_stream(other), 4096, NULL, &b));
    assert_ok(weir_free(other, b));
    assert_ok(weir_device_close(one));
    assert_ok(weir_device_close(other));
}

static void pointer__without_host_memory_leaves_all_as_it_was(void **state)
{
    (void)state;
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    for (uint64_t nth = 1; result != WEIR_OK; nth++) {
        rig r = rig_open(NULL, NULL);
        void *pointer = NULL;
        wr_host_fail_nth(nth);
        result = weir_malloc(r.stream, 3000, NULL, &pointer);
        wr_host_fail_nth(0);
        if (result != WEIR_OK) {
            assert_int_equal(result, WEIR_OUT_OF_HOST_MEMORY);
            assert_null(pointer);
        } else {
            assert_ok(weir_free(r.device, pointer));
        }
        rig_close(&r);
    }
}

/* ---- threads ---- */

#define THREADS 4
#define SLOTS 32
#define ROUNDS 3000

/* What one thread takes, any other frees. */
typedef struct crowd {
    weir_device *device;
    _Atomic(void *) slots[SLOTS];
    _Atomic uint64_t wrong;
} crowd;

typedef struct member {
    crowd *all;
    weir_stream *stream;
    uint64_t random;
} member;

static uint64_t roll(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *random >> 33;
}

static void *swap_pointers(void *context)
{
    member *me = context;
    crowd *all = me->all;
    for (int i = 0; i < ROUNDS; i++) {
        void *pointer = NULL;
        uint64_t bytes = (uint64_t)1 << (roll(&me->random) % 18), usable = 0, offset = 0;
        weir_buffer buffer;
        all->wrong += weir_malloc(me->stream, bytes, NULL, &pointer) != WEIR_OK;
        all->wrong +=
            weir_usable_bytes(NULL, pointer, &usable) != WEIR_OK || usable < bytes;
        all->wrong += weir_buffer_find(NULL, behind(pointer, bytes - 1), &buffer,
                                       &offset) != WEIR_OK ||
                      offset != bytes - 1;
        memset(pointer, 1, bytes);
        pointer = atomic_exchange(&all->slots[roll(&me->random) % SLOTS], pointer);
        all->wrong += weir_free(NULL, pointer) != WEIR_OK;
    }
    return NULL;
}

static void pointer__may_be_taken_and_freed_by_any_thread(void **state)
{
    (void)state;
    static crowd all;
    pthread_t threads[THREADS];
    member members[THREADS];
    all.device = open_host(NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        members[i] = (member){&all, open_stream(all.device, NULL), i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, swap_pointers, &members[i]),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(all.wrong, 0);
    for (unsigned i = 0; i < SLOTS; i++) {
        assert_ok(weir_free(NULL, all.slots[i]));
    }
    assert_int_equal(usage_of(all.device).live_count, 0);
    assert_ok(weir_device_check(all.device));
    for (unsigned i = 0; i < THREADS; i++) {
        assert_ok(weir_stream_close(members[i].stream));
    }
    assert_ok(weir_device_close(all.device));
}

/* All threads free the same pointers, none of which is handed out again meanwhile. */
typedef struct rivals {
    weir_device *device;
    void *pointers[ROUNDS];
    _Atomic uint64_t freed, stale, other;
} rivals;

static void *free_all(void *context)
{
    rivals *all = context;
    for (int i = 0; i < ROUNDS; i++) {
        weir_result result = weir_free(all->device, all->pointers[i]);
        all->freed += result == WEIR_OK;
        all->stale += result == WEIR_STALE;
        all->other += result != WEIR_OK && result != WEIR_STALE;
    }
    return NULL;
}

static void pointer__is_freed_once_however_many_threads_try(void **state)
{
    (void)state;
    static rivals all;
    rig r = rig_open(NULL, NULL);
    all.device = r.device;
    for (int i = 0; i < ROUNDS; i++) {
        all.pointers[i] = take(r.stream, 300 + (uint64_t)i % 7 * 20000);
    }
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, free_all, &all), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(all.freed, ROUNDS);
    assert_int_equal(all.stale, ROUNDS * (THREADS - 1));
    assert_int_equal(all.other, 0);
    assert_int_equal(usage_of(r.device).live_count, 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointer__goes_to_its_buffer_and_back),
        cmocka_unit_test(pointer__works_under_every_preset),
        cmocka_unit_test(pointer__takes_the_options_of_a_buffer),
        cmocka_unit_test(pointer__is_found_from_any_byte_inside),
        cmocka_unit_test(pointer__tells_its_device_where_addresses_are_real),
        cmocka_unit_test(pointer__is_told_apart_on_devices_with_the_same_addresses),
        cmocka_unit_test(pointer__keeps_nothing_that_was_retained_from_living_on),
        cmocka_unit_test(pointer__has_only_requested_bytes_in_checked_mode),
        cmocka_unit_test(pointer__takes_no_host_memory_in_a_steady_state),
        cmocka_unit_test(pointer__that_is_wrong_is_refused_and_changes_nothing),
        cmocka_unit_test(pointer__arguments_are_checked),
        cmocka_unit_test(pointer__whose_handle_was_released_is_stale),
        cmocka_unit_test(pointer__of_an_abandoned_device_is_stale),
        cmocka_unit_test(pointer__of_two_devices_at_one_address_is_refused),
        cmocka_unit_test(pointer__without_host_memory_leaves_all_as_it_was),
        cmocka_unit_test(pointer__may_be_taken_and_freed_by_any_thread),
        cmocka_unit_test(pointer__is_freed_once_however_many_threads_try),
    };
    return cmocka_run_group_tests_name("core, pointer", tests, NULL, NULL);
}
