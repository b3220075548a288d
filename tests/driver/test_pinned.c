/* SPDX-License-Identifier: MIT */
/* Pinned host memory as a device: on a fake libcuda the driver "pinned", on others what
 * stands for it. */
#define _GNU_SOURCE
#include "contract.h"
#include "fake/fake.h"

#include <dlfcn.h>
#include <stdlib.h>

static fake_control *control;

static int load_fake(void **state)
{
    (void)state;
    const char *path = getenv("WEIR_FAKE_CUDA");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    if (library == NULL) {
        print_error("WEIR_FAKE_CUDA must be the path of the fake libcuda\n");
        return 1;
    }
    fake_get_control get_control;
    *(void **)&get_control = dlsym(library, "fake_cuda_control");
    control = get_control();
    setenv("WEIR_CUDA_LIBRARY", path, 1);
    setenv("WEIR_NVML_LIBRARY", path, 1);
    return 0;
}

static void fail_next(fake_entry entry, wr_cu_result result)
{
    atomic_store(&control->fail_with, (int)result);
    atomic_store(&control->fail_nth[entry], 1);
}

static void assert_text(const char *part)
{
    if (strstr(weir_last_error(), part) == NULL) {
        print_error("\"%s\" is not in: %s\n", part, weir_last_error());
        fail();
    }
}

static weir_device *open_named(const char *name, const weir_pinned_desc *config)
{
    weir_device *device = NULL;
    weir_device_desc desc = {.no_thread = true, .driver_config = config};
    assert_ok(weir_device_open(name, &desc, &device));
    return device;
}

static weir_device *open_pinned(weir_device *device, const weir_pinned_desc *config)
{
    weir_device *pinned = NULL;
    weir_device_desc desc = {.no_thread = true, .driver_config = config};
    assert_ok(weir_device_open_pinned(device, &desc, &pinned));
    return pinned;
}

static weir_buffer make(weir_stream *stream, uint64_t bytes)
{
    weir_buffer buffer;
    assert_ok(weir_buffer_create(stream, bytes, &(weir_buffer_desc){.tag = "staging"},
                                 &buffer));
    return buffer;
}

static weir_usage usage_of(weir_device *device)
{
    weir_usage usage = {0};
    assert_ok(weir_device_memory_usage(device, &usage));
    return usage;
}

static weir_cleanup_outcome clean(weir_device *device)
{
    weir_cleanup_outcome outcome = {0};
    assert_ok(weir_device_memory_cleanup(device, NULL, &outcome));
    return outcome;
}

