/* SPDX-License-Identifier: MIT */
#include "cuda.h"
#include "spread.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the text ---- */

typedef struct text {
    void *bytes; /* ends with 0 */
    size_t length;
    size_t capacity;
} text;

static weir_result append(void *context, const char *piece, size_t bytes)
{
    text *to = context;
    if (!wr_host_grow(&to->bytes, &to->capacity, to->length + bytes + 1, 1)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory for a kernel's text");
    }
    memcpy((char *)to->bytes + to->length, piece, bytes);
    to->length += bytes;
    ((char *)to->bytes)[to->length] = '\0';
    return WEIR_OK;
}

static weir_result write_text(const weir_kernel *kernel, text *to)
{
    if (kernel->source == NULL) {
        return wr_error(WEIR_UNSUPPORTED,
                        "cuda: kernel \"%s\" has no CUDA form; set its `source`",
                        kernel->name != NULL ? kernel->name : "");
    }
    if (kernel->name == NULL) {
        return wr_error(WEIR_INVALID, "cuda: a kernel without a name; its function in "
                                      "CUDA C is found by that");
    }
    return kernel->source(kernel, WEIR_LANGUAGE_CUDA, append, to);
}

/* ---- making; inside enter and leave ---- */

static weir_result find_functions(const wr_cuda *cuda, const weir_launch *launch,
                                  wr_cuda_kernel *made)
{
    const char *name = launch->kernel->name;
    char end[128];
    WR_TRY(wr_cu_failed(&cuda->api,
                        cuda->api.function_get(&made->function, made->module, name), name,
                        "cuModuleGetFunction"));
    if (!wr_spread_is_reduction(launch)) {
        return WEIR_OK;
    }
    snprintf(end, sizeof end, "%s_end", name);
    return wr_cu_failed(&cuda->api, cuda->api.function_get(&made->end, made->module, end),
                        end, "cuModuleGetFunction");
}

static weir_result load(const wr_cuda *cuda, const weir_launch *launch, const void *image,
                        wr_cuda_kernel *made)
{
    WR_TRY(wr_cu_failed(&cuda->api, cuda->api.module_load(&made->module, image),
                        launch->kernel->name, "cuModuleLoadData"));
    weir_result result = find_functions(cuda, launch, made);
    if (result != WEIR_OK) {
        (void)cuda->api.module_unload(made->module);
    }
    return result;
}

/* With `making` held. */
static weir_result compile(wr_cuda *cuda, const weir_launch *launch, wr_cuda_kernel *made)
{
    text source = {0};
    void *image = NULL;
    weir_result result = write_text(launch->kernel, &source);
    if (result == WEIR_OK) {
        result = wr_nvrtc_load(&cuda->kernels.nvrtc);
    }
    if (result == WEIR_OK) {
        result = wr_nvrtc_compile(&cuda->kernels.nvrtc, launch->kernel->name,
                                  source.bytes, cuda->kernels.capability, &image);
    }
    if (result == WEIR_OK) {
        result = load(cuda, launch, image, made);
    }
    wr_host_free(image);
    wr_host_free(source.bytes);
    return result;
}

static wr_cuda_kernel *_Atomic *chain_of(wr_cuda *cuda, uint64_t id)
{
    return &cuda->kernels.chains[id % WR_CUDA_CHAINS];
}

static const wr_cuda_kernel *find(wr_cuda *cuda, uint64_t id)
{
    const wr_cuda_kernel *at =
        atomic_load_explicit(chain_of(cuda, id), memory_order_acquire);
    while (at != NULL && at->id != id) {
        at = at->next;
    }
    return at;
}

/* Another thread may have made it meanwhile. */
static weir_result make(wr_cuda *cuda, const weir_launch *launch,
                        const wr_cuda_kernel **kernel)
{
    uint64_t id = launch->kernel->id;
    *kernel = find(cuda, id);
    if (*kernel != NULL) {
        return WEIR_OK;
    }
    wr_cuda_kernel *made = wr_host_alloc(sizeof *made);
    if (made == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory to keep a kernel");
    }
    weir_result result = compile(cuda, launch, made);
    if (result != WEIR_OK) {
        wr_host_free(made);
        return result;
    }
    made->id = id;
    made->next = atomic_load_explicit(chain_of(cuda, id), memory_order_relaxed);
    atomic_store_explicit(chain_of(cuda, id), made, memory_order_release);
    cuda->kernels.count++;
    *kernel = made;
    return WEIR_OK;
}

