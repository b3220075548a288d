/* SPDX-License-Identifier: MIT */
/* Checked mode on host memory: canaries and poison. */
#define _GNU_SOURCE
#include "support.h"

#include "base/poison.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int __asan_address_is_poisoned(void const volatile *address) __attribute__((weak));

static weir_device *device;
static weir_stream *stream;

static void open_host(bool checked)
{
    weir_device_desc desc = {.no_thread = true, .checked = checked};
    assert_ok(weir_device_open("host", &desc, &device));
    stream = weir_device_default_stream(device);
}

static void close_host(void)
{
    cleanup(device, NULL);
    assert_int_equal(usage_of(device).live_count, 0);
    assert_ok(weir_device_close(device));
}

static uint8_t *bytes_of(weir_buffer buffer)
{
    return (uint8_t *)(uintptr_t)weir_buffer_address(buffer);
}

/* What an overrun by code that the sanitizer does not watch does. */
static __attribute__((no_sanitize("address"))) void poke(uint8_t *at)
{
    *(volatile uint8_t *)at = 1;
}

static void buffers_that_stay_in_their_bytes_are_released_as_ever(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 7, 240, 241, 256, 4096, 65536, 3 * MIB + 5};
    open_host(true);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        weir_buffer buffer = make(stream, sizes[i], "tidy");
        memset(bytes_of(buffer), 0xff, sizes[i]);
        assert_int_equal(weir_buffer_bytes(buffer), sizes[i]);
        assert_true(weir_buffer_extent(buffer) >= sizes[i] + 16);
        assert_ok(weir_device_check(device));
        drop(buffer);
        assert_result(weir_buffer_release(buffer), WEIR_STALE);
    }
    close_host();
}

static void overrun_at(uint64_t bytes, uint64_t behind, const weir_buffer_desc *desc)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    char offset[64];
    assert_ok(weir_buffer_create(stream, bytes, desc, &buffer));
    poke(bytes_of(buffer) + bytes + behind);
    assert_result(weir_buffer_release(buffer), WEIR_INVALID);
    snprintf(offset, sizeof offset, "offset %llu", (unsigned long long)(bytes + behind));
    assert_says(weir_last_error(), offset);
    assert_says(weir_last_error(), desc != NULL ? desc->tag : "untagged");
    snprintf(offset, sizeof offset, "{%u, %u}", buffer.index, buffer.generation);
    assert_says(weir_last_error(), offset);
    assert_int_equal(usage_of(device).live_count, 0);
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
}

static void an_overrun_is_named_and_the_buffer_released_all_the_same(void **state)
{
    (void)state;
    open_host(true);
    overrun_at(100, 0, NULL);
    overrun_at(256, 15, NULL);
    overrun_at(240, 0, &(weir_buffer_desc){.tag = "kv-cache"});
    overrun_at(5 * MIB, 3, &(weir_buffer_desc){.tag = "weights", .persistent = true});
    overrun_at(1000, 1,
               &(weir_buffer_desc){.tag = "aligned", .alignment_bytes = 64 * KIB});
    close_host();
}

static void the_last_of_several_references_finds_the_overrun(void **state)
{
    (void)state;
    open_host(true);
    weir_buffer buffer = make(stream, 64, "shared");
    assert_ok(weir_buffer_retain(buffer));
    assert_int_equal(weir_buffer_references(buffer), 2);
    poke(bytes_of(buffer) + 64);
    drop(buffer);
    assert_int_equal(weir_buffer_references(buffer), 1);
    assert_result(weir_buffer_release(buffer), WEIR_INVALID);
    close_host();
}

static void released_bytes_are_poisoned(void **state)
{
    (void)state;
    open_host(true);
    weir_buffer buffer = make(stream, 100000, "gone"), near = make(stream, 100, "near");
    uint64_t address = weir_buffer_address(buffer);
    memset(bytes_of(buffer), 0, 100000);
    drop(buffer);
    assert_int_equal(wr_poison_find_damage(address, 100000, WR_POISON_FREED), 100000);
    drop(near);
    close_host();
}

