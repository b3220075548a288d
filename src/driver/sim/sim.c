/* SPDX-License-Identifier: MIT */
/* Opening the sim driver, failures on demand, and its table. */
#include "sim.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

#define ALIGNMENT_BYTES 256
#define FIRST_ADDRESS ((uint64_t)1 << 32)

static const char *const op_names[] = {
#define NAME(name) #name,
    WEIR_SIM_OP_LIST(NAME)
#undef NAME
};

/* ---- failures ---- */

/* Kinds that weir_sim_fail_nth counts. */
static bool is_memory_call(weir_sim_op op)
{
    return op <= WEIR_SIM_OP_move ||
           (op >= WEIR_SIM_OP_fence_record && op <= WEIR_SIM_OP_fence_wait);
}

/* Whether this call is one that was asked to fail. */
static bool must_fail(wr_sim *sim, weir_sim_op op)
{
    wr_sim_failure *failure = &sim->failures[op];
    bool is_nth = is_memory_call(op) && sim->fail_nth > 0 && --sim->fail_nth == 0;
    if (failure->count == 0) {
        return is_nth;
    }
    if (failure->after > 0) {
        failure->after--;
        return is_nth;
    }
    failure->count--;
    return true;
}

weir_result wr_sim_check_alive(const wr_sim *sim, const char *call)
{
    return sim->is_gone ? wr_error(WEIR_DEVICE_LOST, "sim: %s after the shutdown", call)
                        : WEIR_OK;
}

weir_result wr_sim_enter(wr_sim *sim, weir_sim_op op)
{
    sim->ledger.calls[op]++;
    WR_TRY(wr_sim_check_alive(sim, op_names[op]));
    if (!must_fail(sim, op)) {
        return WEIR_OK;
    }
    bool is_taking = op == WEIR_SIM_OP_page_alloc || op == WEIR_SIM_OP_commit;
    return wr_error(is_taking ? WEIR_OUT_OF_MEMORY : WEIR_DRIVER,
                    "sim: %s fails, as asked for", op_names[op]);
}

/* ---- open and close ---- */

weir_sim_desc weir_sim_defaults(void)
{
    return (weir_sim_desc){
        .size = sizeof(weir_sim_desc),
        .capacity_bytes = (uint64_t)24 << 30,
        .context_bytes = (uint64_t)400 << 20,
        .granule_bytes = (uint64_t)2 << 20,
        .lets_go = WEIR_SIM_LETS_GO_AT_ONCE,
        .lag = 0,
    };
}

static weir_result check_desc(const weir_sim_desc *desc)
{
    uint64_t granule = desc->granule_bytes;
    if (granule != 0 && (granule < ALIGNMENT_BYTES || (granule & (granule - 1)) != 0)) {
        return wr_error(WEIR_INVALID,
                        "sim: a granule of %" PRIu64
                        " bytes; take 0, or a power of two from %d",
                        granule, ALIGNMENT_BYTES);
    }
    if (granule != 0 && desc->chunk_bytes % granule != 0) {
        return wr_error(WEIR_INVALID,
                        "sim: chunks of %" PRIu64
                        " bytes; take 0, or a multiple of the granule, %" PRIu64,
                        desc->chunk_bytes, granule);
    }
    if (granule > desc->capacity_bytes) {
        return wr_error(WEIR_INVALID,
                        "sim: a granule of %" PRIu64
                        " bytes, larger than the capacity, %" PRIu64,
                        granule, desc->capacity_bytes);
    }
    if (desc->context_bytes > desc->capacity_bytes) {
        return wr_error(WEIR_INVALID,
                        "sim: a context of %" PRIu64
                        " bytes, larger than the capacity, %" PRIu64,
                        desc->context_bytes, desc->capacity_bytes);
    }
    if ((unsigned)desc->lets_go > WEIR_SIM_LETS_GO_AFTER_WORK) {
        return wr_error(WEIR_INVALID, "sim: lets_go is %d; take one of weir_sim_lets_go",
                        (int)desc->lets_go);
    }
    return WEIR_OK;
}

