/* SPDX-License-Identifier: MIT */
/* A byte-driven interpreter of calls: the first byte chooses a device, every further one
 * a call on it and on the naive model beside it (tests/core/model.h), which checks
 * everything after each. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The model belongs to the tests of the core; a fuzzer is one source file. */
#include "core/model.c"
#include "core/model_limits.c"
#include "core/steps.c"

#define MOST_STEPS 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void failed(const char *text)
{
    fprintf(stderr, "%s\n", text);
    abort();
}

static const weir_pool_desc list[] = {
    {.kind = WEIR_POOL_KIND_SLICED,
     .page_bytes = MIB,
     .max_slice_bytes = 64 * KIB,
     .cap_bytes = 3 * MIB},
    {.kind = WEIR_POOL_KIND_EXCLUSIVE, .max_slice_bytes = 8 * MIB, .idle_count = 50},
    {.kind = WEIR_POOL_KIND_SLICED, .page_bytes = 4 * MIB, .cap_bytes = 40 * MIB},
    {.kind = WEIR_POOL_KIND_EXCLUSIVE},
};

static const model_desc devices[] = {
    {.preset = "elastic", .granule_bytes = 2 * MIB},
    {.preset = "elastic"},
    {.preset = "adaptive"},
    {.preset = "elastic", .granule_bytes = 2 * MIB, .no_wait = true, .trust_uses = true},
    {.preset = "elastic", .granule_bytes = 64 * KIB, .keep_bytes = 20 * MIB},
    {.preset = "adaptive", .granule_bytes = 2 * MIB},
    {.preset = "subslices"},
    {.preset = "exclusive"},
    {.preset = "list", .pools = list, .pool_count = sizeof list / sizeof *list},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static model m;
    if (size < 2) {
        return 0;
    }
    choices from = {.data = data, .size = size};
    model_desc desc = devices[choose(&from, sizeof devices / sizeof devices[0])];
    desc.walk_every = 4;
    desc.failed = failed;
    model_open(&m, &desc, &from);
    for (int i = 0; i < MOST_STEPS && choices_left(&from); i++) {
        model_step(&m);
    }
    model_close(&m);
    return 0;
}
