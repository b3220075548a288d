/* SPDX-License-Identifier: MIT */
/* What tests of the sim driver share. */
#ifndef TESTS_DRIVER_SIM_RIG_H
#define TESTS_DRIVER_SIM_RIG_H

#include "contract.h"

static inline driver_rig open_sim(const weir_sim_desc *desc)
{
    driver_rig rig = {0};
    rig_open(&rig, "sim", desc);
    return rig;
}

static inline weir_sim_ledger ledger_of(const driver_rig *rig)
{
    weir_sim_ledger ledger;
    weir_sim_read_ledger(rig->driver, &ledger);
    return ledger;
}

static inline weir_driver_fence record(driver_rig *rig, weir_driver_stream stream)
{
    weir_driver_fence fence = 0;
    assert_ok(rig->table->fence_record(rig->driver, stream, &fence));
    return fence;
}

static inline weir_result test_fence(driver_rig *rig, weir_driver_fence fence)
{
    return rig->table->fence_test(rig->driver, fence);
}

static inline weir_result test_stream(driver_rig *rig, weir_driver_stream stream)
{
    return rig->table->stream_test(rig->driver, stream);
}

static inline void queue(driver_rig *rig, weir_driver_stream stream, int count)
{
    for (int i = 0; i < count; i++) {
        assert_ok(weir_sim_queue(rig->driver, stream));
    }
}

#endif
