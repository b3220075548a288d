/* SPDX-License-Identifier: MIT */
/* Kernels: from WGSL to pipelines, which are kept by the kernel's id for as long as the
 * device is open. Inside the lock.
 *
 * All bindings are storage buffers that may be read and written: WebGPU does not allow a
 * buffer to be bound for reading and for writing in one dispatch, not even in different
 * places, and slices of one page are just that. */
#include "webgpu.h"

#include "base/memory.h"
#include "base/result.h"

#include <string.h>

/* ---- source ---- */

typedef struct source {
    void *text;
    size_t length;
    size_t capacity;
} source;

static weir_result append(void *context, const char *text, size_t bytes)
{
    source *to = context;
    if (!wr_host_grow(&to->text, &to->capacity, to->length + bytes, 1)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "webgpu: no memory for a shader's text");
    }
    memcpy((char *)to->text + to->length, text, bytes);
    to->length += bytes;
    return WEIR_OK;
}

static weir_result read_source(const weir_kernel *kernel, source *to)
{
    if (kernel->source == NULL) {
        return wr_error(WEIR_UNSUPPORTED,
                        "webgpu: kernel \"%s\" has no WGSL form; set its `source`",
                        kernel->name != NULL ? kernel->name : "");
    }
    return kernel->source(kernel, WEIR_LANGUAGE_WGSL, append, to);
}

/* ---- layouts ---- */

static void create_layout(const wr_webgpu *webgpu, uint32_t bindings,
                          wr_webgpu_layout *layout)
{
    wr_wg_layout_entry entries[WR_WEBGPU_BINDINGS] = {0};
    for (uint32_t i = 0; i < bindings; i++) {
        entries[i].binding = i;
        entries[i].visibility = WR_WG_STAGE_COMPUTE;
        entries[i].buffer.type = WR_WG_BINDING_STORAGE;
    }
    layout->group = webgpu->api.group_layout_create(
        webgpu->device,
        &(wr_wg_group_layout_desc){.count = bindings, .entries = entries});
    layout->pipeline = webgpu->api.pipeline_layout_create(
        webgpu->device,
        &(wr_wg_pipeline_layout_desc){.count = 1, .groups = &layout->group});
}

weir_result wr_webgpu_layout_get(wr_webgpu *webgpu, uint32_t bindings,
                                 const wr_webgpu_layout **layout)
{
    wr_webgpu_layout *found = &webgpu->layouts[bindings];
    if (found->group == NULL) {
        create_layout(webgpu, bindings, found);
    }
    if (found->group == NULL || found->pipeline == NULL) {
        return wr_error(WEIR_DRIVER, "webgpu: launch: the library makes no layout");
    }
    *layout = found;
    return WEIR_OK;
}

/* ---- pipelines ---- */

static wr_webgpu_kernel **chain_of(wr_webgpu *webgpu, uint64_t id)
{
    return &webgpu->kernels[id % WR_WEBGPU_CHAINS];
}

static wr_webgpu_kernel *find(wr_webgpu *webgpu, uint64_t id, uint32_t first)
{
    wr_webgpu_kernel *kernel = id != 0 ? *chain_of(webgpu, id) : NULL;
    while (kernel != NULL && (kernel->id != id || kernel->first != first)) {
        kernel = kernel->next;
    }
    return kernel;
}

static wr_wg_shader create_shader(const wr_webgpu *webgpu, const source *text)
{
    wr_wg_wgsl wgsl = {.chain = {.kind = WR_WG_CHAIN_WGSL},
                       .code = {text->text, text->length}};
    return webgpu->api.shader_create(webgpu->device, &(wr_wg_label){.next = &wgsl.chain});
}

/* What a pipeline is made of. */
typedef struct recipe {
    const weir_kernel *kernel;
    uint32_t first;
    wr_wg_pipeline_layout layout;
    source text;
} recipe;

