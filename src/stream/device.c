/* SPDX-License-Identifier: MIT */
/* Opening and closing devices. */
#include "device.h"

#include "checked.h"

#include "base/fork.h"
#include "base/memory.h"
#include "base/result.h"
#include "manager/capture.h"
#include "manager/cleanup.h"
#include "manager/preset.h"
#include "manager/tags.h"

#include <stdio.h>
#include <string.h>

#define IDLE_MS_DEFAULT 5000u

/* ---- opening ---- */

static weir_result check_table(const weir_driver_table *table)
{
    bool mandatory = table != NULL && table->name != NULL && table->open != NULL &&
                     table->close != NULL && table->properties != NULL &&
                     table->page_alloc != NULL && table->page_free != NULL &&
                     table->write != NULL && table->read != NULL && table->copy != NULL &&
                     table->stream_open != NULL && table->stream_close != NULL &&
                     table->stream_test != NULL && table->stream_sync != NULL &&
                     table->stream_wait != NULL && table->fence_record != NULL &&
                     table->fence_test != NULL && table->fence_wait != NULL &&
                     table->fence_release != NULL;
    if (!mandatory || (table->size != 0 && table->size != sizeof(weir_driver_table))) {
        return wr_error(WEIR_INVALID,
                        "weir_device_open_driver: the driver table lacks a mandatory "
                        "entry or is of another size");
    }
    return WEIR_OK;
}

static weir_result check_properties(const wr_bank *bank)
{
    const weir_driver_properties *p = &bank->properties;
    bool power = (p->granule_bytes & (p->granule_bytes - 1)) == 0;
    bool granular = p->granule_bytes != 0;
    bool chunky = granular && p->chunk_bytes != 0;
    bool unsound = chunky && (p->chunk_bytes % p->granule_bytes != 0 ||
                              bank->table->commit_chunks == NULL);
    if (!power || unsound || (granular && p->granule_bytes < 4096) ||
        p->capacity_bytes == 0 || p->capacity_bytes > UINT64_C(1) << 44 ||
        (granular &&
         (bank->table->range_reserve == NULL || bank->table->range_free == NULL ||
          bank->table->commit == NULL || bank->table->decommit == NULL))) {
        return wr_error(
            WEIR_INVALID,
            "driver %s: granules of %llu bytes in chunks of %llu on a device of %llu "
            "bytes do not make sense, or range entries are missing",
            bank->table->name, (unsigned long long)p->granule_bytes,
            (unsigned long long)p->chunk_bytes, (unsigned long long)p->capacity_bytes);
    }
    return WEIR_OK;
}

static void read_options(wr_bank *bank, const weir_device_desc *desc)
{
    bank->options.idle_ms = desc->idle_ms == 0 ? IDLE_MS_DEFAULT : desc->idle_ms;
    bank->options.keep_bytes = desc->keep_bytes;
    bank->options.no_idle = desc->no_idle;
    bank->options.no_wait = desc->no_wait;
    bank->options.trust_uses = desc->trust_uses;
    atomic_init(&bank->limit_bytes, desc->limit_bytes);
    bank->granule_bytes = desc->no_granules ? 0 : bank->properties.granule_bytes;
    bank->loss.checked =
        bank->properties.host_visible && wr_checked_is_wanted(desc->checked);
}

static weir_result open_bank(weir_device *device, const weir_driver_table *table,
                             const char *argument, const weir_device_desc *desc)
{
    wr_bank *bank = &device->bank;
    WR_TRY(wr_loss_open(&bank->loss, table, argument, desc->driver_config));
    bank->table = &bank->loss.table;
    bank->driver = &bank->loss.base;
    bank->table->properties(bank->driver, &bank->properties);
    weir_result result = check_properties(bank);
    wr_layouts layouts;
    if (result == WEIR_OK) {
        read_options(bank, desc);
        result = wr_layouts_get(bank, desc->preset, desc->pools, desc->pool_count,
                                "weir_device_open", &layouts);
    }
    if (result == WEIR_OK) {
        memcpy(device->preset, layouts.name, sizeof device->preset);
        bank->opened_ms = wr_idle_now_ms(bank);
        wr_idle_set_tick(bank, bank->opened_ms);
        result = wr_bank_init(bank, &layouts);
    }
    if (result != WEIR_OK) {
        bank->table->close(bank->driver);
    }
    return result;
}

