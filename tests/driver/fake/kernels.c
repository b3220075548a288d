/* SPDX-License-Identifier: MIT */
/* Kernels of the fake GPU, and an NVRTC that has their text compiled by the host's C++
 * compiler (gpu.hpp gives CUDA's words their meaning), so that what is run without a GPU
 * is the very text that a GPU would run. A module's image is the path of a library.
 *
 * Threads run one after another, or in turns if they wait for each other. */
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
#include <ucontext.h>
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
#define PATH_BYTES 512
#define LOG_BYTES 4096

/* An address in this library. */
static const char one_library;

/* ---- compiling ---- */

struct wr_nvrtc_program_opaque {
    char *source;
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

/* Kernels of one structure are named by numbers that differ from run to run: they are all
 * number 0 here, so that a library made before can be found. */
static void leave_numbers_out(char *to, const char *from)
{
    static const char mark[] = "fused_";
    size_t length = strlen(mark);
    while (*from != '\0') {
        if (strncmp(from, mark, length) != 0) {
            *to++ = *from++;
            continue;
        }
        memcpy(to, "fused_0", length + 1);
        to += length + 1;
        from += length;
        from += strspn(from, "0123456789");
    }
    *to = '\0';
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
    (*program)->source = malloc(strlen(source) + 1);
    if ((*program)->source == NULL) {
        return NVRTC_INVALID_INPUT;
    }
    leave_numbers_out((*program)->source, source);
    return NVRTC_SUCCESS;
}

int nvrtcDestroyProgram(wr_nvrtc_program *program)
{
    free((*program)->source);
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

/* FNV-1a over a file, or over nothing if there is none. */
static uint64_t hash_file(const char *path, uint64_t hash)
{
    FILE *from = fopen(path, "r");
    for (int c; from != NULL && (c = getc(from)) != EOF;) {
        hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001B3);
    }
    if (from != NULL) {
        fclose(from);
    }
    return hash;
}

/* Beside this library, by what is in the text and in gpu.hpp. */
static void choose_path(char path[PATH_BYTES], const char *text)
{
    char shim[PATH_BYTES];
    Dl_info me = {0};
    dladdr(&one_library, &me);
    snprintf(shim, sizeof shim, "%s/tests/driver/fake/gpu.hpp",
             getenv("WEIR_SOURCE_DIR"));
    uint64_t hash = hash_file(shim, hash_file(text, UINT64_C(0xCBF29CE484222325)));
    snprintf(path, PATH_BYTES, "%s.%016llx.so", me.dli_fname, (unsigned long long)hash);
}

/* The library appears whole, whoever else makes the same one. */
static int run_compiler(const char *text, const char *library, const char *log)
{
    const char *compiler = getenv("CXX") != NULL ? getenv("CXX") : "c++";
    char made[PATH_BYTES + 8];
    snprintf(made, sizeof made, "%s.so", text);
    const char *const words[] = {
        compiler, "-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-ffp-contract=off",
        "-x",     "c++",        text,  "-o", made,      NULL};
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
    return status == 0 ? rename(made, library) : status;
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

static int compile_text(wr_nvrtc_program program, const char *text)
{
    char log[PATH_BYTES + 8];
    snprintf(log, sizeof log, "%s.log", text);
    if (!write_text(text, program->source)) {
        return -1;
    }
    choose_path(program->path, text);
    if (access(program->path, R_OK) == 0) {
        return 0;
    }
    int status = run_compiler(text, program->path, log);
    read_log(log, program->log);
    unlink(log);
    return status;
}

int nvrtcCompileProgram(wr_nvrtc_program program, int option_count,
                        const char *const *options)
{
    char text[PATH_BYTES];
    Dl_info me = {0};
    dladdr(&one_library, &me);
    snprintf(text, sizeof text, "%s.XXXXXX", me.dli_fname);
    int file = mkstemp(text);
    if (file < 0 || close(file) != 0 || !are_options_right(option_count, options)) {
        return NVRTC_INVALID_INPUT;
    }
    int status = compile_text(program, text);
    unlink(text);
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
    ENTER_CURRENT(module_load);
    void *library = dlopen(image, RTLD_NOW | RTLD_LOCAL);
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
    ENTER_CURRENT(module_unload);
    dlclose(module->library);
    free(module);
    atomic_fetch_sub(&fake_cuda_control()->modules, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuModuleGetFunction(wr_cu_function *function, wr_cu_module module,
                                 const char *name)
{
    ENTER_CURRENT(function_get);
    char symbol[160] = "fake_call_";
    char plain[128];
    snprintf(plain, sizeof plain, "%s", name);
    leave_numbers_out(symbol + strlen(symbol), plain);
    *function = dlsym(module->library, symbol);
    return *function != NULL ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

/* ---- launches ----
 *
 * Threads that wait for each other take turns on stacks of their own: each runs until it
 * waits, and goes on when all have come there. */

#define STACK_BYTES ((size_t)128 << 10)

typedef struct launch {
    call_fn call;
    void **parameters;
    fake_thread first; /* as thread 0 of block 0 sees itself */
    char *stacks;
    ucontext_t turns; /* whose turn it is, is decided there */
    ucontext_t threads[MOST_THREADS];
    fake_thread selves[MOST_THREADS];
    bool is_done[MOST_THREADS];
    unsigned running;
} launch;

/* Blocks share what is static in their library, so one launch runs at a time. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static launch *present; /* guard: one_at_a_time */

static void wait_for_all(void *context)
{
    launch *work = context;
    swapcontext(&work->threads[work->running], &work->turns);
}

static void cannot_wait(void *context)
{
    (void)context;
    abort(); /* the text has no __syncthreads */
}

static void run_one(void)
{
    launch *work = present;
    unsigned t = work->running;
    work->call(&work->selves[t], work->parameters);
    work->is_done[t] = true; /* and on to work->turns */
}

static void begin_thread(launch *work, unsigned t)
{
    ucontext_t *thread = &work->threads[t];
    getcontext(thread);
    thread->uc_stack.ss_sp = work->stacks + t * STACK_BYTES;
    thread->uc_stack.ss_size = STACK_BYTES;
    thread->uc_link = &work->turns;
    makecontext(thread, run_one, 0);
    work->selves[t] = work->first;
    work->selves[t].thread.x = t;
    work->is_done[t] = false;
}

/* The block that `first` is in. */
static void run_block_together(launch *work)
{
    unsigned count = work->first.threads.x;
    unsigned done = 0;
    for (unsigned t = 0; t < count; t++) {
        begin_thread(work, t);
    }
    while (done < count) {
        done = 0;
        for (unsigned t = 0; t < count; t++) {
            work->running = t;
            if (!work->is_done[t]) {
                swapcontext(&work->turns, &work->threads[t]);
            }
            done += work->is_done[t];
        }
    }
}

static void run_block_in_turn(launch *work)
{
    for (unsigned t = 0; t < work->first.threads.x; t++) {
        work->first.thread.x = t;
        work->call(&work->first, work->parameters);
    }
}

static void run_blocks(launch *work, void (*run_block)(launch *))
{
    thread_index *block = &work->first.block;
    for (block->y = 0; block->y < work->first.blocks.y; block->y++) {
        for (block->x = 0; block->x < work->first.blocks.x; block->x++) {
            run_block(work);
        }
    }
}

static void run_together(launch *work)
{
    work->stacks = malloc(MOST_THREADS * STACK_BYTES);
    if (work->stacks == NULL) {
        abort();
    }
    present = work;
    run_blocks(work, run_block_together);
    free(work->stacks);
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
    ENTER_CURRENT(launch);
    if (blocks_x == 0 || blocks_y == 0 || blocks_z != 1 || threads_x == 0 ||
        threads_x > MOST_THREADS || threads_y != 1 || threads_z != 1 ||
        shared_bytes != 0 || extra != NULL) {
        return WR_CU_INVALID_VALUE;
    }
    launch *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return WR_CU_OUT_OF_MEMORY;
    }
    work->parameters = parameters;
    memcpy(&work->call, &function, sizeof work->call);
    bool waits = has_waits(function);
    work->first = (fake_thread){
        .threads = {threads_x, 1, 1},
        .blocks = {blocks_x, blocks_y, 1},
        .sync = waits ? wait_for_all : cannot_wait,
        .context = work,
    };
    pthread_mutex_lock(&one_at_a_time);
    if (waits) {
        run_together(work);
    } else {
        run_blocks(work, run_block_in_turn);
    }
    pthread_mutex_unlock(&one_at_a_time);
    free(work);
    fake_queue(stream);
    return WR_CU_SUCCESS;
}
