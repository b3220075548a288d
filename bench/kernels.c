/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include <dlfcn.h>
#include <err.h>
#include <stddef.h>
#include <string.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 p, .param .u64 n, .param .u32 v, .param .u64 e) {\n"
    ".reg .pred %q; .reg .b32 %r<10>; .reg .b64 %d<10>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u64 %d2, [n]; ld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, %r6, %r3;\n"
    "cvt.u64.u32 %d3, %r5; cvt.u64.u32 %d4, %r7;\n"
    "L: setp.ge.u64 %q, %d3, %d2; @%q bra E;\n"
    "cvt.u32.u64 %r8, %d3; mul.lo.u32 %r8, %r8, 2654435761; xor.b32 %r8, %r8, %r1;\n"
    "shl.b64 %d5, %d3, 2; add.u64 %d5, %d1, %d5; st.global.u32 [%d5], %r8;\n"
    "add.u64 %d3, %d3, %d4; bra L;\n"
    "E: ret; }\n"
    ".visible .entry verify(.param .u64 p, .param .u64 n, .param .u32 v, .param .u64 e) {\n"
    ".reg .pred %q; .reg .b32 %r<12>; .reg .b64 %d<10>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u64 %d2, [n]; ld.param.u32 %r1, [v];\n"
    "ld.param.u64 %d6, [e];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, %r6, %r3;\n"
    "cvt.u64.u32 %d3, %r5; cvt.u64.u32 %d4, %r7;\n"
    "L: setp.ge.u64 %q, %d3, %d2; @%q bra E;\n"
    "cvt.u32.u64 %r8, %d3; mul.lo.u32 %r8, %r8, 2654435761; xor.b32 %r8, %r8, %r1;\n"
    "shl.b64 %d5, %d3, 2; add.u64 %d5, %d1, %d5; ld.global.u32 %r9, [%d5];\n"
    "setp.eq.u32 %q, %r8, %r9; @%q bra N; atom.global.add.u32 %r10, [%d6], 1;\n"
    "N: add.u64 %d3, %d3, %d4; bra L;\n"
    "E: ret; }\n"
    ".visible .entry spin(.param .u64 p, .param .u64 n, .param .u32 v, .param .u64 e) {\n"
    ".reg .pred %q; .reg .b64 %d<6>;\n"
    "ld.param.u64 %d1, [n]; mov.u64 %d2, %globaltimer; add.u64 %d2, %d2, %d1;\n"
    "L: mov.u64 %d3, %globaltimer; setp.lt.u64 %q, %d3, %d2; @%q bra L;\n"
    "ret; }\n";

#define NOT_READY 600

/* Types of cuda.h: CUdevice and CUresult are int, CUdeviceptr is 64 bits. */
static struct cuda {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *, void **, void **);
    int (*alloc)(uint64_t *, size_t);
    int (*set)(uint64_t, unsigned char, size_t);
    int (*read)(void *, uint64_t, size_t);
    int (*stream_create)(void **, unsigned);
    int (*stream_query)(void *);
    int (*sync)(void);
} cuda;

static void *context;
static void *fill, *verify, *spin;
static void *spinning; /* the stream */
static uint64_t errors;
static _Thread_local bool is_current;

static void check(int result, const char *call)
{
    if (result != 0) {
        errx(1, "bench_gpu: %s says %d", call, result);
    }
}

static bool find(void *library, const char *symbol, void *entry)
{
    void *found = dlsym(library, symbol);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *library)
{
    return find(library, "cuInit", &cuda.init) &&
           find(library, "cuDevicePrimaryCtxRetain", &cuda.retain) &&
           find(library, "cuCtxSetCurrent", &cuda.set_current) &&
           find(library, "cuModuleLoadData", &cuda.load) &&
           find(library, "cuModuleGetFunction", &cuda.function) &&
           find(library, "cuLaunchKernel", &cuda.launch) &&
           find(library, "cuMemAlloc_v2", &cuda.alloc) &&
           find(library, "cuMemsetD8_v2", &cuda.set) &&
           find(library, "cuMemcpyDtoH_v2", &cuda.read) &&
           find(library, "cuStreamCreate", &cuda.stream_create) &&
           find(library, "cuStreamQuery", &cuda.stream_query) &&
           find(library, "cuCtxSynchronize", &cuda.sync);
}

static void enter(void)
{
    if (!is_current) {
        check(cuda.set_current(context), "cuCtxSetCurrent");
        is_current = true;
    }
}

bool kernels_open(const char **what)
{
    void *module;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *what = "there is no libcuda.so.1";
    if (library == NULL || !find_all(library)) {
        return false;
    }
    *what = "there is no GPU";
    if (cuda.init(0) != 0 || cuda.retain(&context, 0) != 0) {
        return false;
    }
    enter();
    check(cuda.load(&module, ptx), "cuModuleLoadData");
    check(cuda.function(&fill, module, "fill"), "cuModuleGetFunction");
    check(cuda.function(&verify, module, "verify"), "cuModuleGetFunction");
    check(cuda.function(&spin, module, "spin"), "cuModuleGetFunction");
    check(cuda.alloc(&errors, sizeof errors), "cuMemAlloc");
    check(cuda.set(errors, 0, sizeof errors), "cuMemsetD8");
    check(cuda.stream_create(&spinning, 1), "cuStreamCreate");
    return true;
}

static void launch(void *kernel, void *stream, uint64_t address, uint64_t count,
                   uint32_t value)
{
    void *parameters[] = {&address, &count, &value, &errors};
    unsigned blocks = kernel == spin ? 1 : 64;
    enter();
    check(cuda.launch(kernel, blocks, 1, 1, kernel == spin ? 1 : 256, 1, 1, 0, stream,
                      parameters, NULL),
          "cuLaunchKernel");
}

void kernels_fill(void *stream, uint64_t address, uint64_t words, uint32_t value)
{
    launch(fill, stream, address, words, value);
}

void kernels_verify(void *stream, uint64_t address, uint64_t words, uint32_t value)
{
    launch(verify, stream, address, words, value);
}

uint64_t kernels_errors(void)
{
    uint64_t count = 0;
    enter();
    check(cuda.sync(), "cuCtxSynchronize");
    check(cuda.read(&count, errors, sizeof count), "cuMemcpyDtoH");
    return count;
}

void kernels_spin(uint64_t ns)
{
    launch(spin, spinning, 0, ns, 0);
}

bool kernels_is_spinning(void)
{
    enter();
    return cuda.stream_query(spinning) == NOT_READY;
}
