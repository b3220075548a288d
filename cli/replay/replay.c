/* SPDX-License-Identifier: MIT */
/* The command line of `weir replay`, and how its result is printed. */
#define _POSIX_C_SOURCE 200809L
#include "replay.h"

#include "run.h"

#include "cli.h"
#include "json.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char details[] =
    "TRACE is text, plain or gzip: a ID BYTES STREAM allocates, f ID STREAM frees, m "
    "LABEL ends\n"
    "a step, # starts a comment. The trace's stream 0 is the device's default stream.\n"
    "\n"
    "On sim the clock stands still unless --step-ms moves it at each m, and without "
    "--lag all\n"
    "work counts as done at once. The time per operation is that of the calls: the loop "
    "around\n"
    "them is measured too and taken off, steps of --lag and --step-ms are not.\n";

typedef struct arguments {
    const char *path;
    wr_replay_desc desc;
    bool json;
} arguments;

#define NOT_GIVEN UINT64_MAX

/* ---- progress: one line on a terminal, once the work has taken a while ---- */

static const char *progress_what;
static time_t progress_start;

static void show_progress(double share)
{
    if (time(NULL) - progress_start >= 1) {
        fprintf(stderr, "\r%s %3.0f %%", progress_what, share * 100);
    }
}

static void start_progress(const char *what)
{
    progress_what = what;
    progress_start = time(NULL);
}

static void clear_progress(bool is_shown)
{
    if (is_shown) {
        fputs("\r\x1b[K", stderr);
    }
}

/* ---- output ---- */

/* 0 for a trace that asks for nothing. */
static double peak_ratio(const wr_trace *trace, const wr_replay_result *result)
{
    return trace->peak_bytes == 0
               ? 0
               : (double)result->peak_reserved_bytes / (double)trace->peak_bytes;
}

static void add_decimal(cJSON *object, const char *name, double number, int decimals)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%.*f", decimals, number);
    cJSON_AddRawToObject(object, name, digits);
}

static void add_pass(cJSON *json, const char *prefix, const wr_replay_pass *pass)
{
    char name[40];
    snprintf(name, sizeof name, "%sns_per_operation", prefix);
    add_decimal(json, name, pass->ns_per_operation, 1);
    snprintf(name, sizeof name, "%shost_ns_per_operation", prefix);
    add_decimal(json, name, pass->host_ns_per_operation, 1);
    snprintf(name, sizeof name, "%sdriver_calls", prefix);
    wr_json_add_bytes(json, name, pass->driver_calls);
}

static void print_json(const arguments *given, const wr_trace *trace,
                       const wr_replay_result *result)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "trace", given->path);
    cJSON_AddStringToObject(json, "device", given->desc.device);
    cJSON_AddStringToObject(json, "preset", result->preset);
    wr_json_add_bytes(json, "operations", trace->operation_count);
    wr_json_add_bytes(json, "passes", given->desc.passes);
    add_pass(json, "", &result->first);
    if (given->desc.passes > 1) {
        add_pass(json, "later_", &result->later);
    }
    wr_json_add_bytes(json, "peak_requested_bytes", trace->peak_bytes);
    wr_json_add_bytes(json, "peak_reserved_bytes", result->peak_reserved_bytes);
    if (trace->peak_bytes > 0) {
        add_decimal(json, "peak_ratio", peak_ratio(trace, result), 6);
    } else {
        cJSON_AddNullToObject(json, "peak_ratio");
    }
    wr_json_add_bytes(json, "padding_bytes", result->padding_bytes);
    if (result->has_modelled_seconds) {
        add_decimal(json, "modelled_driver_seconds", result->modelled_seconds, 6);
    } else {
        cJSON_AddNullToObject(json, "modelled_driver_seconds");
    }
    wr_json_add_bytes(json, "kept_bytes", result->kept_bytes);
    wr_json_print(json);
}

static void print_row(const char *name, const char *value)
{
    printf("%-22s  %s\n", name, value);
}

static void print_bytes_row(const char *name, uint64_t bytes)
{
    char text[24];
    print_row(name, weir_format_bytes(bytes, text));
}

static void print_text(const arguments *given, const wr_trace *trace,
                       const wr_replay_result *result)
{
    char text[64], bytes[24];
    print_row("trace", given->path);
    print_row("device", given->desc.device);
    print_row("preset", result->preset);
    snprintf(text, sizeof text, "%zu, %.1f ns each, %.1f without the driver",
             trace->operation_count, result->first.ns_per_operation,
             result->first.host_ns_per_operation);
    print_row("operations", text);
    print_bytes_row("peak requested", trace->peak_bytes);
    snprintf(text, sizeof text, "%s, %.4f x requested",
             weir_format_bytes(result->peak_reserved_bytes, bytes),
             peak_ratio(trace, result));
    print_row("peak reserved", text);
    print_bytes_row("padding at the peak", result->padding_bytes);
    snprintf(text, sizeof text, "%" PRIu64, result->first.driver_calls);
    print_row("driver calls", text);
    if (given->desc.passes > 1) {
        snprintf(text, sizeof text,
                 "%.1f ns each, %.1f without the driver, %" PRIu64 " driver calls",
                 result->later.ns_per_operation, result->later.host_ns_per_operation,
                 result->later.driver_calls);
        print_row("later passes", text);
    }
    if (result->has_modelled_seconds) {
        snprintf(text, sizeof text, "%.4f s", result->modelled_seconds);
        print_row("modelled driver time", text);
    }
    print_bytes_row("kept after cleanup", result->kept_bytes);
}

