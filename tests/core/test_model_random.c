/* SPDX-License-Identifier: MIT */
/* Random calls over several streams on the device and on a naive model of it, compared
 * after every call. WEIR_SEED chooses the calls, WEIR_OPS their number per test,
 * WEIR_SOAK=1 makes it ten million in all, WEIR_VERBOSE=1 prints each. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "model.h"

#define CONFIGURATIONS 10
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SHORT_OPS 1600 /* slow there; the plain build does all */
#endif
#endif
#ifndef SHORT_OPS
#define SHORT_OPS 8000
#endif
#define SOAK_OPS 10000000

static void failed(const char *text)
{
    fail_msg("%s", text);
}

static void print_step(const model *m)
{
    print_message("%llu%s %s\n", (unsigned long long)m->steps, m->armed ? "!" : "",
                  m->doing);
}

static bool is_soak(void)
{
    return environment_number("WEIR_SOAK", 0) != 0;
}

static uint64_t seed(void)
{
    return environment_number("WEIR_SEED", is_soak() ? (uint64_t)time(NULL) : 1);
}

static void run(model_desc desc)
{
    static model m;
    uint64_t ops =
        environment_number("WEIR_OPS",
                           is_soak() ? SOAK_OPS / CONFIGURATIONS + 1 : SHORT_OPS);
    desc.seed = seed();
    desc.walk_every = is_soak() ? 1000 : 1;
    desc.failed = failed;
    desc.heard = environment_number("WEIR_VERBOSE", 0) != 0 ? print_step : NULL;
    choices from = {.state = desc.seed};
    model_open(&m, &desc, &from);
    for (uint64_t i = 0; i < ops; i++) {
        model_step(&m);
    }
    model_close(&m);
}

static void model__elastic_with_granules_agrees(void **state)
{
    (void)state;
    run((model_desc){.preset = "elastic", .granule_bytes = 2 * MIB});
}

/* Granules so small that chunks have several of them even here. */
static void model__elastic_with_chunks_agrees(void **state)
{
    (void)state;
    run((model_desc){
        .preset = "elastic", .granule_bytes = 64 * KIB, .chunk_bytes = 2 * MIB});
}

static void model__elastic_with_whole_pages_agrees(void **state)
{
    (void)state;
    run((model_desc){.preset = "elastic"});
}

static void model__adaptive_agrees(void **state)
{
    (void)state;
    run((model_desc){.preset = "adaptive"});
}

static void model__adaptive_takes_whole_pages_beside_granules(void **state)
{
    (void)state;
    run((model_desc){.preset = "adaptive", .granule_bytes = 2 * MIB});
}

static void model__subslices_agrees(void **state)
{
    (void)state;
    run((model_desc){.preset = "subslices"});
}

static void model__exclusive_takes_whole_pages_beside_granules(void **state)
{
    (void)state;
    run((model_desc){.preset = "exclusive", .granule_bytes = 2 * MIB});
}

static void model__a_list_of_pools_with_caps_agrees(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = WEIR_POOL_KIND_SLICED,
         .page_bytes = MIB,
         .max_slice_bytes = 64 * KIB,
         .cap_bytes = 3 * MIB},
        {.kind = WEIR_POOL_KIND_EXCLUSIVE,
         .max_slice_bytes = 8 * MIB,
         .cap_bytes = 40 * MIB,
         .idle_count = 50},
        {.kind = WEIR_POOL_KIND_SLICED, .page_bytes = 4 * MIB},
        {.kind = WEIR_POOL_KIND_EXCLUSIVE},
    };
    run((model_desc){.preset = "list", .pools = pools, .pool_count = 4});
}

static void model__a_device_that_never_waits_and_trusts_uses_agrees(void **state)
{
    (void)state;
    run((model_desc){.preset = "elastic",
                     .granule_bytes = 2 * MIB,
                     .no_wait = true,
                     .trust_uses = true});
}

static void model__a_device_that_keeps_a_floor_agrees(void **state)
{
    (void)state;
    run((model_desc){
        .preset = "elastic", .granule_bytes = 2 * MIB, .keep_bytes = 40 * MIB});
}

int main(void)
{
    print_message("WEIR_SEED=%llu\n", (unsigned long long)seed());
    const struct CMUnitTest tests[CONFIGURATIONS] = {
        cmocka_unit_test(model__elastic_with_granules_agrees),
        cmocka_unit_test(model__elastic_with_chunks_agrees),
        cmocka_unit_test(model__elastic_with_whole_pages_agrees),
        cmocka_unit_test(model__adaptive_agrees),
        cmocka_unit_test(model__adaptive_takes_whole_pages_beside_granules),
        cmocka_unit_test(model__subslices_agrees),
        cmocka_unit_test(model__exclusive_takes_whole_pages_beside_granules),
        cmocka_unit_test(model__a_list_of_pools_with_caps_agrees),
        cmocka_unit_test(model__a_device_that_never_waits_and_trusts_uses_agrees),
        cmocka_unit_test(model__a_device_that_keeps_a_floor_agrees),
    };
    return cmocka_run_group_tests_name("core, random", tests, NULL, NULL);
}
