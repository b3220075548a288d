/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "storm.h"

#include <stdio.h>

storm sea;

/* ---- finding fault ---- */

void note(const char *what, const char *detail)
{
    if (!atomic_exchange(&sea.is_wrong, true)) {
        snprintf(sea.wrong, sizeof sea.wrong, "%s: %s", what, detail);
    }
}

bool expect(weir_result result, weir_result other, const char *what)
{
    if (result != WEIR_OK && result != other) {
        char text[400];
        snprintf(text, sizeof text, "%s: %.360s", weir_result_name(result),
                 weir_last_error());
        note(what, text);
    }
    return result == WEIR_OK;
}

void expect_true(bool holds, const char *what)
{
    if (!holds) {
        note("does not hold", what);
    }
}

void check_sum(const uint64_t parts[5], uint64_t reserved, const char *what)
{
    bool wrong = parts[0] + parts[1] + parts[2] + parts[3] + parts[4] != reserved;
    for (int i = 0; i < 5; i++) {
        wrong |= parts[i] > reserved;
    }
    if (wrong) {
        char text[200];
        snprintf(text, sizeof text, "%llu + %llu + %llu + %llu + %llu is not %llu",
                 (unsigned long long)parts[0], (unsigned long long)parts[1],
                 (unsigned long long)parts[2], (unsigned long long)parts[3],
                 (unsigned long long)parts[4], (unsigned long long)reserved);
        note(what, text);
    }
}

void check_usage(const weir_usage *usage, const char *what)
{
    CHECK_SUM(usage, what);
    expect_true(usage->peak_reserved_bytes >= usage->reserved_bytes &&
                    usage->peak_in_use_bytes >= usage->in_use_bytes,
                "a peak is at least its value");
}

/* ---- chance ---- */

uint64_t next_random(sailor *me)
{
    me->random ^= me->random << 13;
    me->random ^= me->random >> 7;
    me->random ^= me->random << 17;
    return me->random;
}

uint64_t below(sailor *me, uint64_t count)
{
    return next_random(me) % count;
}

bool one_in(sailor *me, uint64_t count)
{
    return below(me, count) == 0;
}

uint64_t some_bytes(sailor *me)
{
    uint64_t base = UINT64_C(256) << below(me, 18);
    return base + below(me, base + 1);
}

/* ---- the shared table ---- */

static uint64_t pack(weir_buffer buffer)
{
    return (uint64_t)buffer.index << 32 | buffer.generation;
}

static weir_buffer unpack(uint64_t packed)
{
    return (weir_buffer){(uint32_t)(packed >> 32), (uint32_t)packed};
}

void give_back(weir_buffer buffer)
{
    if (buffer.index != 0) {
        expect(weir_buffer_release(buffer), WEIR_OK, "release");
        sea.counts.releases++;
    }
}

weir_buffer see_slot(uint64_t slot)
{
    return unpack(atomic_load(&sea.slots[slot % SLOTS]));
}

weir_buffer take_slot(uint64_t slot)
{
    return unpack(atomic_exchange(&sea.slots[slot % SLOTS], 0));
}

void put_slot(uint64_t slot, weir_buffer buffer)
{
    give_back(unpack(atomic_exchange(&sea.slots[slot % SLOTS], pack(buffer))));
}

/* ---- the end ---- */

void print_counts(const char *name)
{
    char line[1024];
    size_t used = 0;
#define COUNT_PRINT(count)                                                               \
    used += (size_t)snprintf(line + used, sizeof line - used, " %llu " #count,           \
                             (unsigned long long)sea.counts.count);
    COUNT_LIST(COUNT_PRINT)
#undef COUNT_PRINT
    print_message("storm on %s, WEIR_SEED=%llu:%s\n", name, (unsigned long long)sea.seed,
                  line);
}

void assert_nothing_wrong(void)
{
    if (atomic_load(&sea.is_wrong)) {
        fail_msg("WEIR_SEED=%llu: %s", (unsigned long long)sea.seed, sea.wrong);
    }
}
