/* SPDX-License-Identifier: MIT */
/* Launches: a bind group and a dispatch in the open compute pass.
 *
 * A device binds so many bytes at once and no more. Where a launch's bindings are larger,
 * and its kernel goes through all of them element by element, it becomes several
 * dispatches, each over a window of elements:
 *
 *     bindings   |  window 0  |  window 1  |  window 2  | w 3 |
 *     dispatch   first = 0      first = n    first = 2n   ...
 *
 * A window's bindings begin at its first element; the shader's constant `first` says
 * which that is. weir/kernel.h tells what WGSL has to look like. */
#include "webgpu.h"

#include "base/result.h"

#include <inttypes.h>

enum {
    LAUNCHES_MOST = 64, /* in one submission, so that the device has something to do */
    ROW_GROUPS = 32768, /* workgroups in a row of a dispatch of several rows */
    BINDING_UNIT = 16,  /* sizes are rounded up: shaders write whole words */
};

/* A launch on its way. */
typedef struct work {
    const weir_launch *launch;
    const wr_webgpu_layout *layout;
    uint64_t step;           /* elements of a window; a multiple of a workgroup's */
    uint64_t group_elements; /* that a workgroup makes */
    uint32_t entry_count;
    wr_wg_group_entry entries[WR_WEBGPU_BINDINGS]; /* of the whole launch */
    uint8_t element_bytes[WR_WEBGPU_BINDINGS];     /* of what moves with the window; 0 */
} work;

static const char *name_of(const weir_launch *launch)
{
    return launch->kernel->name != NULL ? launch->kernel->name : "";
}

/* ---- checks ---- */

/* How many workgroups a product gets is told by its arguments. */
static weir_result check_product(const weir_launch *launch)
{
    bool is_product = launch->kernel->kind == WEIR_KERNEL_MATMUL;
    if (!is_product || (launch->arguments != NULL &&
                        launch->argument_bytes >= sizeof(weir_matmul_words))) {
        return WEIR_OK;
    }
    return wr_error(WEIR_INVALID,
                    "webgpu: kernel \"%s\": %zu bytes of arguments in host memory; a "
                    "matrix product has %zu, weir_matmul_words",
                    name_of(launch),
                    launch->arguments != NULL ? launch->argument_bytes : 0,
                    sizeof(weir_matmul_words));
}

static weir_result check_launch(const wr_webgpu *webgpu, const weir_launch *launch)
{
    if (launch->kernel == NULL) {
        return wr_error(WEIR_INVALID, "webgpu: launch without a kernel");
    }
    if (launch->argument_bytes > 0 && launch->argument_address == 0) {
        return wr_error(WEIR_INVALID,
                        "webgpu: kernel \"%s\": its arguments must be in device memory "
                        "too; set `argument_address`",
                        name_of(launch));
    }
    size_t count = launch->binding_count + (launch->argument_bytes > 0);
    if (count > wr_webgpu_most_bindings(webgpu)) {
        return wr_error(WEIR_UNSUPPORTED,
                        "webgpu: kernel \"%s\" has %zu bindings with its arguments; this "
                        "device takes %u",
                        name_of(launch), count, wr_webgpu_most_bindings(webgpu));
    }
    if (launch->element_count > UINT32_MAX) {
        return wr_error(WEIR_UNSUPPORTED,
                        "webgpu: kernel \"%s\": %" PRIu64
                        " elements; WGSL counts to 4294967295",
                        name_of(launch), launch->element_count);
    }
    return check_product(launch);
}

/* ---- bindings ---- */

static weir_result bind(const wr_webgpu *webgpu, work *w, uint64_t address,
                        uint64_t bytes)
{
    uint64_t rounded = (bytes + BINDING_UNIT - 1) / BINDING_UNIT * BINDING_UNIT;
    WR_TRY(wr_regions_check_backed(&webgpu->book, "launch", address, bytes));
    const wr_region *region = wr_regions_find(&webgpu->book, address);
    wr_webgpu_page *page = wr_webgpu_page_of(region);
    if (bytes == 0 ||
        (address - region->address) % webgpu->limits.storage_alignment_bytes) {
        return wr_error(WEIR_INVALID,
                        "webgpu: kernel \"%s\": a binding of %" PRIu64
                        " bytes at 0x%" PRIx64 "; bindings are not empty and begin at "
                        "multiples of %u",
                        name_of(w->launch), bytes, address,
                        webgpu->limits.storage_alignment_bytes);
    }
    page->is_touched = true;
    w->entries[w->entry_count] = (wr_wg_group_entry){.binding = w->entry_count,
                                                     .buffer = page->buffer,
                                                     .offset = address - region->address,
                                                     .bytes = rounded};
    w->entry_count++;
    return WEIR_OK;
}