/* ---- the command ---- */

static int fail_to_replay(const wr_trace *trace, const wr_replay_error *error)
{
    char bytes[24];
    if (error->is_setup) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "%s", error->reason);
    }
    if (error->operation == 0) {
        return wr_cli_error(WR_EXIT_FAILED, "replay", "%s", error->reason);
    }
    return wr_cli_error(WR_EXIT_FAILED, "replay",
                        "operation %" PRIu64 " of %zu (%s on stream %" PRIu32 "): %s",
                        error->operation, trace->operation_count,
                        weir_format_bytes(error->bytes, bytes), error->stream,
                        error->reason);
}

static int replay_trace(const arguments *given, const wr_trace *trace)
{
    wr_replay_result result;
    wr_replay_error error;
    start_progress("replaying");
    bool ok = wr_replay_run(trace, &given->desc, &result, &error);
    clear_progress(given->desc.progress != NULL);
    if (!ok) {
        return fail_to_replay(trace, &error);
    }
    if (given->json) {
        print_json(given, trace, &result);
    } else {
        print_text(given, trace, &result);
    }
    return WR_EXIT_OK;
}

static int read_and_replay(const arguments *given)
{
    wr_trace trace = {0};
    wr_trace_error error;
    start_progress("reading");
    bool ok = wr_trace_read(given->path, given->desc.progress, &trace, &error);
    clear_progress(given->desc.progress != NULL);
    if (!ok && error.line == 0) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "%s: %s", given->path, error.reason);
    }
    if (!ok) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "%s:%" PRIu64 ": %s", given->path,
                            error.line, error.reason);
    }
    int code = replay_trace(given, &trace);
    wr_trace_finish(&trace);
    return code;
}

/* The options of sim belong to no other device. */
static int check(arguments *given)
{
    wr_replay_desc *desc = &given->desc;
    if (desc->passes == 0) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "--passes must be more than 0");
    }
    if (strcmp(desc->device, "sim") != 0) {
        const char *option = desc->granule_bytes != NOT_GIVEN    ? "--granule"
                             : desc->capacity_bytes != NOT_GIVEN ? "--capacity"
                             : desc->chunk_bytes > 0             ? "--chunk"
                             : desc->lag > 0                     ? "--lag"
                             : desc->step_ms > 0                 ? "--step-ms"
                                                                 : NULL;
        return option == NULL ? WR_EXIT_OK
                              : wr_cli_error(WR_EXIT_USAGE, "replay",
                                             "%s is for --device sim only, not %s",
                                             option, desc->device);
    }
    if (desc->capacity_bytes == 0) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "--capacity must be more than 0");
    }
    if (desc->capacity_bytes == NOT_GIVEN) {
        desc->capacity_bytes = UINT64_C(192) << 30;
    }
    if (desc->granule_bytes == NOT_GIVEN) {
        desc->granule_bytes = weir_sim_defaults().granule_bytes;
    }
    return WR_EXIT_OK;
}

int weir_cli_replay(int argc, char **argv)
{
    arguments given = {
        .desc = {.device = "sim",
                 .passes = 1,
                 .capacity_bytes = NOT_GIVEN,
                 .granule_bytes = NOT_GIVEN,
                 .progress = isatty(STDERR_FILENO) ? show_progress : NULL}};
    wr_replay_desc *desc = &given.desc;
    const wr_option options[] = {
        {"device", WR_OPTION_KIND_TEXT, &desc->device, "NAME",
         "sim (default), host, ..."},
        {"preset", WR_OPTION_KIND_TEXT, &desc->preset, "NAME", "elastic (default), ..."},
        {"granule", WR_OPTION_KIND_SIZE, &desc->granule_bytes, "SIZE",
         "sim's unit of commit; 0: pages whole (default 2MiB)"},
        {"chunk", WR_OPTION_KIND_SIZE, &desc->chunk_bytes, "SIZE",
         "the most sim commits as one chunk (default: its granule)"},
        {"lag", WR_OPTION_KIND_NUMBER, &desc->lag, "N",
         "on sim a fence passes N operations after its place (default 0)"},
        {"capacity", WR_OPTION_KIND_SIZE, &desc->capacity_bytes, "SIZE",
         "sim's memory, all of it for the trace (default 192GiB)"},
        {"step-ms", WR_OPTION_KIND_NUMBER, &desc->step_ms, "MS",
         "move sim's clock at each mark (default 0)"},
        {"passes", WR_OPTION_KIND_NUMBER, &desc->passes, "N",
         "play the trace N times (default 1)"},
        {"json", WR_OPTION_KIND_FLAG, &given.json, NULL, "print one JSON object"},
    };
    const wr_command command = {
        .name = "replay",
        .summary = "Replays a recorded allocation trace and measures it.",
        .operands = "TRACE",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    int operands = 0;
    int code = wr_options_parse(&command, argc, argv, &operands);
    if (code != WR_OPTIONS_RUN) {
        return code;
    }
    if (operands != 1) {
        return wr_cli_error(WR_EXIT_USAGE, "replay", "%s; see weir replay --help",
                            operands == 0 ? "which trace?" : "one trace at a time");
    }
    given.path = argv[1];
    code = check(&given);
    return code == WR_EXIT_OK ? read_and_replay(&given) : code;
}
