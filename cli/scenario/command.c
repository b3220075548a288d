/* SPDX-License-Identifier: MIT */
/* `weir scenario FILE...`: reads, parses and runs each file, and says how it went. */
#include "scenario.h"

#include "cli.h"
#include "json.h"
#include "options.h"
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    uint64_t passed, failed, skipped;
    int code;
    cJSON *files; /* NULL: text */
};

/* ---- reading ---- */

/* Reads a whole file; NULL with a reason. Stops one byte behind what the parser takes. */
static char *read_file(const char *path, size_t *bytes, char *reason, size_t reason_bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(WR_SCN_MAX_TEXT_BYTES + 1) : NULL;
    if (text) {
        *bytes = fread(text, 1, WR_SCN_MAX_TEXT_BYTES + 1, file);
    }
    if (!text || ferror(file)) {
        snprintf(reason, reason_bytes, "cannot be read: %s", strerror(errno));
        free(text);
        text = NULL;
    }
    if (file) {
        fclose(file);
    }
    return text;
}

int weir_scenario_parse_text(const char *text, size_t bytes, char *error,
                             size_t error_bytes)
{
    wr_scn_program program;
    wr_scn_error reason;
    if (!wr_scn_program_parse(&program, text, bytes, &reason)) {
        snprintf(error, error_bytes, "%u: %s", reason.line, reason.text);
        return WR_EXIT_USAGE;
    }
    wr_scn_program_finish(&program);
    return WR_EXIT_OK;
}

/* ---- output ---- */

/* "file:12: " or "file: ". */
static void print_place(FILE *out, const char *path, uint32_t line)
{
    if (line > 0) {
        fprintf(out, "%s:%u: ", path, line);
    } else {
        fprintf(out, "%s: ", path);
    }
}

static void print_result(const char *path, const wr_scn_result *result)
{
    switch (result->verdict) {
    case WR_SCN_OK:
        printf("ok %s\n", path);
        break;
    case WR_SCN_SKIPPED:
        printf("skipped ");
        print_place(stdout, path, result->line);
        printf("%s\n", result->message);
        break;
    case WR_SCN_FAILED:
        printf("FAILED ");
        print_place(stdout, path, result->line);
        printf("%s\n", result->message);
        break;
    default:
        fflush(stdout);
        print_place(stderr, path, result->line);
        fprintf(stderr, "%s\n", result->message);
        break;
    }
}

static void add_json(cJSON *files, const char *path, const wr_scn_result *result,
                     uint64_t driver_calls)
{
    cJSON *file = cJSON_CreateObject();
    cJSON_AddItemToArray(files, file);
    cJSON_AddStringToObject(file, "file", path);
    cJSON_AddBoolToObject(file, "ok", result->verdict == WR_SCN_OK);
    cJSON_AddBoolToObject(file, "skipped", result->verdict == WR_SCN_SKIPPED);
    if (result->verdict == WR_SCN_OK) {
        cJSON_AddNullToObject(file, "line");
        cJSON_AddNullToObject(file, "message");
    } else {
        cJSON_AddNumberToObject(file, "line", result->line);
        cJSON_AddStringToObject(file, "message", result->message);
    }
    wr_json_add_bytes(file, "driver_calls", driver_calls);
}

static void count(struct tally *tally, const char *path, const wr_scn_result *result,
                  uint64_t driver_calls)
{
    bool is_skipped = result->verdict == WR_SCN_SKIPPED;
    bool is_ok = result->verdict == WR_SCN_OK;
    tally->passed += is_ok;
    tally->skipped += is_skipped;
    tally->failed += !is_ok && !is_skipped;
    if (!is_skipped && (int)result->verdict > tally->code) {
        tally->code = (int)result->verdict;
    }
    if (tally->files) {
        add_json(tally->files, path, result, driver_calls);
    } else {
        print_result(path, result);
    }
}