static weir_result get(wr_cuda *cuda, const weir_launch *launch,
                       const wr_cuda_kernel **kernel)
{
    *kernel = find(cuda, launch->kernel->id);
    if (*kernel != NULL) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&cuda->kernels.making);
    weir_result result = make(cuda, launch, kernel);
    pthread_mutex_unlock(&cuda->kernels.making);
    return result;
}

/* ---- launching; inside enter and leave ---- */

#define MOST_BINDINGS 64

static weir_result start(const wr_cuda *cuda, wr_cu_function function, const char *name,
                         const uint32_t blocks[2], wr_cuda_stream *stream,
                         void **parameters)
{
    wr_cu_result result =
        cuda->api.launch(function, blocks[0], blocks[1], 1, WEIR_CUDA_THREADS, 1, 1, 0,
                         stream->native, parameters, NULL);
    return wr_cu_failed(&cuda->api, result, name, "cuLaunchKernel");
}

/* Outputs from the parts of a reduction. */
static weir_result end(const wr_cuda *cuda, const wr_cuda_kernel *kernel,
                       const weir_launch *launch, const wr_spread *spread,
                       wr_cuda_stream *stream)
{
    const weir_expression *expression = launch->kernel->expression;
    uint64_t output = launch->bindings[expression->outputs[0].binding].address;
    uint64_t count = launch->element_count;
    uint64_t each = (uint64_t)((const int64_t *)launch->arguments)[1];
    wr_spread last = wr_spread_of_end(launch, spread, cuda->kernels.multiprocessors);
    void *parameters[4] = {&output, &count, &each, &last.split};
    return start(cuda, kernel->end, launch->kernel->name,
                 (const uint32_t[2]){last.blocks, 1}, stream, parameters);
}

static weir_result run(const wr_cuda *cuda, const wr_cuda_kernel *kernel,
                       const weir_launch *launch, wr_cuda_stream *stream)
{
    void *parameters[MOST_BINDINGS + 2];
    uint64_t addresses[MOST_BINDINGS];
    size_t count = 0;
    wr_spread spread = wr_spread_of(launch, cuda->kernels.multiprocessors);
    if (wr_spread_workspace(launch, &spread) > launch->workspace_bytes) {
        spread.split.parts = 1;
    }
    spread.split.memory = launch->workspace_address;
    for (; count < launch->binding_count; count++) {
        addresses[count] = launch->bindings[count].address;
        parameters[count] = &addresses[count];
    }
    if (launch->argument_bytes > 0) {
        parameters[count++] = (void *)(uintptr_t)launch->arguments; /* only read */
    }
    parameters[count] = &spread.split;
    WR_TRY(start(cuda, kernel->function, launch->kernel->name,
                 (const uint32_t[2]){spread.blocks, (uint32_t)spread.split.parts}, stream,
                 parameters));
    return spread.split.parts > 1 ? end(cuda, kernel, launch, &spread, stream) : WEIR_OK;
}

/* Without an id nothing can be kept, so that the work is waited for. */
static weir_result run_once(wr_cuda *cuda, const weir_launch *launch,
                            wr_cuda_stream *stream)
{
    wr_cuda_kernel made = {0};
    pthread_mutex_lock(&cuda->kernels.making);
    weir_result result = compile(cuda, launch, &made);
    pthread_mutex_unlock(&cuda->kernels.making);
    if (result != WEIR_OK) {
        return result;
    }
    result = run(cuda, &made, launch, stream);
    if (result == WEIR_OK) {
        result = wr_cu_failed(&cuda->api, cuda->api.stream_sync(stream->native),
                              launch->kernel->name, "cuStreamSynchronize");
    }
    (void)cuda->api.module_unload(made.module);
    return result;
}