/* What is wrong with the shader is complained of first, by its line. */
static weir_result compile(wr_webgpu *webgpu, const recipe *from,
                           wr_wg_pipeline *pipeline)
{
    wr_wg_constant constant = {.key = {"first", SIZE_MAX}, .value = from->first};
    wr_webgpu_scope_enter(webgpu);
    wr_wg_shader shader = create_shader(webgpu, &from->text);
    wr_wg_pipeline_desc desc = {.layout = from->layout,
                                .compute = {.shader = shader,
                                            .entry = {from->kernel->name, SIZE_MAX},
                                            .constant_count = from->first != 0 ? 1 : 0,
                                            .constants = &constant}};
    wr_wg_pipeline made = webgpu->api.pipeline_create(webgpu->device, &desc);
    weir_result result = wr_webgpu_scope_leave(webgpu, "launch");
    if (result != WEIR_OK) {
        wr_error_append("; in the WGSL of kernel \"%s\"", from->kernel->name);
    }
    if (result == WEIR_OK) {
        *pipeline = made;
    } else if (made != NULL) {
        webgpu->api.pipeline_release(made);
    }
    webgpu->api.shader_release(shader);
    return result;
}

/* A kernel that another thread has entered meanwhile is taken instead. */
static weir_result enter(wr_webgpu *webgpu, const recipe *from, wr_wg_pipeline *pipeline)
{
    uint64_t id = from->kernel->id;
    wr_webgpu_kernel *kernel = find(webgpu, id, from->first);
    if (kernel != NULL) {
        webgpu->api.pipeline_release(*pipeline);
        *pipeline = kernel->pipeline;
        return WEIR_OK;
    }
    kernel = wr_host_alloc(sizeof *kernel);
    if (kernel == NULL) {
        webgpu->api.pipeline_release(*pipeline);
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "webgpu: no memory for a kernel");
    }
    *kernel = (wr_webgpu_kernel){id, from->first, *pipeline, *chain_of(webgpu, id)};
    *chain_of(webgpu, id) = kernel;
    return WEIR_OK;
}

static weir_result build(wr_webgpu *webgpu, recipe *from, wr_wg_pipeline *pipeline)
{
    WR_TRY(read_source(from->kernel, &from->text));
    WR_TRY(compile(webgpu, from, pipeline));
    return from->kernel->id != 0 ? enter(webgpu, from, pipeline) : WEIR_OK;
}

weir_result wr_webgpu_kernel_find(wr_webgpu *webgpu, const weir_kernel *kernel,
                                  uint32_t first, const wr_webgpu_layout *layout,
                                  wr_wg_pipeline *pipeline)
{
    const wr_webgpu_kernel *found = find(webgpu, kernel->id, first);
    if (found != NULL) {
        *pipeline = found->pipeline;
        return WEIR_OK;
    }
    recipe from = {.kernel = kernel, .first = first, .layout = layout->pipeline};
    weir_result result = build(webgpu, &from, pipeline);
    wr_host_free(from.text.text);
    return result;
}

static void free_chain(const wr_webgpu *webgpu, wr_webgpu_kernel *kernel)
{
    while (kernel != NULL) {
        wr_webgpu_kernel *next = kernel->next;
        webgpu->api.pipeline_release(kernel->pipeline);
        wr_host_free(kernel);
        kernel = next;
    }
}

void wr_webgpu_kernels_free(wr_webgpu *webgpu)
{
    for (uint32_t i = 0; i < WR_WEBGPU_CHAINS; i++) {
        free_chain(webgpu, webgpu->kernels[i]);
    }
    for (uint32_t i = 0; i <= WR_WEBGPU_BINDINGS; i++) {
        const wr_webgpu_layout *layout = &webgpu->layouts[i];
        if (layout->group != NULL) {
            webgpu->api.group_layout_release(layout->group);
        }
        if (layout->pipeline != NULL) {
            webgpu->api.pipeline_layout_release(layout->pipeline);
        }
    }
}