static void the_address_sanitizer_knows_what_is_closed(void **state)
{
    (void)state;
    if (__asan_address_is_poisoned == NULL) {
        skip();
    }
    open_host(true);
    weir_buffer buffer = make(stream, 1000, "open"), near = make(stream, 100, "near");
    uint8_t *bytes = bytes_of(buffer);
    assert_false(__asan_address_is_poisoned(bytes));
    assert_false(__asan_address_is_poisoned(bytes + 999));
    assert_true(__asan_address_is_poisoned(bytes + 1000));
    drop(buffer);
    assert_true(__asan_address_is_poisoned(bytes));
    buffer = make(stream, 1000, "again");
    assert_ptr_equal(bytes_of(buffer), bytes);
    memset(bytes, 0, 1000);
    drop(buffer);
    drop(near);
    close_host();
    assert_false(__asan_address_is_poisoned(bytes));
}

static void the_environment_turns_it_on(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEIR_CHECKED", "1", 1), 0);
    open_host(false);
    overrun_at(100, 0, NULL);
    close_host();
    assert_int_equal(setenv("WEIR_CHECKED", "0", 1), 0);
    open_host(false);
    weir_buffer buffer = make(stream, 100, "off");
    poke(bytes_of(buffer) + 100);
    drop(buffer);
    close_host();
    unsetenv("WEIR_CHECKED");
}

static void without_it_no_byte_more_is_taken(void **state)
{
    (void)state;
    open_host(false);
    weir_buffer buffer = make(stream, 256, NULL);
    assert_int_equal(weir_buffer_extent(buffer), 256);
    poke(bytes_of(buffer));
    drop(buffer);
    close_host();
}

static void a_checked_device_is_abandoned_with_live_buffers(void **state)
{
    (void)state;
    open_host(true);
    weir_buffer buffer = make(stream, 3 * MIB, "left");
    weir_device_abandon(device);
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
}

static void memory_that_the_host_cannot_see_is_left_alone(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .checked = true});
    weir_buffer buffer = make(r.stream, 256, NULL);
    assert_int_equal(weir_buffer_extent(buffer), 256);
    drop(buffer);
    rig_close(&r);
}

static void touch_nothing(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    (void)launch;
    (void)begin;
    (void)end;
}

static void a_launch_is_refused_for_a_buffer_that_was_never_declared(void **state)
{
    (void)state;
    weir_device *host;
    weir_stream *other;
    weir_buffer x;
    assert_int_equal(
        weir_device_open("host", &(weir_device_desc){.checked = true}, &host), WEIR_OK);
    assert_int_equal(weir_stream_create(host, NULL, &other), WEIR_OK);
    weir_buffer_desc desc = {.tag = "weights"};
    assert_int_equal(
        weir_buffer_create(weir_device_default_stream(host), 4096, &desc, &x), WEIR_OK);
    weir_kernel kernel = {.name = "nothing", .host = touch_nothing};
    weir_launch launch = {
        .kernel = &kernel, .element_count = 1, .buffers = &x, .buffer_count = 1};
    assert_int_equal(weir_stream_launch(weir_device_default_stream(host), &launch),
                     WEIR_OK);
    assert_int_equal(weir_stream_launch(other, &launch), WEIR_INVALID);
    assert_non_null(strstr(weir_last_error(), "weights"));
    assert_int_equal(weir_buffer_use(x, other), WEIR_OK);
    assert_int_equal(weir_stream_launch(other, &launch), WEIR_OK);
    assert_int_equal(weir_buffer_release(x), WEIR_OK);
    assert_int_equal(weir_stream_launch(other, &launch), WEIR_STALE);
    assert_int_equal(weir_stream_close(other), WEIR_OK);
    assert_int_equal(weir_device_close(host), WEIR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_that_stay_in_their_bytes_are_released_as_ever),
        cmocka_unit_test(an_overrun_is_named_and_the_buffer_released_all_the_same),
        cmocka_unit_test(the_last_of_several_references_finds_the_overrun),
        cmocka_unit_test(released_bytes_are_poisoned),
        cmocka_unit_test(the_address_sanitizer_knows_what_is_closed),
        cmocka_unit_test(the_environment_turns_it_on),
        cmocka_unit_test(without_it_no_byte_more_is_taken),
        cmocka_unit_test(a_checked_device_is_abandoned_with_live_buffers),
        cmocka_unit_test(memory_that_the_host_cannot_see_is_left_alone),
        cmocka_unit_test(a_launch_is_refused_for_a_buffer_that_was_never_declared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
