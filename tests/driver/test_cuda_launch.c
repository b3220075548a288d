/* SPDX-License-Identifier: MIT */
/* Launches on the CUDA driver with a fake libcuda and NVRTC: what is compiled, kept and
 * said. tests/kernel/test_cuda.c is about results. */
#define _GNU_SOURCE
#include "fake_rig.h"

#include "base/memory.h"

#include <weir/kernel.h>

static const char *source_text;

static weir_result write_source(const weir_kernel *kernel, weir_language language,
                                weir_write_fn write, void *context)
{
    (void)kernel;
    assert_int_equal(language, WEIR_LANGUAGE_CUDA);
    return write(context, source_text, strlen(source_text));
}

/* Adds the arguments' number to each of the elements, by the grid. */
static const char add_text[] =
    "struct words { long long count, number; };\n"
    "extern \"C\" __global__ void add(int *numbers, words w)\n"
    "{\n"
    "    unsigned all = gridDim.x * blockDim.x;\n"
    "    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < w.count; i += all)\n"
    "        numbers[i] += (int)w.number;\n"
    "}\n";

typedef struct adding {
    weir_kernel kernel;
    weir_binding binding;
    int64_t words[2];
    weir_launch launch;
    weir_driver_stream stream;
} adding;

/* `count` numbers on a page. */
static void prepare(adding *work, uint64_t id, int64_t count)
{
    uint64_t bytes = (uint64_t)count * sizeof(int);
    source_text = add_text;
    *work = (adding){
        .kernel = {.name = "add", .id = id, .source = write_source},
        .binding = {take_page(&rig, bytes), bytes, WEIR_ACCESS_READ_WRITE},
        .words = {count, 5},
        .launch = {.binding_count = 1,
                   .argument_bytes = sizeof work->words,
                   .element_count = (uint64_t)count},
        .stream = take_stream(&rig),
    };
    memset((void *)(uintptr_t)work->binding.address, 0, bytes);
    work->launch.kernel = &work->kernel;
    work->launch.bindings = &work->binding;
    work->launch.arguments = work->words;
}

static weir_result launch_it(const adding *work)
{
    return rig.table->launch(rig.driver, work->stream, &work->launch);
}

static void a_launch__says_what_is_missing(void **state)
{
    (void)state;
    adding work;
    prepare(&work, 1, 10);
    work.kernel.source = NULL;
    assert_result(launch_it(&work), WEIR_UNSUPPORTED);
    assert_text("kernel \"add\" has no CUDA form");
    work.kernel.source = write_source;
    setenv("WEIR_NVRTC_LIBRARY", "/no/such/libnvrtc.so.13", 1);
    assert_result(launch_it(&work), WEIR_UNSUPPORTED);
    assert_text("cuda: /no/such/libnvrtc.so.13 cannot be loaded");
    assert_text("install NVRTC");
    setenv("WEIR_NVRTC_LIBRARY", "libnvrtc.so.13", 1);
    assert_result(launch_it(&work), WEIR_INVALID);
    assert_text("absolute path");
}

static void a_kernel_of_the_programs__runs_over_all_elements(void **state)
{
    (void)state;
    adding work;
    prepare(&work, 77, 100000);
    assert_ok(launch_it(&work));
    work.words[1] = 2;
    assert_ok(launch_it(&work));
    const int *numbers = (const int *)(uintptr_t)work.binding.address;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(numbers[i], 7);
    }
    assert_int_equal(calls_of(FAKE_module_load), 1);
    assert_int_equal(calls_of(FAKE_launch), 2);
}

static void a_kernel_without_an_id__is_not_kept(void **state)
{
    (void)state;
    adding work;
    prepare(&work, 0, 10);
    assert_ok(launch_it(&work));
    assert_ok(launch_it(&work));
    assert_int_equal(*(const int *)(uintptr_t)work.binding.address, 10);
    assert_int_equal(calls_of(FAKE_module_load), 2);
    assert_int_equal(control->modules, 0);
}

static void a_text_that_is_wrong__comes_back_with_the_compilers_words(void **state)
{
    (void)state;
    adding work;
    prepare(&work, 3, 10);
    source_text =
        "extern \"C\" __global__ void add(int *numbers) { numbers = nonsense; }";
    assert_result(launch_it(&work), WEIR_UNSUPPORTED);
    assert_text("kernel \"add\" does not compile");
    assert_text("nonsense");
    source_text = add_text;
    assert_ok(launch_it(&work));
}