weir_result weir_device_open_driver(const weir_driver_table *table, const char *argument,
                                    const weir_device_desc *desc,
                                    weir_device **device_out)
{
    const weir_device_desc defaults = {0};
    desc = desc == NULL ? &defaults : desc;
    WR_TRY(wr_fork_check());
    if (device_out == NULL || (desc->size != 0 && desc->size != sizeof *desc)) {
        return wr_error(
            WEIR_INVALID,
            "weir_device_open: no place for the device, or options of another size");
    }
    WR_TRY(check_table(table));
    WR_TRY(wr_fork_enter(WR_REQUEST_MAX));
    argument = argument == NULL ? "" : argument;
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    weir_device *device = wr_host_alloc_apart(sizeof *device);
    if (device == NULL) {
        wr_error(result, "no host memory for a device");
        goto undo_enter;
    }
    result = open_bank(device, table, argument, desc);
    if (result != WEIR_OK) {
        goto undo_alloc;
    }
    snprintf(device->name, sizeof device->name, "%s%s%s", table->name,
             argument[0] == 0 ? "" : ":", argument);
    result = wr_stream_open(device, &(weir_stream_desc){.name = "default"},
                            &device->default_stream);
    if (result != WEIR_OK) {
        goto undo_bank;
    }
    device->default_stream->is_default = true;
    wr_reclaim_init(device);
    wr_reclaimer_init(device, !desc->no_thread && !desc->no_idle);
    wr_devices_add(device);
    *device_out = device;
    return WEIR_OK;

undo_bank:
    wr_bank_finish(&device->bank);
    device->bank.table->close(device->bank.driver);
undo_alloc:
    wr_host_free(device);
undo_enter:
    wr_fork_leave();
    return result;
}

weir_result weir_device_open(const char *name, const weir_device_desc *desc,
                             weir_device **device)
{
    WR_TRY(wr_fork_check());
    if (name == NULL || device == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_open: the name or the place for it is NULL");
    }
    const char *colon = strchr(name, ':');
    size_t length = colon == NULL ? strlen(name) : (size_t)(colon - name);
    char known[128] = "";
    const weir_driver_table *table;
    for (size_t i = 0; (table = weir_driver_at(i)) != NULL; i++) {
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0) {
            return weir_device_open_driver(table, colon == NULL ? "" : colon + 1, desc,
                                           device);
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ",
                 table->name);
    }
    return wr_error(WEIR_NOT_FOUND, "there is no driver \"%.*s\"; built in are: %s",
                    (int)length, name, known);
}

/* ---- closing ---- */

