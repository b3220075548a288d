/* SPDX-License-Identifier: MIT */
/* CUDA C to machine code, through NVRTC. Signatures are those of nvrtc.h 13.0; all
 * entries are there since CUDA 11.2. */
#ifndef WR_DRIVER_CUDA_NVRTC_H
#define WR_DRIVER_CUDA_NVRTC_H

#include <weir/base.h>

typedef struct wr_nvrtc_program_opaque *wr_nvrtc_program; /* nvrtcProgram */

/* Entry, symbol, parameters. All return nvrtcResult. */
#define WR_NVRTC_LIST(X)                                                                 \
    X(create, nvrtcCreateProgram,                                                        \
      (wr_nvrtc_program * program, const char *source, const char *name,                 \
       int header_count, const char *const *headers, const char *const *header_names))   \
    X(destroy, nvrtcDestroyProgram, (wr_nvrtc_program * program))                        \
    X(compile, nvrtcCompileProgram,                                                      \
      (wr_nvrtc_program program, int option_count, const char *const *options))          \
    X(log_bytes, nvrtcGetProgramLogSize, (wr_nvrtc_program program, size_t * bytes))     \
    X(log, nvrtcGetProgramLog, (wr_nvrtc_program program, char *log))                    \
    X(code_bytes, nvrtcGetCUBINSize, (wr_nvrtc_program program, size_t * bytes))         \
    X(code, nvrtcGetCUBIN, (wr_nvrtc_program program, char *code))                       \
    X(ptx_bytes, nvrtcGetPTXSize, (wr_nvrtc_program program, size_t * bytes))            \
    X(ptx, nvrtcGetPTX, (wr_nvrtc_program program, char *ptx))                           \
    X(target_count, nvrtcGetNumSupportedArchs, (int *count))                             \
    X(targets, nvrtcGetSupportedArchs, (int *targets))

typedef struct wr_nvrtc {
#define WR_NVRTC_ENTRY(name, symbol, parameters) int(*name) parameters;
    WR_NVRTC_LIST(WR_NVRTC_ENTRY)
#undef WR_NVRTC_ENTRY
    const char *(*error_text)(int result);
    bool is_loaded;
} wr_nvrtc;

/* Loads the library ($WEIR_NVRTC_LIBRARY, or libnvrtc.so of CUDA 13, 12 or 11) unless
 * that is done. UNSUPPORTED if there is none. */
weir_result wr_nvrtc_load(wr_nvrtc *nvrtc);

/* Compiles a text for a compute capability (90 is 9.0): machine code, or PTX where NVRTC
 * is older than the device. `*image` is for cuModuleLoadData and goes back with
 * wr_host_free(). UNSUPPORTED with the compiler's first words if the text is wrong. */
weir_result wr_nvrtc_compile(const wr_nvrtc *nvrtc, const char *name, const char *source,
                             int capability, void **image);

#endif