static void a_device_newer_than_nvrtc__gets_ptx(void **state)
{
    (void)state;
    adding work;
    rig_close(&rig);
    atomic_store(&control->capability, 103);
    rig_open(&rig, "cuda", NULL);
    prepare(&work, 4, 10);
    assert_ok(launch_it(&work));
    assert_int_equal(*(const int *)(uintptr_t)work.binding.address, 5);
    rig_close(&rig);
    atomic_store(&control->capability, 70);
    rig_open(&rig, "cuda", NULL);
    prepare(&work, 4, 10);
    assert_result(launch_it(&work), WEIR_UNSUPPORTED);
    assert_text("compute capability 7.0");
}

static void a_launch_that_fails__leaves_nothing_and_can_be_done_again(void **state)
{
    (void)state;
    static const fake_entry entries[] = {FAKE_context_push, FAKE_module_load,
                                         FAKE_function_get, FAKE_launch};
    adding work;
    prepare(&work, 5, 10);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_next(entries[i], 1, WR_CU_INVALID_VALUE);
        assert_result(launch_it(&work), WEIR_DRIVER);
    }
    assert_int_equal(*(const int *)(uintptr_t)work.binding.address, 0);
    for (uint64_t nth = 1;; nth++) {
        work.kernel.id = 100;
        wr_host_fail_nth(nth);
        weir_result result = launch_it(&work);
        wr_host_fail_nth(0);
        if (result == WEIR_OK) {
            assert_true(nth > 2);
            break;
        }
        assert_result(result, WEIR_OUT_OF_HOST_MEMORY);
    }
    assert_int_equal(*(const int *)(uintptr_t)work.binding.address, 5);
}

/* [2, 3] times [3, 2], with numbers of which one can see that they are in place. */
static void a_product__takes_its_workspace_from_the_pools(void **state)
{
    (void)state;
    static const float numbers[2][6] = {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, 1}};
    weir_device *device;
    weir_buffer buffers[3];
    weir_binding bindings[3];
    float got[4];
    weir_tag_usage tag = {0};
    setenv("WEIR_CUBLAS_LIBRARY", "/no/such/libcublas.so.13", 1);
    assert_ok(weir_device_open("cuda", NULL, &device));
    weir_stream *stream = weir_device_default_stream(device);
    for (int i = 0; i < 3; i++) {
        assert_ok(weir_buffer_create(stream, i < 2 ? 24 : 16, NULL, &buffers[i]));
        bindings[i] = (weir_binding){weir_buffer_address(buffers[i]),
                                     weir_buffer_bytes(buffers[i]), WEIR_ACCESS_READ};
    }
    assert_ok(weir_buffer_write(buffers[0], 0, numbers[0], 24));
    assert_ok(weir_buffer_write(buffers[1], 0, numbers[1], 24));
    weir_kernel kernel = {.kind = WEIR_KERNEL_MATMUL, .name = "matmul_f32", .id = 32};
    weir_matmul_words words = {.batch_count = 1,
                               .rows = 2,
                               .columns = 2,
                               .inner = 3,
                               .left = {.row_stride = 3, .column_stride = 1},
                               .right = {.row_stride = 2, .column_stride = 1}};
    weir_launch launch = {.kernel = &kernel,
                          .bindings = bindings,
                          .binding_count = 3,
                          .arguments = &words,
                          .argument_bytes = sizeof words,
                          .element_count = 1};
    assert_result(weir_stream_launch(stream, &launch), WEIR_UNSUPPORTED);
    assert_text("install cuBLAS");
    setenv("WEIR_CUBLAS_LIBRARY", getenv("WEIR_FAKE_CUDA"), 1);
    assert_ok(weir_stream_launch(stream, &launch));
    assert_ok(weir_buffer_read(buffers[2], 0, got, sizeof got));
    assert_memory_equal(got, ((const float[4]){4, 5, 10, 11}), sizeof got);
    assert_ok(weir_device_tag_usage(device, "library", &tag));
    assert_int_equal(tag.in_use_bytes, 0);
    assert_int_equal(tag.peak_in_use_bytes, 256 * KIB);
    words.rows = 1 << 20;
    words.columns = 1 << 20;
    assert_int_equal(rig.table->workspace(rig.driver, &launch), 32 * MIB);
    for (int i = 0; i < 3; i++) {
        assert_ok(weir_buffer_release(buffers[i]));
    }
    assert_ok(weir_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch__says_what_is_missing),
        TEST(a_kernel_of_the_programs__runs_over_all_elements),
        TEST(a_kernel_without_an_id__is_not_kept),
        TEST(a_text_that_is_wrong__comes_back_with_the_compilers_words),
        TEST(a_device_newer_than_nvrtc__gets_ptx),
        TEST(a_launch_that_fails__leaves_nothing_and_can_be_done_again),
        TEST(a_product__takes_its_workspace_from_the_pools),
    };
    return cmocka_run_group_tests_name("launches on cuda", tests, load_fake, NULL);
}
