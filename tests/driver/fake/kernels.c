/* SPDX-License-Identifier: MIT */
/* Kernels of the fake GPU, and an NVRTC that has their text compiled by the host's C++
 * compiler (gpu.hpp gives CUDA's words their meaning), so that what is run without a GPU
 * is the very text that a GPU would run. A module's image is the path of a library.
 *
 * Threads run one after another, unless they wait for each other; then they are
 * threads. */
#define _GNU_SOURCE
#include "state.h"

#include "driver/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define DECLARE(name, symbol, parameters) EXPORT int symbol parameters;
WR_NVRTC_LIST(DECLARE)
#undef DECLARE
EXPORT const char *nvrtcGetErrorString(int result);

enum {
    NVRTC_SUCCESS = 0,
    NVRTC_INVALID_INPUT = 3,
    NVRTC_COMPILATION = 6,
};

#define MOST_THREADS 256
#define PATH_BYTES 128
#define LOG_BYTES 4096

/* ---- compiling ---- */

struct wr_nvrtc_program_opaque {
    const char *source; /* the caller keeps it until the program's end */
    char path[PATH_BYTES];
    char log[LOG_BYTES];
};

const char *nvrtcGetErrorString(int result)
{
    return result == NVRTC_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "some failure";
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 3;
    return NVRTC_SUCCESS;
}

int nvrtcGetSupportedArchs(int *targets)
{
    memcpy(targets, (const int[3]){75, 80, 90}, 3 * sizeof(int));
    return NVRTC_SUCCESS;
}

int nvrtcCreateProgram(wr_nvrtc_program *program, const char *source, const char *name,
                       int header_count, const char *const *headers,
                       const char *const *header_names)
{
    (void)name;
    (void)headers;
    (void)header_names;
    *program = calloc(1, sizeof **program);
    if (*program == NULL || header_count != 0) {
        return NVRTC_INVALID_INPUT;
    }
    (*program)->source = source;
    return NVRTC_SUCCESS;
}

