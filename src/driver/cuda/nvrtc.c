/* SPDX-License-Identifier: MIT */
#include "nvrtc.h"

#include "library.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>
#include <string.h>

#define MOST_TARGETS 64

static const wr_cuda_library nvrtc_library = {
    .variable = "WEIR_NVRTC_LIBRARY",
    .names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"},
    .what_to_do = "install NVRTC (Debian: libnvrtc12; pip: nvidia-cuda-nvrtc)",
};

weir_result wr_nvrtc_load(wr_nvrtc *nvrtc)
{
    const wr_cuda_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {#symbol, &nvrtc->name},
        WR_NVRTC_LIST(SYMBOL)
#undef SYMBOL
            {"nvrtcGetErrorString", &nvrtc->error_text},
    };
    if (!nvrtc->is_loaded) {
        WR_TRY(wr_cuda_library_load(&nvrtc_library, symbols,
                                    sizeof symbols / sizeof symbols[0]));
        nvrtc->is_loaded = true;
    }
    return WEIR_OK;
}

static weir_result check(const wr_nvrtc *nvrtc, int result, const char *name,
                         const char *call)
{
    return result == 0 ? WEIR_OK
                       : wr_error(WEIR_DRIVER, "cuda: kernel \"%s\": %s says %s (%d)",
                                  name, call, nvrtc->error_text(result), result);
}

/* ---- what to compile for ---- */

/* The best target that is not above the device; 0 if there is none. */
static int find_target(const wr_nvrtc *nvrtc, int capability)
{
    int targets[MOST_TARGETS] = {0};
    int count = 0;
    int best = 0;
    if (nvrtc->target_count(&count) != 0 || count > MOST_TARGETS ||
        nvrtc->targets(targets) != 0) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        best = targets[i] <= capability && targets[i] > best ? targets[i] : best;
    }
    return best;
}

/* ---- compiling ---- */

/* The log's beginning tells the cause; it is cut to what an error text holds. */
static weir_result refused(const wr_nvrtc *nvrtc, wr_nvrtc_program program,
                           const char *name)
{
    size_t bytes = 0;
    char *log = NULL;
    if (nvrtc->log_bytes(program, &bytes) == 0 && bytes > 0) {
        log = wr_host_alloc(bytes + 1);
    }
    if (log != NULL && nvrtc->log(program, log) != 0) {
        log[0] = '\0';
    }
    weir_result result =
        wr_error(WEIR_UNSUPPORTED, "cuda: kernel \"%s\" does not compile: %.700s", name,
                 log != NULL ? log : "no log");
    wr_host_free(log);
    return result;
}

static weir_result take_image(const wr_nvrtc *nvrtc, wr_nvrtc_program program,
                              const char *name, bool is_code, void **image)
{
    size_t bytes = 0;
    WR_TRY(check(nvrtc,
                 is_code ? nvrtc->code_bytes(program, &bytes)
                         : nvrtc->ptx_bytes(program, &bytes),
                 name, "NVRTC's size of the image"));
    char *made = wr_host_alloc(bytes + 1);
    if (made == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory for kernel \"%s\"",
                        name);
    }
    int result = is_code ? nvrtc->code(program, made) : nvrtc->ptx(program, made);
    if (result != 0) {
        wr_host_free(made);
        return check(nvrtc, result, name, "NVRTC's image");
    }
    *image = made;
    return WEIR_OK;
}

/* No contraction of products and sums: results are to be the host's. */
static weir_result compile(const wr_nvrtc *nvrtc, wr_nvrtc_program program,
                           const char *name, int target, bool is_code)
{
    char architecture[48];
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d",
             is_code ? "sm" : "compute", target);
    const char *const options[] = {architecture, "--std=c++17", "--fmad=false"};
    int result = nvrtc->compile(program, 3, options);
    return result == 0 ? WEIR_OK : refused(nvrtc, program, name);
}

weir_result wr_nvrtc_compile(const wr_nvrtc *nvrtc, const char *name, const char *source,
                             int capability, void **image)
{
    wr_nvrtc_program program = NULL;
    int target = find_target(nvrtc, capability);
    bool is_code = target == capability;
    if (target == 0) {
        return wr_error(WEIR_UNSUPPORTED,
                        "cuda: this NVRTC does not compile for compute capability %d.%d; "
                        "install one that does, or set WEIR_NVRTC_LIBRARY to its path",
                        capability / 10, capability % 10);
    }
    WR_TRY(check(nvrtc, nvrtc->create(&program, source, name, 0, NULL, NULL), name,
                 "nvrtcCreateProgram"));
    weir_result result = compile(nvrtc, program, name, target, is_code);
    if (result == WEIR_OK) {
        result = take_image(nvrtc, program, name, is_code, image);
    }
    (void)nvrtc->destroy(&program);
    return result;
}