static weir_result launch_inside(wr_cuda *cuda, const weir_launch *launch,
                                 wr_cuda_stream *stream)
{
    const wr_cuda_kernel *kernel = NULL;
    if (launch->kernel->kind == WEIR_KERNEL_MATMUL) {
        return wr_cublas_run(&cuda->kernels.cublas, stream->native, launch);
    }
    if (launch->kernel->id == 0) {
        return run_once(cuda, launch, stream);
    }
    WR_TRY(get(cuda, launch, &kernel));
    return run(cuda, kernel, launch, stream);
}

static weir_result check_launch(const weir_launch *launch)
{
    const weir_kernel *kernel = launch->kernel;
    if (kernel == NULL) {
        return wr_error(WEIR_INVALID, "cuda: launch without a kernel");
    }
    if (launch->binding_count > MOST_BINDINGS) {
        return wr_error(WEIR_INVALID, "cuda: kernel \"%s\" with %zu bindings; at most %d",
                        kernel->name, launch->binding_count, MOST_BINDINGS);
    }
    if (kernel->kind == WEIR_KERNEL_EXPRESSION &&
        (launch->binding_count != kernel->expression->binding_count ||
         launch->argument_bytes !=
             weir_expression_words(kernel->expression) * sizeof(int64_t))) {
        return wr_error(WEIR_INVALID,
                        "cuda: kernel \"%s\" with %zu bindings and %zu bytes of "
                        "arguments; it has %u and %zu",
                        kernel->name, launch->binding_count, launch->argument_bytes,
                        (unsigned)kernel->expression->binding_count,
                        weir_expression_words(kernel->expression) * sizeof(int64_t));
    }
    return WEIR_OK;
}

weir_result wr_cuda_launch(weir_driver *driver, weir_driver_stream stream,
                           const weir_launch *launch)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    WR_TRY(check_launch(launch));
    if (launch->element_count == 0) {
        return WEIR_OK;
    }
    WR_TRY(wr_cuda_enter(cuda, "launch"));
    weir_result result = launch_inside(cuda, launch, (wr_cuda_stream *)(uintptr_t)stream);
    wr_cuda_leave(cuda);
    return result;
}

uint64_t wr_cuda_workspace(weir_driver *driver, const weir_launch *launch)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    if (check_launch(launch) != WEIR_OK || launch->element_count == 0) {
        return 0;
    }
    if (launch->kernel->kind == WEIR_KERNEL_MATMUL) {
        return wr_cublas_workspace(launch);
    }
    wr_spread spread = wr_spread_of(launch, cuda->kernels.multiprocessors);
    return wr_spread_workspace(launch, &spread);
}

/* ---- the device ---- */

static weir_result read_attribute(wr_cuda *cuda, int attribute, int *value)
{
    return wr_cu_failed(&cuda->api,
                        cuda->api.device_attribute(value, attribute, cuda->device),
                        "open", "cuDeviceGetAttribute");
}

weir_result wr_cuda_kernels_init(wr_cuda *cuda)
{
    int major = 0;
    int minor = 0;
    int multiprocessors = 0;
    WR_TRY(read_attribute(cuda, WR_CU_ATTRIBUTE_MULTIPROCESSORS, &multiprocessors));
    WR_TRY(read_attribute(cuda, WR_CU_ATTRIBUTE_CAPABILITY_MAJOR, &major));
    WR_TRY(read_attribute(cuda, WR_CU_ATTRIBUTE_CAPABILITY_MINOR, &minor));
    cuda->kernels.capability = 10 * major + minor;
    cuda->kernels.multiprocessors = multiprocessors > 0 ? (uint32_t)multiprocessors : 1;
    cuda->kernels.making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    cuda->kernels.cublas.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return WEIR_OK;
}

void wr_cuda_kernels_finish(wr_cuda *cuda)
{
    wr_cublas_finish(&cuda->kernels.cublas);
    for (size_t i = 0; i < WR_CUDA_CHAINS; i++) {
        wr_cuda_kernel *at = atomic_load(&cuda->kernels.chains[i]);
        while (at != NULL) {
            wr_cuda_kernel *next = at->next;
            (void)cuda->api.module_unload(at->module);
            wr_host_free(at);
            at = next;
        }
    }
}
