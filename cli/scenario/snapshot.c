/* SPDX-License-Identifier: MIT */
/* Numbers of the device, by field: now, or as they were at a mark. */
#include "array.h"
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The enum's order is usage, report, ledger, last. */
static bool is_usage(wr_scn_field field)
{
    return field < WR_SCN_FIELD_overhead;
}

static bool is_report(wr_scn_field field)
{
    return field >= WR_SCN_FIELD_overhead && field < WR_SCN_FIELD_driver_allocs;
}

static bool is_ledger(wr_scn_field field)
{
    return field >= WR_SCN_FIELD_driver_allocs && field < WR_SCN_FIELD_last_returned;
}

/* Host memory has the whole process in it, which comes and goes as it likes. */
static bool is_of_process(wr_scn_field field)
{
    return field == WR_SCN_FIELD_overhead || field == WR_SCN_FIELD_footprint;
}

/* ---- reading ---- */

static weir_result read_usage(wr_scn_run *run, wr_scn_snapshot *snapshot)
{
    weir_usage usage = {.size = sizeof usage};
    weir_result result = weir_device_memory_usage(run->device, &usage);
    if (result == WEIR_OK) {
#define COPY(id, text, member) snapshot->value[WR_SCN_FIELD_##id] = usage.member;
        WR_SCN_USAGE_FIELDS(COPY)
#undef COPY
        if (!run->sim) { /* the capacity is a limit there */
            snapshot->value[WR_SCN_FIELD_ooms] += usage.limits;
        }
    }
    return result;
}

/* A real driver takes a little more for itself once work begins, on an H200 in a machine
 * with two of them 2 MiB: so much more or less is its context, too. */
#define CONTEXT_DRIFT_BYTES (UINT64_C(2) << 20)

/* Where the process has what it has, the scenario's context stands for it. */
static void shift_context(const wr_scn_run *run, wr_scn_snapshot *snapshot)
{
    uint64_t *overhead = &snapshot->value[WR_SCN_FIELD_overhead];
    uint64_t *footprint = &snapshot->value[WR_SCN_FIELD_footprint];
    uint64_t is = run->context_bytes;
    if (run->sim || *overhead == WEIR_UNKNOWN_BYTES) {
        return;
    }
    if (*overhead <= is + CONTEXT_DRIFT_BYTES && is <= *overhead + CONTEXT_DRIFT_BYTES) {
        is = *overhead;
    }
    *overhead += run->sim_desc.context_bytes - is;
    *footprint += run->sim_desc.context_bytes - is;
}

static weir_result read_report(wr_scn_run *run, wr_scn_snapshot *snapshot)
{
    weir_device_report report = {.size = sizeof report};
    weir_result result = weir_device_memory_report(run->device, &report);
    if (result == WEIR_OK) {
#define COPY(id, text, member) snapshot->value[WR_SCN_FIELD_##id] = report.member;
        WR_SCN_REPORT_FIELDS(COPY)
#undef COPY
        shift_context(run, snapshot);
    }
    return result;
}

/* Elsewhere what Weir has counted; syncs of the device it does not count. */
static weir_result count_calls(wr_scn_run *run, weir_sim_ledger *ledger)
{
    weir_usage usage = {.size = sizeof usage};
    weir_result result = weir_device_memory_usage(run->device, &usage);
    ledger->calls[WEIR_SIM_OP_page_alloc] = usage.page_allocs;
    ledger->calls[WEIR_SIM_OP_page_free] = usage.page_frees;
    ledger->calls[WEIR_SIM_OP_commit] = usage.commits;
    ledger->calls[WEIR_SIM_OP_decommit] = usage.decommits;
    ledger->calls[WEIR_SIM_OP_fence_wait] = usage.fence_waits;
    return result;
}

static weir_result read_ledger(wr_scn_run *run, wr_scn_snapshot *snapshot)
{
    weir_sim_ledger ledger = {.device_syncs = WEIR_UNKNOWN_BYTES};
    weir_result result = WEIR_OK;
    if (run->sim) {
        weir_sim_read_ledger(run->sim, &ledger);
    } else {
        result = count_calls(run, &ledger);
    }
#define COPY(id, text, member) snapshot->value[WR_SCN_FIELD_##id] = ledger.member;
    WR_SCN_LEDGER_FIELDS(COPY)
#undef COPY
    return result;
}

static weir_result read_last(wr_scn_run *run, wr_scn_snapshot *snapshot)
{
#define COPY(id, text, member) snapshot->value[WR_SCN_FIELD_##id] = run->last.member;
    WR_SCN_LAST_FIELDS(COPY)
#undef COPY
    return WEIR_OK;
}

static weir_result read_source(wr_scn_run *run, wr_scn_field field,
                               wr_scn_snapshot *snapshot)
{
    if (is_usage(field)) {
        return read_usage(run, snapshot);
    }
    if (is_report(field)) {
        return read_report(run, snapshot);
    }
    return is_ledger(field) ? read_ledger(run, snapshot) : read_last(run, snapshot);
}

