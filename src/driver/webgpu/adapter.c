/* SPDX-License-Identifier: MIT */
/* From a device's name to the library's device: which adapter, with which limits, and how
 * much memory it has. WebGPU does not list adapters; it is told what kind is wanted. */
#include "webgpu.h"

#include "base/result.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVIDIA 0x10deu /* the PCI number of the vendor */

/* ---- which ---- */

typedef struct kind {
    const char *argument;
    wr_wg_adapter_options options;
} kind;

static const kind kinds[] = {
    {"", {.power = WR_WG_POWER_HIGH}},
    {"low-power", {.power = WR_WG_POWER_LOW}},
    {"fallback", {.force_fallback = 1}},
    {"vulkan", {.power = WR_WG_POWER_HIGH, .backend = WR_WG_BACKEND_VULKAN}},
    {"metal", {.power = WR_WG_POWER_HIGH, .backend = WR_WG_BACKEND_METAL}},
    {"d3d12", {.power = WR_WG_POWER_HIGH, .backend = WR_WG_BACKEND_D3D12}},
    {"null", {.backend = WR_WG_BACKEND_NULL}},
};

static weir_result find_kind(const char *argument, wr_wg_adapter_options *options)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argument, kinds[i].argument) == 0) {
            *options = kinds[i].options;
            options->feature_level = WR_WG_FEATURES_CORE;
            return WEIR_OK;
        }
    }
    return wr_error(
        WEIR_NOT_FOUND,
        "webgpu: there is no device \"%s\"; say \"webgpu\", or behind a colon "
        "one of low-power, fallback, vulkan, metal, d3d12, null",
        argument);
}

/* ---- asking ---- */

/* The answer to a request. */
typedef struct answer {
    bool is_there;
    uint32_t status;
    void *object;
    char text[WR_WEBGPU_TEXT_BYTES];
} answer;

static void take_answer(answer *taken, uint32_t status, void *object, wr_wg_text text)
{
    taken->is_there = true;
    taken->status = status;
    taken->object = object;
    snprintf(taken->text, sizeof taken->text, "%.*s", wr_wg_length(text),
             text.data != NULL ? text.data : "");
}

static void on_adapter(uint32_t status, wr_wg_adapter adapter, wr_wg_text text,
                       void *context, void *more)
{
    (void)more;
    take_answer(context, status, adapter, text);
}

static void on_device(uint32_t status, wr_wg_device device, wr_wg_text text,
                      void *context, void *more)
{
    (void)more;
    take_answer(context, status, device, text);
}

/* Every request is answered while events are processed. */
static bool await_answer(wr_webgpu *webgpu, const answer *asked)
{
    for (uint32_t round = 0; !asked->is_there; round++) {
        wr_webgpu_poll(webgpu);
        if (!asked->is_there) {
            wr_webgpu_nap(webgpu, round);
        }
    }
    return asked->status == WR_WG_SUCCESS && asked->object != NULL;
}

static weir_result ask_for_adapter(wr_webgpu *webgpu,
                                   const wr_wg_adapter_options *options,
                                   wr_wg_adapter *adapter)
{
    answer asked = {0};
    (void)webgpu->api.instance_request(
        webgpu->instance, options,
        (wr_wg_adapter_callback){
            .mode = WR_WG_ON_PROCESS_EVENTS, .callback = on_adapter, .context = &asked});
    if (!await_answer(webgpu, &asked)) {
        return wr_error(WEIR_NOT_FOUND,
                        "webgpu: the library finds no such device: %s; install a Vulkan "
                        "driver (mesa-vulkan-drivers has one without a GPU), or use "
                        "--device host",
                        asked.text[0] != '\0' ? asked.text : "no reason given");
    }
    *adapter = asked.object;
    return WEIR_OK;
}

static weir_result ask_for_device(wr_webgpu *webgpu, wr_wg_adapter adapter)
{
    answer asked = {0};
    wr_wg_device_desc desc = {
        .limits = &webgpu->limits,
        .lost = {.mode = WR_WG_SPONTANEOUS,
                 .callback = wr_webgpu_on_lost,
                 .context = webgpu},
        .error = {.callback = wr_webgpu_on_error, .context = webgpu},
    };
    (void)webgpu->api.adapter_request(
        adapter, &desc,
        (wr_wg_device_callback){
            .mode = WR_WG_ON_PROCESS_EVENTS, .callback = on_device, .context = &asked});
    if (!await_answer(webgpu, &asked)) {
        return wr_error(WEIR_DRIVER, "webgpu: open: the library gives no device: %s",
                        asked.text[0] != '\0' ? asked.text : "no reason given");
    }
    webgpu->device = asked.object;
    webgpu->queue = webgpu->api.device_queue(webgpu->device);
    return WEIR_OK;
}

/* ---- what it is ---- */

