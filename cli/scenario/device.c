/* SPDX-License-Identifier: MIT */
/* Settings, and the device and streams that they make. */
#include "array.h"
#include "run.h"

#include <stdio.h>
#include <string.h>

/* ---- settings ---- */

static bool set_flag(wr_scn_run *run, uint64_t value, const char *option, bool *flag)
{
    if (value > 1) {
        return wr_scn_wrong(run, "%s is 0, 1, false or true", option);
    }
    *flag = value == 1;
    return true;
}

static bool set_option(wr_scn_run *run, wr_scn_option option, uint64_t value)
{
    weir_device_desc *desc = &run->device_desc;
    switch (option) {
#define NUMBER(member)                                                                   \
    case WR_SCN_OPTION_##member:                                                         \
        desc->member = value;                                                            \
        return true;
#define FLAG(member)                                                                     \
    case WR_SCN_OPTION_##member:                                                         \
        return set_flag(run, value, #member, &desc->member);
        WR_SCN_NUMBER_OPTIONS(NUMBER)
        WR_SCN_FLAG_OPTIONS(FLAG)
#undef NUMBER
#undef FLAG
    }
    return true;
}

static bool set_size(wr_scn_run *run, const wr_scn_statement *statement, uint64_t size)
{
    switch (statement->kind) {
    case WR_SCN_CAPACITY:
        if (size == 0) {
            return wr_scn_wrong(run, "a device has more than 0 bytes");
        }
        run->sim_desc.capacity_bytes = size;
        return true;
    case WR_SCN_CONTEXT:
        run->sim_desc.context_bytes = size;
        return true;
    case WR_SCN_GRANULE:
        run->sim_desc.granule_bytes = size;
        return true;
    case WR_SCN_LIMIT:
        run->device_desc.limit_bytes = size;
        return true;
    default:
        return set_option(run, (wr_scn_option)statement->choice, size);
    }
}

bool wr_scn_run_setting(wr_scn_run *run, const wr_scn_statement *statement)
{
    uint64_t size;
    switch (statement->kind) {
    case WR_SCN_PRESET:
        return wr_scn_expand(run, statement->name, run->preset);
    case WR_SCN_LETS_GO:
        run->sim_desc.lets_go = (weir_sim_lets_go)statement->choice;
        return true;
    default:
        return wr_scn_evaluate_size(run, &statement->number[0], "a setting", &size) &&
               set_size(run, statement, size);
    }
}

/* ---- streams ---- */

static weir_result open_stream(wr_scn_run *run, const char *name, wr_scn_stream *stream)
{
    weir_stream_desc desc = {.size = sizeof desc, .name = name};
    weir_result result = weir_stream_create(run->device, &desc, &stream->stream);
    if (result == WEIR_OK) {
        stream->driver_stream = weir_stream_driver_stream(stream->stream);
    }
    return result;
}

bool wr_scn_stream_get(wr_scn_run *run, wr_scn_text name, wr_scn_stream **stream,
                       weir_result *result)
{
    *stream = &run->default_stream;
    *result = WEIR_OK;
    if (!name.start) {
        return true;
    }
    char key[WR_SCN_NAME_BYTES];
    if (!wr_scn_expand(run, name, key)) {
        return false;
    }
    size_t number = wr_scn_names_add(&run->stream_names, key);
    if (number == WR_SCN_NO_NAME ||
        !wr_scn_array_grow((void **)&run->streams, &run->stream_capacity, number + 1,
                           sizeof *run->streams)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    *stream = &run->streams[number];
    if (!(*stream)->stream) {
        *result = open_stream(run, key, *stream);
        *stream = *result == WEIR_OK ? *stream : NULL;
    }
    return true;
}

/* ---- the device ---- */

/* On a device that is what it is, the scenario's capacity is a limit. */
static void limit_to_capacity(wr_scn_run *run)
{
    uint64_t capacity = run->sim_desc.capacity_bytes, own = run->sim_desc.context_bytes;
    uint64_t room = capacity > own ? capacity - own : 1;
    uint64_t *limit = &run->device_desc.limit_bytes;
    *limit = *limit == 0 || *limit > room ? room : *limit;
    run->device_desc.no_granules |= run->sim_desc.granule_bytes == 0;
}

/* Whether a device that is not sim can stand for the one that the scenario describes. */
static bool check_likeness(wr_scn_run *run)
{
    weir_driver_properties is;
    const weir_sim_desc *wanted = &run->sim_desc;
    if (weir_device_properties(run->device, &is) != WEIR_OK) {
        return wr_scn_fail(run, "expected properties, got %s", weir_last_error());
    }
    run->context_bytes = is.context_bytes;
    if (wanted->lets_go != WEIR_SIM_LETS_GO_AT_ONCE) {
        return wr_scn_skip(run, "lets_go");
    }
    if (wanted->granule_bytes != 0 && wanted->granule_bytes != is.granule_bytes) {
        return wr_scn_skip(run, "granules of that size");
    }
    run->is_host = is.host_visible;
    run->is_small = is.capacity_bytes < run->device_desc.limit_bytes;
    return true;
}

static weir_result open_device(wr_scn_run *run)
{
    const char *device = run->options.device;
    run->device_desc.size = sizeof run->device_desc;
    run->device_desc.preset = run->preset[0] ? run->preset : NULL;
    run->device_desc.no_thread = true;
    if (device) {
        limit_to_capacity(run);
    } else {
        run->device_desc.driver_config = &run->sim_desc;
    }
    return weir_device_open(device ? device : "sim", &run->device_desc, &run->device);
}

bool wr_scn_device_open(wr_scn_run *run)
{
    weir_result result = open_device(run);
    if (result != WEIR_OK) {
        return wr_scn_fail(run, "expected the device to open, got %s: %s",
                           weir_result_name(result), weir_last_error());
    }
    run->sim = run->options.device ? NULL : weir_device_driver(run->device);
    run->default_stream.stream = weir_device_default_stream(run->device);
    run->default_stream.driver_stream =
        weir_stream_driver_stream(run->default_stream.stream);
    if (run->options.fail_call > 0) {
        weir_sim_fail_nth(run->sim, run->options.fail_call);
    }
    return run->sim || check_likeness(run);
}

/* The memory calls among which --fail-call counts. */
static uint64_t count_driver_calls(weir_driver *sim)
{
    weir_sim_ledger ledger;
    if (!sim) {
        return 0;
    }
    weir_sim_read_ledger(sim, &ledger);
    return ledger.calls[WEIR_SIM_OP_page_alloc] + ledger.calls[WEIR_SIM_OP_page_free] +
           ledger.calls[WEIR_SIM_OP_range_reserve] + ledger.calls[WEIR_SIM_OP_commit] +
           ledger.calls[WEIR_SIM_OP_decommit] + ledger.calls[WEIR_SIM_OP_move] +
           ledger.calls[WEIR_SIM_OP_fence_record] + ledger.calls[WEIR_SIM_OP_fence_test] +
           ledger.calls[WEIR_SIM_OP_fence_wait];
}

static void disarm(wr_scn_run *run)
{
    if (!run->sim) {
        return;
    }
    weir_sim_fail_nth(run->sim, 0);
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        weir_sim_fail(run->sim, (weir_sim_op)op, 0, 0);
    }
}

/* What a careful program does at its end. */
static weir_result close_in_order(wr_scn_run *run)
{
    disarm(run);
    wr_scn_graphs_release(run);
    wr_scn_buffers_release(run);
    for (size_t i = 0; i < run->stream_capacity; i++) {
        weir_result result = weir_stream_close(run->streams[i].stream);
        if (result != WEIR_OK) {
            return result;
        }
        run->streams[i].stream = NULL;
    }
    return weir_device_close(run->device);
}

void wr_scn_device_close(wr_scn_run *run)
{
    if (!run->device) {
        return;
    }
    run->driver_calls = count_driver_calls(run->sim);
    weir_result result = WEIR_INVALID;
    bool is_orderly = run->result.verdict == WR_SCN_OK && !run->is_gone;
    if (is_orderly) {
        result = close_in_order(run);
    }
    if (is_orderly && result != WEIR_OK) {
        wr_scn_fail(run, "expected the device to close at the end, got %s: %s",
                    weir_result_name(result), weir_last_error());
    }
    if (result != WEIR_OK) {
        weir_device_abandon(run->device);
    }
    run->device = NULL;
}