/* ---- marks ---- */

static bool find_mark(wr_scn_run *run, wr_scn_text name, const wr_scn_snapshot **mark)
{
    char key[WR_SCN_NAME_BYTES];
    if (!wr_scn_expand(run, name, key)) {
        return false;
    }
    size_t number = wr_scn_names_find(&run->mark_names, key);
    if (number == WR_SCN_NO_NAME) {
        return wr_scn_wrong(run, "there is no mark '%s'", key);
    }
    *mark = &run->marks[number];
    return true;
}

void wr_scn_snapshot_finish(wr_scn_snapshot *snapshot)
{
    free(snapshot->tags);
    snapshot->tags = NULL;
    snapshot->tag_count = 0;
}

/* All tags that have ever been used; none when they cannot be read. */
static bool read_tags(wr_scn_run *run, wr_scn_snapshot *snapshot)
{
    size_t count = 0;
    if (weir_device_tags(run->device, NULL, 0, &count) != WEIR_OK || count == 0) {
        return true;
    }
    snapshot->tags = calloc(count, sizeof *snapshot->tags);
    if (!snapshot->tags) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    size_t found = 0;
    if (weir_device_tags(run->device, snapshot->tags, count, &found) == WEIR_OK) {
        snapshot->tag_count = found < count ? found : count;
    }
    return true;
}

/* What cannot be read is unknown in the mark, and an error only where a check asks for
 * it. */
bool wr_scn_run_mark(wr_scn_run *run, const wr_scn_statement *statement)
{
    char name[WR_SCN_NAME_BYTES];
    if (!wr_scn_expand(run, statement->name, name)) {
        return false;
    }
    size_t number = wr_scn_names_add(&run->mark_names, name);
    if (number == WR_SCN_NO_NAME ||
        !wr_scn_array_grow((void **)&run->marks, &run->mark_capacity, number + 1,
                           sizeof *run->marks)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    wr_scn_snapshot *mark = &run->marks[number];
    wr_scn_snapshot_finish(mark);
    memset(mark->value, 0xff, sizeof mark->value);
    read_ledger(run, mark);
    if (run->is_child) {
        return true;
    }
    read_usage(run, mark);
    read_report(run, mark);
    read_last(run, mark);
    return read_tags(run, mark);
}

/* ---- fields ---- */

static bool read_tag(wr_scn_run *run, const wr_scn_op *op, const wr_scn_snapshot *mark,
                     uint64_t *number)
{
    char tag[WR_SCN_NAME_BYTES];
    weir_tag_usage usage = {.in_use_bytes = 0};
    if (!wr_scn_expand(run, op->name, tag)) {
        return false;
    }
    if (!mark) {
        weir_result result = weir_device_tag_usage(run->device, tag, &usage);
        *number = usage.in_use_bytes;
        return wr_scn_accept(run, "weir_device_tag_usage", result);
    }
    *number = 0;
    for (size_t i = 0; i < mark->tag_count; i++) {
        if (strncmp(mark->tags[i].tag, tag, sizeof usage.tag - 1) == 0) {
            *number = mark->tags[i].in_use_bytes;
        }
    }
    return true;
}

static bool read_now(wr_scn_run *run, wr_scn_field field, uint64_t *number)
{
    wr_scn_snapshot now;
    weir_result result = read_source(run, field, &now);
    if (result != WEIR_OK) {
        return wr_scn_fail(run, "expected a number for %s, got %s: %s",
                           wr_scn_field_name(field), weir_result_name(result),
                           weir_last_error());
    }
    *number = now.value[field];
    return true;
}

bool wr_scn_field_read(wr_scn_run *run, const wr_scn_op *op, wr_scn_value *value)
{
    const wr_scn_snapshot *mark = NULL;
    uint64_t number = 0;
    bool is_read;
    if (op->mark.start && !find_mark(run, op->mark, &mark)) {
        return false;
    }
    if (!run->sim && (op->field == WR_SCN_FIELD_device_syncs ||
                      (run->is_host && is_of_process(op->field)))) {
        return wr_scn_skip(run, wr_scn_field_name(op->field));
    }
    if (run->is_child && !mark && !is_ledger(op->field)) {
        return wr_scn_wrong(run,
                            "'%s' cannot be checked in a forked child, only what the "
                            "driver's ledger holds can",
                            wr_scn_field_name(op->field));
    }
    if (op->field == WR_SCN_FIELD_tag) {
        is_read = read_tag(run, op, mark, &number);
    } else if (mark) {
        number = mark->value[op->field];
        is_read = true;
    } else {
        is_read = read_now(run, op->field, &number);
    }
    if (is_read && number == WEIR_UNKNOWN_BYTES) {
        return wr_scn_fail(run, "expected a number for %s, got n/a",
                           wr_scn_field_name(op->field));
    }
    *value = is_read ? number : 0;
    return is_read;
}