/* What the program asks for, with the defaults filled in. */
static weir_result read_config(const weir_sim_desc *config, weir_sim_desc *desc)
{
    *desc = weir_sim_defaults();
    if (config == NULL) {
        return WEIR_OK;
    }
    if (config->size != 0 && config->size != sizeof *config) {
        return wr_error(WEIR_INVALID,
                        "sim: the size of weir_sim_desc is %zu; 0 or %zu is known here",
                        config->size, sizeof *config);
    }
    weir_sim_desc defaults = *desc;
    *desc = *config;
    if (desc->capacity_bytes == 0) {
        desc->capacity_bytes = defaults.capacity_bytes;
    }
    if (desc->context_bytes == UINT64_MAX) {
        desc->context_bytes = defaults.context_bytes;
    }
    return check_desc(desc);
}

static weir_result sim_open(const char *argument, const void *config,
                            weir_driver **driver)
{
    weir_sim_desc desc;
    if (argument != NULL && argument[0] != '\0') {
        return wr_error(WEIR_NOT_FOUND,
                        "sim: there is no device \"%s\"; open it as \"sim\"", argument);
    }
    WR_TRY(read_config(config, &desc));
    wr_sim *sim = wr_host_alloc(sizeof *sim);
    if (sim == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory for the driver itself");
    }
    sim->base.table = &wr_driver_sim;
    sim->desc = desc;
    sim->book = (wr_regions){.driver = "sim", .granule_bytes = desc.granule_bytes};
    sim->next_address = FIRST_ADDRESS;
    if (desc.granule_bytes > FIRST_ADDRESS) {
        sim->next_address = desc.granule_bytes;
    }
    sim->ledger.context_bytes = desc.context_bytes;
    sim->clock_ms = 1; /* not 0, which weir_device_tick takes for "ask the driver" */
    *driver = &sim->base;
    return WEIR_OK;
}

/* After an abandoned device regions, streams and fences may still be there. */
static void sim_close(weir_driver *driver)
{
    wr_sim *sim = wr_sim_of(driver);
    for (wr_region *region; (region = wr_regions_remove_any(&sim->book)) != NULL;) {
        wr_region_destroy(region);
    }
    for (size_t i = 0; i < sim->stream_count; i++) {
        wr_sim_free_notes(&sim->streams[i]);
    }
    wr_host_free(sim->streams);
    wr_host_free(sim->fences);
    wr_host_free(sim->graphs);
    wr_host_free(sim);
}

static void sim_properties(weir_driver *driver, weir_driver_properties *properties)
{
    const weir_sim_desc *desc = &wr_sim_of(driver)->desc;
    *properties = (weir_driver_properties){
        .name = "simulated device",
        .capacity_bytes = desc->capacity_bytes,
        .granule_bytes = desc->granule_bytes,
        .alignment_bytes = ALIGNMENT_BYTES,
        .context_bytes = desc->context_bytes,
        .own_addresses = true,
        .pinned = "sim",
        .chunk_bytes = desc->chunk_bytes,
    };
}

static uint64_t sim_now_ms(weir_driver *driver)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    uint64_t now_ms = sim->clock_ms;
    wr_lock_leave(&sim->lock);
    return now_ms;
}

const weir_driver_table wr_driver_sim = {
    .size = sizeof(weir_driver_table),
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .properties = sim_properties,
    .page_alloc = wr_sim_page_alloc,
    .page_free = wr_sim_page_free,
    .write = wr_sim_write,
    .read = wr_sim_read,
    .copy = wr_sim_copy,
    .stream_open = wr_sim_stream_open,
    .stream_close = wr_sim_stream_close,
    .stream_test = wr_sim_stream_test,
    .stream_sync = wr_sim_stream_sync,
    .stream_wait = wr_sim_stream_wait,
    .fence_record = wr_sim_fence_record,
    .fence_test = wr_sim_fence_test,
    .fence_wait = wr_sim_fence_wait,
    .fence_release = wr_sim_fence_release,
    .range_reserve = wr_sim_range_reserve,
    .range_free = wr_sim_range_free,
    .commit = wr_sim_commit,
    .decommit = wr_sim_decommit,
    .move = wr_sim_move,
    .commit_chunks = wr_sim_commit_chunks,
    .memory_info = wr_sim_memory_info,
    .pending_bytes = wr_sim_pending_bytes,
    .progress = wr_sim_progress,
    .launch = wr_sim_launch,
    .queue = wr_sim_queue,
    .stream_native = wr_sim_stream_native,
    .now_ms = sim_now_ms,
    .capture_begin = wr_sim_capture_begin,
    .capture_end = wr_sim_capture_end,
    .capture_abort = wr_sim_capture_abort,
    .graph_launch = wr_sim_graph_launch,
    .graph_destroy = wr_sim_graph_destroy,
};