static bool is_power_of_two(uint32_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

/* All that the adapter has. The least that WebGPU allows is checked, so that a library
 * whose structs are others is found out here and not by what it does to memory. */
static weir_result read_limits(wr_webgpu *webgpu, wr_wg_adapter adapter)
{
    wr_wg_limits *limits = &webgpu->limits;
    bool is_read = webgpu->api.adapter_limits(adapter, limits) == WR_WG_SUCCESS;
    limits->next = NULL;
    bool is_possible = is_read && is_power_of_two(limits->storage_alignment_bytes) &&
                       limits->storage_alignment_bytes <= WR_WEBGPU_ALIGNMENT_BYTES &&
                       limits->buffer_bytes >= (uint64_t)256 << 20 &&
                       limits->storage_binding_bytes >= (uint64_t)128 << 20 &&
                       limits->storage_buffers >= 8 &&
                       limits->workgroup_invocations >= 128 &&
                       limits->workgroups_per_dimension >= 65535;
    return is_possible ? WEIR_OK
                       : wr_error(WEIR_UNSUPPORTED,
                                  "webgpu: the library's limits are below what WebGPU "
                                  "guarantees; is it one for webgpu.h 1.0?");
}

static uint64_t physical_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The heaps of the device's own memory, as Dawn tells them; 0 if it does not. */
static uint64_t heap_bytes(wr_webgpu *webgpu, wr_wg_adapter adapter)
{
    wr_wg_heaps heaps = {.chain = {.kind = WR_WG_CHAIN_MEMORY_HEAPS}};
    wr_wg_adapter_info info = {.next = &heaps.chain};
    uint64_t bytes = 0;
    if (webgpu->api.heaps_free == NULL ||
        webgpu->api.adapter_info(adapter, &info) != WR_WG_SUCCESS) {
        return 0;
    }
    for (size_t i = 0; i < heaps.count; i++) {
        if (heaps.heaps[i].properties & WR_WG_HEAP_DEVICE_LOCAL) {
            bytes += heaps.heaps[i].bytes;
        }
    }
    webgpu->api.heaps_free(heaps);
    info.next = NULL;
    webgpu->api.adapter_info_free(info);
    return bytes;
}

/* WebGPU itself does not tell how much memory there is. A single buffer's limit is what
 * it promises, and the least that may be there. */
static void read_capacity(wr_webgpu *webgpu, wr_wg_adapter adapter)
{
    uint64_t bytes = webgpu->is_null ? WR_WEBGPU_NULL_BYTES : heap_bytes(webgpu, adapter);
    if (webgpu->is_cpu && (bytes == 0 || bytes > physical_bytes())) {
        bytes = physical_bytes();
    }
    webgpu->capacity_bytes = bytes != 0 ? bytes : webgpu->limits.buffer_bytes;
}

static weir_result read_info(wr_webgpu *webgpu, wr_wg_adapter adapter)
{
    wr_wg_adapter_info info = {0};
    if (webgpu->api.adapter_info(adapter, &info) != WR_WG_SUCCESS) {
        return wr_error(WEIR_DRIVER,
                        "webgpu: open: the library does not tell what the device is");
    }
    wr_wg_text name = wr_wg_length(info.device) > 0 ? info.device : info.description;
    snprintf(webgpu->name, sizeof webgpu->name, "%.*s", wr_wg_length(name),
             name.data != NULL ? name.data : "");
    if (webgpu->name[0] == '\0') {
        snprintf(webgpu->name, sizeof webgpu->name, "a device without a name");
    }
    webgpu->is_null = info.backend == WR_WG_BACKEND_NULL;
    webgpu->is_cpu = info.type == WR_WG_ADAPTER_CPU || webgpu->is_null;
    if (info.vendor_id == NVIDIA) {
        wr_nvml_init_kind(&webgpu->nvml, info.vendor_id, info.device_id);
    }
    webgpu->api.adapter_info_free(info);
    return WEIR_OK;
}

/* ---- all of it ---- */

static weir_result acquire(wr_webgpu *webgpu, const wr_wg_adapter_options *options)
{
    wr_wg_adapter adapter;
    WR_TRY(ask_for_adapter(webgpu, options, &adapter));
    weir_result result = read_limits(webgpu, adapter);
    if (result == WEIR_OK) {
        result = read_info(webgpu, adapter);
    }
    if (result == WEIR_OK) {
        read_capacity(webgpu, adapter);
        result = ask_for_device(webgpu, adapter);
    }
    webgpu->api.adapter_release(adapter);
    return result;
}

weir_result wr_webgpu_acquire(wr_webgpu *webgpu, const char *argument)
{
    wr_wg_adapter_options options;
    WR_TRY(find_kind(argument, &options));
    WR_TRY(wr_wg_load(&webgpu->api));
    webgpu->instance = webgpu->api.instance_create(NULL);
    if (webgpu->instance == NULL) {
        return wr_error(WEIR_DRIVER, "webgpu: open: the library makes no instance");
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = acquire(webgpu, &options);
    wr_lock_leave(&webgpu->lock);
    if (result != WEIR_OK) {
        wr_webgpu_dispose(webgpu);
    }
    return result;
}

/* Callbacks that are still to come are called by the instance's end, if not before. */
void wr_webgpu_dispose(wr_webgpu *webgpu)
{
    webgpu->is_closing = true;
    if (webgpu->device != NULL) {
        webgpu->api.queue_release(webgpu->queue);
        webgpu->api.device_destroy(webgpu->device);
        wr_webgpu_poll(webgpu);
        webgpu->api.device_release(webgpu->device);
    }
    if (webgpu->instance != NULL) {
        webgpu->api.instance_release(webgpu->instance);
    }
}