static void pinned__opens_by_the_device_that_it_is_for(void **state)
{
    (void)state;
    static const struct {
        const char *device, *pinned;
    } pairs[] = {
        {"cuda", "pinned:0"}, {"cuda:1", "pinned:1"}, {"host", "host"}, {"sim", "sim"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        weir_device *device = open_named(pairs[i].device, NULL);
        weir_device *pinned = open_pinned(device, NULL);
        assert_string_equal(weir_device_name(pinned), pairs[i].pinned);
        assert_ok(weir_device_close(device)); /* either may go first */
        assert_ok(weir_device_close(pinned));
    }
    assert_int_equal(control->contexts, 0);
}

static void pinned__needs_a_device_that_has_some(void **state)
{
    (void)state;
    weir_device *device = open_named("pinned", NULL), *pinned = NULL;
    assert_result(weir_device_open_pinned(device, NULL, &pinned), WEIR_UNSUPPORTED);
    assert_text("pinned has no pinned host memory");
    assert_result(weir_device_open_pinned(NULL, NULL, &pinned), WEIR_INVALID);
    assert_result(weir_device_open_pinned(device, NULL, NULL), WEIR_INVALID);
    assert_null(pinned);
    assert_ok(weir_device_close(device));
    weir_pinned_desc wrong = {.size = 3};
    weir_device_desc desc = {.driver_config = &wrong};
    assert_result(weir_device_open("pinned", &desc, &device), WEIR_INVALID);
    assert_result(weir_device_open("pinned:7", NULL, &device), WEIR_NOT_FOUND);
}

static void pinned__is_host_memory_in_exact_sizes_that_all_goes_back(void **state)
{
    (void)state;
    weir_device *pinned = open_named("pinned", NULL);
    weir_stream *stream = weir_device_default_stream(pinned);
    weir_buffer large = make(stream, 100 * MIB), small = make(stream, 1000);
    memset((void *)(uintptr_t)weir_buffer_address(large), 1, 100 * MIB);
    assert_int_equal(weir_buffer_extent(large), 100 * MIB);
    assert_int_equal(usage_of(pinned).reserved_bytes, 108 * MIB); /* one small page */
    assert_int_equal(control->host_bytes, 108 * MIB);
    weir_tag_usage tag;
    assert_ok(weir_device_tag_usage(pinned, "staging", &tag));
    assert_int_equal(tag.in_use_bytes, 100 * MIB + 1000);
    assert_ok(weir_buffer_release(large));
    assert_ok(weir_buffer_release(small));
    assert_int_equal(control->host_bytes, 108 * MIB); /* kept for the next request */
    assert_int_equal(clean(pinned).returned_bytes, 108 * MIB);
    assert_int_equal(control->host_bytes, 0);
    assert_int_equal(control->pages, 0); /* nothing of the GPU's */
    assert_ok(weir_device_close(pinned));
}

static void pinned__waits_for_the_queue_whose_stream_it_adopted(void **state)
{
    (void)state;
    weir_device *gpu = open_named("cuda", NULL), *pinned = open_pinned(gpu, NULL);
    weir_stream *queue = weir_device_default_stream(gpu), *staging = NULL;
    weir_stream_desc desc = {.native = weir_stream_native(queue)};
    assert_ok(weir_stream_create(pinned, &desc, &staging));
    weir_buffer from = make(staging, 16 * MIB), to = make(queue, 16 * MIB);
    char *bytes = (char *)(uintptr_t)weir_buffer_address(from);
    memset(bytes, 5, 16 * MIB);
    atomic_store(&control->hold, true);
    weir_driver *driver = weir_device_driver(gpu);
    assert_ok(driver->table->copy(driver, weir_stream_driver_stream(queue),
                                  weir_buffer_address(to), weir_buffer_address(from),
                                  16 * MIB));
    assert_ok(weir_buffer_release(from));
    weir_cleanup_outcome outcome = clean(pinned);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_int_equal(outcome.deferred_bytes, 16 * MIB);
    atomic_store(&control->hold, false);
    assert_int_equal(clean(pinned).returned_bytes, 16 * MIB);
    unsigned char last = 0;
    assert_ok(weir_buffer_read(to, 16 * MIB - 1, &last, 1));
    assert_int_equal(last, 5);
    assert_ok(weir_buffer_release(to));
    assert_ok(weir_stream_close(staging));
    assert_ok(weir_device_close(pinned));
    assert_ok(weir_device_close(gpu));
}

static void pinned__is_bounded(void **state)
{
    (void)state;
    weir_pinned_desc config = {.capacity_bytes = 64 * MIB};
    weir_device *pinned = open_named("pinned", &config);
    weir_stream *stream = weir_device_default_stream(pinned);
    weir_buffer first = make(stream, 40 * MIB), second = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(stream, 30 * MIB, NULL, &second),
                  WEIR_OUT_OF_MEMORY);
    assert_int_equal(control->host_bytes, 40 * MIB);
    assert_ok(weir_buffer_release(first));
    second = make(stream, 64 * MIB); /* what nobody holds makes room */
    assert_int_equal(control->host_bytes, 64 * MIB);
    assert_ok(weir_buffer_release(second));
    assert_ok(weir_device_close(pinned));
    weir_driver_properties host, properties;
    weir_device *other = open_named("host", NULL);
    assert_ok(weir_device_properties(other, &host));
    assert_ok(weir_device_close(other));
    pinned = open_named("pinned", NULL);
    assert_ok(weir_device_properties(pinned, &properties));
    assert_int_equal(properties.capacity_bytes, host.capacity_bytes / 2);
    assert_true(properties.host_visible);
    assert_ok(weir_device_close(pinned));
}

static void pinned__leaves_nothing_where_cuda_refuses(void **state)
{
    (void)state;
    weir_device *pinned = open_named("pinned", NULL);
    weir_stream *stream = weir_device_default_stream(pinned);
    weir_buffer buffer = WEIR_NO_BUFFER;
    fail_next(FAKE_host_alloc, WR_CU_ILLEGAL_ADDRESS);
    assert_result(weir_buffer_create(stream, 16 * MIB, NULL, &buffer), WEIR_DEVICE_LOST);
    assert_text("cuMemHostAlloc");
    assert_int_equal(buffer.index, 0);
    assert_int_equal(usage_of(pinned).reserved_bytes, 0);
    weir_device_abandon(pinned);
    pinned = open_named("pinned", NULL);
    buffer = make(weir_device_default_stream(pinned), 16 * MIB);
    assert_ok(weir_buffer_release(buffer));
    fail_next(FAKE_host_free, WR_CU_INVALID_VALUE);
    assert_int_equal(clean(pinned).returned_bytes, 0); /* stays in the books */
    assert_int_equal(usage_of(pinned).reserved_bytes, 16 * MIB);
    assert_int_equal(clean(pinned).returned_bytes, 16 * MIB);
    assert_ok(weir_device_close(pinned));
    assert_int_equal(control->host_pages, 0);
}

static void pinned__reports_what_nobody_counts_as_unknown(void **state)
{
    (void)state;
    weir_device *pinned = open_named("pinned", NULL);
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(pinned, &report));
    assert_int_equal(report.footprint_bytes, WEIR_UNKNOWN_BYTES);
    assert_int_equal(report.others_bytes, WEIR_UNKNOWN_BYTES);
    assert_ok(weir_device_close(pinned));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned__opens_by_the_device_that_it_is_for),
        cmocka_unit_test(pinned__needs_a_device_that_has_some),
        cmocka_unit_test(pinned__is_host_memory_in_exact_sizes_that_all_goes_back),
        cmocka_unit_test(pinned__waits_for_the_queue_whose_stream_it_adopted),
        cmocka_unit_test(pinned__is_bounded),
        cmocka_unit_test(pinned__leaves_nothing_where_cuda_refuses),
        cmocka_unit_test(pinned__reports_what_nobody_counts_as_unknown),
    };
    return cmocka_run_group_tests_name("driver, pinned", tests, load_fake, NULL);
}