static uint64_t count_live(weir_device *device)
{
    uint64_t live = 0;
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(&device->bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        live += wr_manager_live(manager);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    return live;
}

static uint32_t count_open_streams(weir_device *device)
{
    uint32_t count = 0;
    wr_lock_take(&device->lock);
    for (weir_stream *stream = device->streams; stream != NULL; stream = stream->next) {
        count += !stream->is_default && !stream->manager.closing;
    }
    wr_lock_leave(&device->lock);
    return count;
}

static void finish(weir_device *device)
{
    wr_devices_remove(device);
    wr_reclaimer_finish(device);
    wr_reclaim_finish(device);
    wr_capture_finish(&device->bank);
    while (device->streams != NULL) {
        wr_stream_end(device->streams);
    }
    wr_bank_finish(&device->bank);
    device->bank.table->close(device->bank.driver);
    wr_pointer_finish(device);
    wr_host_free(device);
    wr_fork_leave();
}

void weir_device_abandon(weir_device *device)
{
    if (device == NULL || wr_fork_is_child()) {
        return;
    }
    wr_hooks_before_close(device);
    if (!wr_fork_is_child()) { /* a hook may have forked */
        finish(device);
    }
}

weir_result weir_device_close(weir_device *device)
{
    if (device == NULL) {
        return WEIR_OK;
    }
    WR_TRY(wr_fork_check());
    if (wr_reclaim_is_inside(device)) {
        return wr_error(
            WEIR_BUSY, "weir_device_close: called inside a reclaim callback of device %s",
            device->name);
    }
    if (wr_devices_is_inside(device)) {
        return wr_error(
            WEIR_BUSY,
            "weir_device_close: called inside a hook of a cleanup of device %s",
            device->name);
    }
    wr_hooks_before_close(device);
    WR_TRY(wr_fork_check()); /* a hook may have forked */
    uint64_t live = count_live(device);
    if (live > 0) {
        wr_error(WEIR_BUSY, "weir_device_close: %llu buffers are still held:",
                 (unsigned long long)live);
        wr_holders_append(&device->bank);
        wr_error_append("; release them, or call weir_device_abandon");
        return WEIR_BUSY;
    }
    WR_TRY(wr_capture_refuse(&device->bank, "weir_device_close"));
    weir_graph *graph = wr_graph_first(&device->bank);
    if (graph != NULL) {
        return wr_error(
            WEIR_BUSY,
            "weir_device_close: graph \"%s\" still exists; destroy all graphs "
            "first, or call weir_device_abandon",
            graph->name);
    }
    uint32_t streams = count_open_streams(device);
    if (streams > 0) {
        return wr_error(
            WEIR_BUSY,
            "weir_device_close: %u streams are still open; close them first, or "
            "call weir_device_abandon",
            streams);
    }
    finish(device);
    return WEIR_OK;
}

/* ---- small things ---- */

weir_stream *weir_device_default_stream(weir_device *device)
{
    return device == NULL || wr_fork_is_child() ? NULL : device->default_stream;
}

weir_driver *weir_device_driver(weir_device *device)
{
    return device == NULL || wr_fork_is_child() ? NULL : device->bank.loss.real;
}

weir_result weir_device_properties(weir_device *device,
                                   weir_driver_properties *properties)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || properties == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_properties: an argument is NULL");
    }
    *properties = device->bank.properties;
    return WEIR_OK;
}

const char *weir_device_name(const weir_device *device)
{
    return device == NULL || wr_fork_is_child() ? "" : device->name;
}

const char *weir_device_preset(const weir_device *device)
{
    return device == NULL || wr_fork_is_child() ? "" : device->preset;
}

weir_result weir_device_limit(weir_device *device, uint64_t limit_bytes)
{
    WR_TRY(wr_fork_check());
    if (device == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_limit: the device is NULL");
    }
    wr_lock_take(&device->bank.lock);
    WR_PUT(device->bank.limit_bytes, limit_bytes);
    wr_lock_leave(&device->bank.lock);
    return WEIR_OK;
}

weir_result weir_device_tick(weir_device *device, uint64_t now_ms)
{
    WR_TRY(wr_fork_check());
    if (device == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_tick: the device is NULL");
    }
    wr_idle_run(&device->bank, now_ms == 0 ? wr_idle_now_ms(&device->bank) : now_ms);
    wr_stream_reap(device);
    return WEIR_OK;
}

weir_result weir_device_sync(weir_device *device)
{
    WR_TRY(wr_fork_check());
    if (device == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_sync: the device is NULL");
    }
    weir_result result = WEIR_OK;
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(&device->bank, &slot)) != NULL) {
        if (!manager->closing && result == WEIR_OK) {
            result = weir_stream_sync(wr_stream_of(manager));
        }
        wr_manager_unpin(manager);
    }
    return result;
}