static void finish(struct tally *tally)
{
    if (!tally->files) {
        printf("%llu passed, %llu failed", (unsigned long long)tally->passed,
               (unsigned long long)tally->failed);
        if (tally->skipped > 0) {
            printf(", %llu skipped", (unsigned long long)tally->skipped);
        }
        printf("\n");
        return;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "files", tally->files);
    wr_json_add_bytes(json, "passed", tally->passed);
    wr_json_add_bytes(json, "failed", tally->failed);
    wr_json_add_bytes(json, "skipped", tally->skipped);
    wr_json_print(json);
}

/* ---- running ---- */

static void run_text(struct tally *tally, const char *path, const char *text,
                     size_t bytes, const wr_scn_options *options)
{
    wr_scn_program program;
    wr_scn_error reason;
    if (!wr_scn_program_parse(&program, text, bytes, &reason)) {
        wr_scn_result result = {.verdict = WR_SCN_WRONG, .line = reason.line};
        snprintf(result.message, sizeof result.message, "%s", reason.text);
        count(tally, path, &result, 0);
        return;
    }
    wr_scn_run run;
    wr_scn_run_program(&run, &program, options);
    count(tally, path, &run.result, run.driver_calls);
    wr_scn_run_finish(&run);
    wr_scn_program_finish(&program);
}

static void run_file(struct tally *tally, const char *path, const wr_scn_options *options)
{
    wr_scn_result result = {.verdict = WR_SCN_WRONG};
    size_t bytes = 0;
    char *text = read_file(path, &bytes, result.message, sizeof result.message);
    if (!text) {
        count(tally, path, &result, 0);
        return;
    }
    run_text(tally, path, text, bytes, options);
    free(text);
}

static const char details[] =
    "Each file runs on a device of its own, sim if not said. It passes if all its checks hold, and "
    "if\n"
    "after every statement the sums, peaks and structures of the device are right.\n"
    "\n"
    "On another device than sim, files that need what only sim can do (work that waits,\n"
    "failing calls, other processes) are skipped, and none passing is a failure.\n"
    "\n"
    "With --fail-call, for tests of Weir itself, the Nth call for memory or fences that "
    "the\n"
    "driver gets fails. Then `expect` is skipped, and a buffer whose alloc fails does "
    "not\n"
    "exist. In --json, driver_calls says how many there were.\n"
    "\n"
    "examples:\n"
    "  weir scenario tests/scenarios/*.scn\n"
    "  weir scenario --json mine.scn\n"
    "  for n in $(seq 1 50); do weir scenario --fail-call $n mine.scn || break; done\n"
    "\n"
    "exit codes: 0 all passed, 1 some failed, 2 a file is wrong or cannot be read\n";

int weir_cli_scenario(int argc, char **argv)
{
    bool is_json = false;
    wr_scn_options options = {0};
    const wr_option table[] = {
        {"device", WR_OPTION_KIND_TEXT, &options.device, "NAME",
         "sim (default), host, cuda, ..."},
        {"json", WR_OPTION_KIND_FLAG, &is_json, NULL, "print one JSON object"},
        {"fail-call", WR_OPTION_KIND_NUMBER, &options.fail_call, "N",
         "the driver's Nth memory call fails"},
    };
    const wr_command command = {
        .name = "scenario",
        .summary = "Runs scenario files.",
        .operands = "FILE...",
        .details = details,
        .options = table,
        .option_count = sizeof table / sizeof *table,
    };
    int file_count;
    int code = wr_options_parse(&command, argc, argv, &file_count);
    if (code != WR_OPTIONS_RUN) {
        return code;
    }
    if (options.device != NULL && strcmp(options.device, "sim") == 0) {
        options.device = NULL;
    }
    if (options.device != NULL && options.fail_call > 0) {
        return wr_cli_error(WR_EXIT_USAGE, "scenario",
                            "--fail-call needs --device sim; leave one of them out");
    }
    if (file_count == 0) {
        return wr_cli_error(WR_EXIT_USAGE, "scenario",
                            "no file given; see weir scenario --help");
    }
    struct tally tally = {.files = is_json ? cJSON_CreateArray() : NULL};
    for (int i = 1; i <= file_count; i++) {
        run_file(&tally, argv[i], &options);
    }
    finish(&tally);
    return tally.code == 0 && tally.passed == 0 ? WR_EXIT_FAILED : tally.code;
}