int nvrtcDestroyProgram(wr_nvrtc_program *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* A way to call each function that the text gives to launches. */
static void write_entries(FILE *to, const char *source)
{
    static const char mark[] = "extern \"C\" __global__ void ";
    for (const char *at = source; (at = strstr(at, mark)) != NULL;) {
        char name[128];
        at += strlen(mark);
        const char *from =
            strncmp(at, "__launch_bounds__", 17) == 0 ? strchr(at, ')') + 2 : at;
        size_t length = strcspn(from, "(");
        snprintf(name, sizeof name, "%.*s", (int)length, from);
        fprintf(to, "FAKE_ENTRY(%s)\n", name);
    }
}

static bool write_text(const char *path, const char *source)
{
    FILE *to = fopen(path, "w");
    if (to == NULL) {
        return false;
    }
    fprintf(to, "#include \"%s/tests/driver/fake/gpu.hpp\"\n#line 1 \"kernel\"\n%s\n",
            getenv("WEIR_SOURCE_DIR"), source);
    if (strstr(source, "struct f16") != NULL) {
        fprintf(to, "FAKE_HALVES\n");
    }
    fprintf(to, "extern \"C\" const int fake_waits = %d;\n",
            strstr(source, "__syncthreads") != NULL);
    write_entries(to, source);
    return fclose(to) == 0;
}

static int run_compiler(const char *text, const char *library, const char *log)
{
    const char *compiler = getenv("CXX") != NULL ? getenv("CXX") : "c++";
    const char *const words[] = {
        compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off",
        "-x",     "c++",        text,  "-o", library,   NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    int failed =
        posix_spawnp(&child, compiler, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return status;
}

static void read_log(const char *path, char log[LOG_BYTES])
{
    FILE *from = fopen(path, "r");
    size_t bytes = from != NULL ? fread(log, 1, LOG_BYTES - 1, from) : 0;
    log[bytes] = '\0';
    if (from != NULL) {
        fclose(from);
    }
}

/* "sm_90" is the newest machine code that it makes, and contraction must be off. */
static bool are_options_right(int count, const char *const *options)
{
    bool has_target = false;
    bool has_exact = false;
    for (int i = 0; i < count; i++) {
        has_target |= strcmp(options[i], "--gpu-architecture=sm_90") == 0 ||
                      strcmp(options[i], "--gpu-architecture=compute_90") == 0;
        has_exact |= strcmp(options[i], "--fmad=false") == 0;
    }
    return has_target && has_exact;
}

int nvrtcCompileProgram(wr_nvrtc_program program, int option_count,
                        const char *const *options)
{
    char text[] = P_tmpdir "/weir-fake-XXXXXX";
    char log[PATH_BYTES];
    int file = mkstemp(text);
    if (file < 0 || close(file) != 0 || !are_options_right(option_count, options)) {
        return NVRTC_INVALID_INPUT;
    }
    snprintf(program->path, sizeof program->path, "%s.so", text);
    snprintf(log, sizeof log, "%s.log", text);
    int status =
        write_text(text, program->source) ? run_compiler(text, program->path, log) : -1;
    read_log(log, program->log);
    unlink(text);
    unlink(log);
    return status == 0 ? NVRTC_SUCCESS : NVRTC_COMPILATION;
}

int nvrtcGetProgramLogSize(wr_nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

int nvrtcGetProgramLog(wr_nvrtc_program program, char *log)
{
    strcpy(log, program->log);
    return NVRTC_SUCCESS;
}

int nvrtcGetCUBINSize(wr_nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->path) + 1;
    return NVRTC_SUCCESS;
}

int nvrtcGetCUBIN(wr_nvrtc_program program, char *code)
{
    strcpy(code, program->path);
    return NVRTC_SUCCESS;
}

int nvrtcGetPTXSize(wr_nvrtc_program program, size_t *bytes)
{
    return nvrtcGetCUBINSize(program, bytes);
}

int nvrtcGetPTX(wr_nvrtc_program program, char *ptx)
{
    return nvrtcGetCUBIN(program, ptx);
}

/* ---- modules ---- */

#define ENTER(name)                                                                      \
    do {                                                                                 \
        wr_cu_result asked = fake_enter(FAKE_##name);                                    \
        if (asked != WR_CU_SUCCESS) {                                                    \
            return asked;                                                                \
        }                                                                                \
    } while (0)

struct wr_cu_module_opaque {
    void *library;
};

typedef struct thread_index {
    unsigned x, y, z;
} thread_index;

/* As in gpu.hpp. */
typedef struct fake_thread {
    thread_index thread, block, threads, blocks;
    void (*sync)(void *context);
    void *context;
} fake_thread;

typedef void (*call_fn)(const fake_thread *self, void **parameters);

wr_cu_result cuModuleLoadData(wr_cu_module *module, const void *image)
{
    ENTER(module_load);
    void *library = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    unlink(image);
    *module = calloc(1, sizeof **module);
    if (library == NULL || *module == NULL) {
        return WR_CU_INVALID_VALUE;
    }
    (*module)->library = library;
    atomic_fetch_add(&fake_cuda_control()->modules, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuModuleUnload(wr_cu_module module)
{
    ENTER(module_unload);
    dlclose(module->library);
    free(module);
    atomic_fetch_sub(&fake_cuda_control()->modules, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuModuleGetFunction(wr_cu_function *function, wr_cu_module module,
                                 const char *name)
{
    ENTER(function_get);
    char symbol[160];
    snprintf(symbol, sizeof symbol, "fake_call_%s", name);
    *function = dlsym(module->library, symbol);
    return *function != NULL ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

/* ---- launches ---- */

typedef struct launch {
    call_fn call;
    void **parameters;
    fake_thread first; /* as thread 0 of block 0 sees itself */
    pthread_barrier_t together;
} launch;

typedef struct runner {
    launch *work;
    unsigned number;
} runner;

static void wait_for_all(void *context)
{
    launch *work = context;
    pthread_barrier_wait(&work->together);
}

static void cannot_wait(void *context)
{
    (void)context;
    abort(); /* the text has no __syncthreads */
}

/* One thread of every block; the block is over when all have come here. */
static void *run_number(void *context)
{
    const runner *me = context;
    fake_thread self = me->work->first;
    self.thread.x = me->number;
    for (self.block.y = 0; self.block.y < self.blocks.y; self.block.y++) {
        for (self.block.x = 0; self.block.x < self.blocks.x; self.block.x++) {
            me->work->call(&self, me->work->parameters);
            if (self.sync != cannot_wait) {
                wait_for_all(me->work);
            }
        }
    }
    return NULL;
}

static void run_together(launch *work)
{
    pthread_t threads[MOST_THREADS];
    runner runners[MOST_THREADS];
    unsigned count = work->first.threads.x;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    pthread_barrier_init(&work->together, NULL, count);
    for (unsigned t = 0; t < count; t++) {
        runners[t] = (runner){work, t};
        if (pthread_create(&threads[t], &attributes, run_number, &runners[t]) != 0) {
            abort(); /* the others wait for it */
        }
    }
    for (unsigned t = 0; t < count; t++) {
        pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&work->together);
    pthread_attr_destroy(&attributes);
}

static void run_in_turn(launch *work)
{
    for (unsigned t = 0; t < work->first.threads.x; t++) {
        run_number(&(runner){work, t});
    }
}

/* Whether the function's library has waits in it. */
static bool has_waits(wr_cu_function function)
{
    Dl_info found;
    if (dladdr(function, &found) == 0) {
        return true;
    }
    void *library = dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    const int *waits = library != NULL ? dlsym(library, "fake_waits") : NULL;
    bool has = waits == NULL || *waits != 0;
    if (library != NULL) {
        dlclose(library);
    }
    return has;
}

wr_cu_result cuLaunchKernel(wr_cu_function function, unsigned blocks_x, unsigned blocks_y,
                            unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                            unsigned threads_z, unsigned shared_bytes,
                            wr_cu_stream stream, void **parameters, void **extra)
{
    ENTER(launch);
    if (blocks_x == 0 || blocks_y == 0 || blocks_z != 1 || threads_x == 0 ||
        threads_x > MOST_THREADS || threads_y != 1 || threads_z != 1 ||
        shared_bytes != 0 || extra != NULL) {
        return WR_CU_INVALID_VALUE;
    }
    launch work = {.parameters = parameters};
    memcpy(&work.call, &function, sizeof work.call);
    work.first = (fake_thread){
        .threads = {threads_x, 1, 1},
        .blocks = {blocks_x, blocks_y, 1},
        .sync = has_waits(function) ? wait_for_all : cannot_wait,
        .context = &work,
    };
    if (work.first.sync == wait_for_all) {
        run_together(&work);
    } else {
        run_in_turn(&work);
    }
    fake_queue(stream);
    return WR_CU_SUCCESS;
}
