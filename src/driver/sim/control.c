/* SPDX-License-Identifier: MIT */
/* The public side of the sim driver: what tests and tools tell it, and its ledger. A
 * driver that is not a sim is refused with a text and otherwise left alone. */
#include "sim.h"

#include "base/result.h"

#include <string.h>

/* The sim behind a driver, locked; NULL, with a text, if it is none. */
static wr_sim *take_sim(weir_driver *driver, const char *call)
{
    if (driver == NULL || driver->table != &wr_driver_sim) {
        (void)wr_error(WEIR_INVALID,
                       "%s: the driver is not a sim; open the device as \"sim\"", call);
        return NULL;
    }
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    return sim;
}

static void leave_sim(wr_sim *sim)
{
    wr_lock_leave(&sim->lock);
}

void weir_sim_read_ledger(weir_driver *driver, weir_sim_ledger *ledger)
{
    if (ledger == NULL) {
        (void)wr_error(WEIR_INVALID, "weir_sim_read_ledger: the ledger is NULL");
        return;
    }
    memset(ledger, 0, sizeof *ledger);
    wr_sim *sim = take_sim(driver, "weir_sim_read_ledger");
    if (sim != NULL) {
        *ledger = sim->ledger;
        leave_sim(sim);
    }
}

weir_result weir_sim_queue(weir_driver *driver, weir_driver_stream stream)
{
    wr_sim *sim = take_sim(driver, "weir_sim_queue");
    if (sim == NULL) {
        return WEIR_INVALID;
    }
    leave_sim(sim);
    return wr_sim_queue(driver, stream);
}

void weir_sim_finish(weir_driver *driver, weir_driver_stream handle)
{
    wr_sim *sim = take_sim(driver, "weir_sim_finish");
    if (sim == NULL) {
        return;
    }
    wr_sim_stream *stream = wr_sim_stream_at(sim, handle);
    if (stream != NULL) {
        wr_sim_complete(sim, stream, stream->queued);
    }
    leave_sim(sim);
}

void weir_sim_finish_all(weir_driver *driver)
{
    wr_sim *sim = take_sim(driver, "weir_sim_finish_all");
    if (sim == NULL) {
        return;
    }
    for (size_t i = 0; i < sim->stream_count; i++) {
        wr_sim_complete(sim, &sim->streams[i], sim->streams[i].queued);
    }
    leave_sim(sim);
}

void weir_sim_step(weir_driver *driver)
{
    wr_sim *sim = take_sim(driver, "weir_sim_step");
    if (sim != NULL) {
        sim->step++;
        wr_sim_complete_lagging(sim);
        leave_sim(sim);
    }
}

void weir_sim_set_others(weir_driver *driver, uint64_t bytes)
{
    wr_sim *sim = take_sim(driver, "weir_sim_set_others");
    if (sim != NULL) {
        sim->ledger.others_bytes = bytes;
        leave_sim(sim);
    }
}

void weir_sim_set_outside(weir_driver *driver, uint64_t bytes)
{
    wr_sim *sim = take_sim(driver, "weir_sim_set_outside");
    if (sim != NULL) {
        sim->ledger.outside_bytes = bytes;
        leave_sim(sim);
    }
}

void weir_sim_fail(weir_driver *driver, weir_sim_op op, uint64_t count, uint64_t after)
{
    wr_sim *sim = take_sim(driver, "weir_sim_fail");
    if (sim == NULL) {
        return;
    }
    if ((unsigned)op < WEIR_SIM_OP_COUNT) {
        sim->failures[op] = (wr_sim_failure){.after = after, .count = count};
    } else {
        (void)wr_error(WEIR_INVALID, "weir_sim_fail: %d is not a kind of call", (int)op);
    }
    leave_sim(sim);
}

void weir_sim_fail_nth(weir_driver *driver, uint64_t nth)
{
    wr_sim *sim = take_sim(driver, "weir_sim_fail_nth");
    if (sim != NULL) {
        sim->fail_nth = nth;
        leave_sim(sim);
    }
}

void weir_sim_advance(weir_driver *driver, uint64_t ms)
{
    wr_sim *sim = take_sim(driver, "weir_sim_advance");
    if (sim != NULL) {
        sim->clock_ms += ms;
        leave_sim(sim);
    }
}

void weir_sim_shutdown(weir_driver *driver)
{
    wr_sim *sim = take_sim(driver, "weir_sim_shutdown");
    if (sim != NULL) {
        sim->is_gone = true;
        leave_sim(sim);
    }
}
