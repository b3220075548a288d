/* SPDX-License-Identifier: MIT */
/* A slice record has 2^32 - 1 generations; when they have run out another record takes
 * its place, so that no handle ever comes twice. */
#include "core/support.h"

#include "stream/device.h"

/* The buffer's record is in its last generation, and the handle with it. */
static weir_buffer age(weir_buffer buffer)
{
    wr_slice *slice = wr_slice_get(buffer.index);
    uint64_t word = atomic_load(&slice->word);
    atomic_store(&slice->word, (UINT64_C(0xffffffff) << 32) | wr_word_references(word));
    buffer.generation = 0xffffffff;
    return buffer;
}

static void assert_gone(weir_buffer buffer)
{
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
    assert_int_equal(weir_buffer_bytes(buffer), 0);
    buffer.generation = 0;
    assert_result(weir_buffer_release(buffer), WEIR_INVALID);
}

static void record__of_a_released_buffer_is_replaced(void **state)
{
    (void)state;
    for (int persistent = 0; persistent < 2; persistent++) {
        rig r = rig_open(NULL, NULL);
        weir_buffer_desc desc = {.persistent = persistent != 0};
        weir_buffer old, fresh;
        assert_ok(weir_buffer_create(r.stream, MIB, &desc, &old));
        uint64_t address = weir_buffer_address(old);
        old = age(old);
        drop(old);
        assert_gone(old);
        assert_consistent(&r);
        assert_ok(weir_buffer_create(r.stream, MIB, &desc, &fresh));
        assert_int_equal(weir_buffer_address(fresh), address);
        assert_int_not_equal(fresh.index, old.index);
        assert_true(fresh.generation != 0);
        assert_gone(old);
        assert_consistent(&r);
        drop(fresh);
        rig_close(&r);
    }
}

static void record__that_became_a_spare_is_replaced_when_it_comes_back(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer first = make(r.stream, MIB, NULL);
    weir_buffer second = make(r.stream, MIB, NULL);
    weir_buffer end = make(r.stream, 2 * MIB, NULL); /* no smaller run is left */
    uint64_t address = weir_buffer_address(second);
    second = age(second);
    drop(first);
    drop(second); /* joins the first: its record is the next spare */
    first = make(r.stream, MIB, NULL);
    weir_buffer fresh = make(r.stream, MIB, NULL);
    assert_int_equal(weir_buffer_address(fresh), address);
    assert_int_not_equal(fresh.index, second.index);
    assert_gone(second);
    assert_consistent(&r);
    drop(first);
    drop(fresh);
    drop(end);
    rig_close(&r);
}

static void record__is_replaced_by_one_that_has_generations_left(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    enum { COUNT = 8 };
    weir_buffer old[COUNT], fresh[COUNT];
    for (int i = 0; i < COUNT; i++) {
        old[i] = make(r.stream, MIB, NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        old[i] = age(old[i]);
        drop(old[i]); /* worn-out spares lie above each other */
    }
    for (int i = 0; i < COUNT; i++) {
        fresh[i] = make(r.stream, MIB, NULL);
        assert_true(fresh[i].generation != 0);
        for (int j = 0; j < COUNT; j++) {
            assert_int_not_equal(fresh[i].index, old[j].index);
        }
        assert_consistent(&r);
    }
    for (int i = 0; i < COUNT; i++) {
        assert_gone(old[i]);
        drop(fresh[i]);
    }
    rig_close(&r);
}

static void references__end_at_2_to_the_31(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    wr_slice *slice = wr_slice_get(buffer.index);
    uint64_t word = atomic_load(&slice->word);
    atomic_store(&slice->word, (word & ~UINT64_C(0xffffffff)) | 0x7fffffff);
    assert_result(weir_buffer_retain(buffer), WEIR_LIMIT);
    assert_says(weir_last_error(), "references");
    assert_int_equal(weir_buffer_references(buffer), 0x7fffffff);
    assert_ok(weir_buffer_release(buffer));
    assert_ok(weir_buffer_retain(buffer));
    atomic_store(&slice->word, word);
    drop(buffer);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record__of_a_released_buffer_is_replaced),
        cmocka_unit_test(record__that_became_a_spare_is_replaced_when_it_comes_back),
        cmocka_unit_test(record__is_replaced_by_one_that_has_generations_left),
        cmocka_unit_test(references__end_at_2_to_the_31),
    };
    return cmocka_run_group_tests_name("manager, generations", tests, NULL, NULL);
}
