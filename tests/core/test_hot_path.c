/* SPDX-License-Identifier: MIT */
/* After warm-up, creating and releasing buffers calls neither malloc nor the driver. All
 * of the process's host allocations are counted: this file defines the malloc family in
 * front of the C library's; under a sanitizer, whose allocator must stay, it listens to
 * the sanitizer's hooks. */
#include "support.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LISTEN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LISTEN 1
#endif

static _Atomic uint64_t mallocs;

#ifdef LISTEN

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *,
                                                                  size_t),
                                              void (*free_hook)(const volatile void *));

static void count_malloc(const volatile void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
}

static void ignore_free(const volatile void *memory)
{
    (void)memory;
}

static void listen_to_malloc(void)
{
    assert_true(__sanitizer_install_malloc_and_free_hooks(count_malloc, ignore_free) > 0);
}

#else

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **memory, size_t alignment, size_t bytes);

static void count(void)
{
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
}

void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count();
    return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    count();
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    count();
    *memory = __libc_memalign(alignment, bytes);
    return *memory == NULL ? ENOMEM : 0;
}

static void listen_to_malloc(void)
{
}

#endif

#define WARM_UP 2000
#define PAIRS 100000
#define LIVE 64

/* What must stand still. */
typedef struct quiet {
    uint64_t mallocs, host_calls, memory_calls, order_calls;
} quiet;

static quiet counters(rig *r)
{
    weir_sim_ledger ledger = ledger_of(r);
    return (quiet){atomic_load(&mallocs), wr_host_calls(), memory_calls(&ledger),
                   order_calls(&ledger)};
}

static void assert_quiet(rig *r, const quiet *before)
{
    quiet now = counters(r);
    assert_int_equal(now.mallocs, before->mallocs);
    assert_int_equal(now.host_calls, before->host_calls);
    assert_int_equal(now.memory_calls, before->memory_calls);
}

static void create(weir_stream *stream, uint64_t bytes, const weir_buffer_desc *desc,
                   weir_buffer *buffer)
{
    if (weir_buffer_create(stream, bytes, desc, buffer) != WEIR_OK) {
        fail_msg("create: %s", weir_last_error());
    }
}

static void release(weir_buffer buffer)
{
    if (weir_buffer_release(buffer) != WEIR_OK) {
        fail_msg("release: %s", weir_last_error());
    }
}

/* A ring of live buffers of changing sizes, the same in every round. */
static void churn(weir_stream *stream, const weir_buffer_desc *desc, unsigned pairs)
{
    static const uint64_t sizes[] = {16,      4 * KIB,  100 * KIB, 900,     2 * MIB,
                                     5 * MIB, 64 * KIB, 7,         MIB + 1, 300 * KIB};
    weir_buffer ring[LIVE];
    for (unsigned i = 0; i < LIVE; i++) {
        create(stream, sizes[i % 10], desc, &ring[i]);
    }
    for (unsigned i = LIVE; i < pairs; i++) {
        release(ring[i % LIVE]);
        create(stream, sizes[i % 10], desc, &ring[i % LIVE]);
    }
    for (unsigned i = 0; i < LIVE; i++) {
        release(ring[i]);
    }
}

static void check_quiet(const weir_sim_desc *sim, const char *preset, const char *tag)
{
    weir_device_desc options = {.preset = preset, .no_thread = true};
    rig r = rig_open(sim, &options);
    weir_buffer_desc desc = {.tag = tag};
    churn(r.stream, &desc, WARM_UP);
    churn(r.stream, &desc, WARM_UP);
    quiet before = counters(&r);
    churn(r.stream, &desc, PAIRS);
    assert_quiet(&r, &before);
    assert_int_equal(counters(&r).order_calls, before.order_calls);
    rig_close(&r);
}

static void hot_path__the_counting_is_alive(void **state)
{
    (void)state;
    uint64_t before = atomic_load(&mallocs);
    void *memory = wr_host_alloc(100);
    assert_non_null(memory);
    assert_true(atomic_load(&mallocs) > before);
    wr_host_free(memory);
}

static void hot_path__granules_need_no_malloc_and_no_driver(void **state)
{
    (void)state;
    check_quiet(NULL, NULL, NULL);
}

static void hot_path__tagged_buffers_need_no_malloc_and_no_driver(void **state)
{
    (void)state;
    check_quiet(NULL, NULL, "activations");
}

static void hot_path__whole_pages_need_no_malloc_and_no_driver(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    check_quiet(&sim, NULL, NULL);
}

static void hot_path__adaptive_needs_no_malloc_and_no_driver(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    check_quiet(&sim, "adaptive", NULL);
}

static void hot_path__persistent_buffers_of_equal_size_need_no_driver(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer_desc desc = {.persistent = true};
    weir_buffer buffer;
    for (int i = 0; i < 100; i++) {
        create(r.stream, 3 * MIB, &desc, &buffer);
        release(buffer);
    }
    quiet before = counters(&r);
    for (int i = 0; i < PAIRS; i++) {
        create(r.stream, 3 * MIB, &desc, &buffer);
        release(buffer);
    }
    assert_quiet(&r, &before);
    rig_close(&r);
}

static void hot_path__uses_on_another_stream_need_no_malloc(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    quiet before = {0};
    for (int i = 0; i < PAIRS + WARM_UP; i++) {
        weir_buffer buffer;
        create(r.stream, (uint64_t)(1 + i % 7) * MIB, NULL, &buffer);
        if (weir_buffer_use(buffer, other) != WEIR_OK) {
            fail_msg("use: %s", weir_last_error());
        }
        release(buffer);
        if (i == WARM_UP) {
            before = counters(&r);
        }
    }
    assert_quiet(&r, &before);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void hot_path__usage_retain_and_ticks_need_no_malloc(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer kept = make(r.stream, MIB, "kept");
    churn(r.stream, NULL, WARM_UP);
    assert_ok(weir_device_tick(r.device, 1));
    (void)usage_of(r.device);
    quiet before = counters(&r);
    for (uint64_t i = 0; i < 1000; i++) {
        (void)usage_of(r.device);
        assert_ok(weir_buffer_retain(kept));
        assert_ok(weir_buffer_release(kept));
        assert_ok(weir_device_tick(r.device, 1 + i));
    }
    assert_quiet(&r, &before);
    drop(kept);
    rig_close(&r);
}

int main(void)
{
    listen_to_malloc();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hot_path__the_counting_is_alive),
        cmocka_unit_test(hot_path__granules_need_no_malloc_and_no_driver),
        cmocka_unit_test(hot_path__tagged_buffers_need_no_malloc_and_no_driver),
        cmocka_unit_test(hot_path__whole_pages_need_no_malloc_and_no_driver),
        cmocka_unit_test(hot_path__adaptive_needs_no_malloc_and_no_driver),
        cmocka_unit_test(hot_path__persistent_buffers_of_equal_size_need_no_driver),
        cmocka_unit_test(hot_path__uses_on_another_stream_need_no_malloc),
        cmocka_unit_test(hot_path__usage_retain_and_ticks_need_no_malloc),
    };
    return cmocka_run_group_tests_name("core, hot path", tests, NULL, NULL);
}