static weir_result bind_all(const wr_webgpu *webgpu, work *w)
{
    const weir_launch *launch = w->launch;
    for (size_t i = 0; i < launch->binding_count; i++) {
        WR_TRY(bind(webgpu, w, launch->bindings[i].address, launch->bindings[i].bytes));
    }
    return launch->argument_bytes > 0
               ? bind(webgpu, w, launch->argument_address, launch->argument_bytes)
               : WEIR_OK;
}

/* ---- windows ---- */

static uint8_t dtype_bytes(uint8_t dtype)
{
    static const uint8_t bytes[] = {
#define BYTES(name, number, text, size) [number] = size,
        WEIR_DTYPE_LIST(BYTES)
#undef BYTES
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

/* Which bindings move with a window: those that are only read in order and written. */
static void find_moving(work *w, const weir_expression *expression)
{
    for (uint32_t i = 0; i < expression->output_count; i++) {
        const weir_output *output = &expression->outputs[i];
        w->element_bytes[output->binding] = dtype_bytes(output->dtype);
    }
    for (uint32_t i = 0; i < expression->view_count; i++) {
        const weir_view *view = &expression->views[i];
        w->element_bytes[view->binding] = dtype_bytes(view->dtype);
    }
    for (uint32_t i = 0; i < expression->view_count; i++) {
        const weir_view *view = &expression->views[i];
        if (view->layout != WEIR_VIEW_LINEAR) {
            w->element_bytes[view->binding] = 0;
        }
    }
}

static weir_result refuse_size(const wr_webgpu *webgpu, const work *w, uint64_t bytes)
{
    return wr_error(WEIR_UNSUPPORTED,
                    "webgpu: kernel \"%s\": it needs %" PRIu64
                    " bytes at once, and this device binds at most %" PRIu64,
                    name_of(w->launch), bytes, webgpu->limits.storage_binding_bytes);
}

/* The most elements of one binding at once, when it moves. Before its first element there
 * may be others: a view begins anywhere. */
static weir_result narrow(const wr_webgpu *webgpu, work *w, uint32_t i)
{
    uint64_t most = webgpu->limits.storage_binding_bytes / BINDING_UNIT * BINDING_UNIT;
    uint64_t bytes = w->entries[i].bytes;
    if (bytes <= most) {
        return WEIR_OK;
    }
    uint64_t size = w->element_bytes[i];
    uint64_t count_bytes = w->launch->element_count * size;
    uint64_t extra = bytes > count_bytes ? bytes - count_bytes : 0;
    if (size == 0 || extra >= most) {
        return refuse_size(webgpu, w, bytes);
    }
    uint64_t elements = (most - extra) / size;
    w->step = elements < w->step ? elements : w->step;
    return WEIR_OK;
}

static bool is_move(const weir_kernel *kernel)
{
    return kernel->kind == WEIR_KERNEL_GATHER ||
           kernel->kind == WEIR_KERNEL_SCATTER_ADD || kernel->kind == WEIR_KERNEL_PLACE;
}

/* Whole rows of workgroups, so that none reaches into the next window. */
static weir_result find_step(const wr_webgpu *webgpu, work *w)
{
    const weir_kernel *kernel = w->launch->kernel;
    const weir_expression *expression = kernel->expression;
    bool is_elementwise =
        kernel->kind == WEIR_KERNEL_EXPRESSION && expression->reduce == WEIR_REDUCE_NONE;
    w->group_elements = is_elementwise || is_move(kernel)
                            ? WEIR_WGSL_ELEMENTS * WEIR_WGSL_WORKGROUP
                            : WEIR_WGSL_ELEMENTS;
    w->step = w->launch->element_count;
    if (is_elementwise) {
        find_moving(w, expression);
    }
    for (uint32_t i = 0; i < w->entry_count; i++) {
        WR_TRY(narrow(webgpu, w, i));
    }
    if (w->step < w->launch->element_count) {
        uint64_t row = w->group_elements * ROW_GROUPS;
        uint64_t unit = w->step >= row ? row : w->group_elements;
        w->step = w->step / unit * unit;
        return w->step > 0 ? WEIR_OK : refuse_size(webgpu, w, unit);
    }
    return WEIR_OK;
}

/* ---- dispatches ---- */

static weir_result create_group(wr_webgpu *webgpu, const work *w, uint64_t first,
                                uint64_t count, wr_wg_group *group)
{
    wr_wg_group_entry entries[WR_WEBGPU_BINDINGS];
    bool is_whole = count == w->launch->element_count;
    for (uint32_t i = 0; i < w->entry_count; i++) {
        uint64_t skipped = is_whole ? 0 : first * w->element_bytes[i];
        uint64_t left = (w->launch->element_count - first - count) * w->element_bytes[i];
        entries[i] = w->entries[i];
        entries[i].offset += skipped;
        entries[i].bytes -= skipped + (is_whole ? 0 : left);
    }
    *group = webgpu->api.group_create(webgpu->device,
                                      &(wr_wg_group_desc){.layout = w->layout->group,
                                                          .count = w->entry_count,
                                                          .entries = entries});
    return *group != NULL
               ? WEIR_OK
               : wr_error(WEIR_DRIVER, "webgpu: launch: the library makes no bind group");
}

static uint64_t divide_up(uint64_t count, uint64_t by)
{
    return (count + by - 1) / by;
}

/* A product's elements are what the host makes in one piece, and say nothing here. */
static uint64_t group_count(const work *w, uint64_t count)
{
    if (w->launch->kernel->kind != WEIR_KERNEL_MATMUL) {
        return divide_up(count, w->group_elements);
    }
    const weir_matmul_words *words = w->launch->arguments;
    return (uint64_t)words->batch_count *
           divide_up((uint64_t)words->rows, WEIR_WGSL_TILE) *
           divide_up((uint64_t)words->columns, WEIR_WGSL_TILE);
}

static void dispatch(wr_webgpu *webgpu, const work *w, wr_wg_pass pass, uint64_t count)
{
    uint64_t groups = group_count(w, count);
    if (groups <= webgpu->limits.workgroups_per_dimension) {
        webgpu->api.pass_dispatch(pass, (uint32_t)groups, 1, 1);
    } else {
        webgpu->api.pass_dispatch(pass, ROW_GROUPS,
                                  (uint32_t)divide_up(groups, ROW_GROUPS), 1);
    }
}

static weir_result run_window(wr_webgpu *webgpu, wr_webgpu_stream *stream, const work *w,
                              uint64_t first)
{
    wr_wg_pipeline pipeline;
    wr_wg_group group;
    wr_wg_pass pass;
    const weir_kernel *kernel = w->launch->kernel;
    uint64_t left = w->launch->element_count - first;
    uint64_t count = left < w->step ? left : w->step;
    WR_TRY(wr_webgpu_kernel_find(webgpu, kernel, (uint32_t)first, w->layout, &pipeline));
    weir_result result = create_group(webgpu, w, first, count, &group);
    if (result == WEIR_OK) {
        result = wr_webgpu_encode_pass(webgpu, "launch", stream, &pass);
        if (result == WEIR_OK) {
            webgpu->api.pass_pipeline(pass, pipeline);
            webgpu->api.pass_group(pass, 0, group, 0, NULL);
            dispatch(webgpu, w, pass, count);
            webgpu->command_count++;
        }
        webgpu->api.group_release(group);
    }
    if (kernel->id == 0) {
        webgpu->api.pipeline_release(pipeline);
    }
    return result;
}

/* Inside the lock. */
static weir_result launch_all(wr_webgpu *webgpu, wr_webgpu_stream *stream, work *w)
{
    WR_TRY(bind_all(webgpu, w));
    WR_TRY(find_step(webgpu, w));
    WR_TRY(wr_webgpu_layout_get(webgpu, w->entry_count, &w->layout));
    for (uint64_t first = 0; first < w->launch->element_count; first += w->step) {
        WR_TRY(run_window(webgpu, stream, w, first));
    }
    if (webgpu->command_count >= LAUNCHES_MOST) {
        wr_webgpu_flush(webgpu);
    }
    return WEIR_OK;
}

weir_result wr_webgpu_launch(weir_driver *driver, weir_driver_stream stream,
                             const weir_launch *launch)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    work w = {.launch = launch};
    WR_TRY(check_launch(webgpu, launch));
    wr_lock_take(&webgpu->lock);
    weir_result result = launch_all(webgpu, wr_webgpu_stream_of(stream), &w);
    wr_lock_leave(&webgpu->lock);
    return result;
}
