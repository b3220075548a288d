/* SPDX-License-Identifier: MIT */
/* `weir demo`: tensors are created and dropped, and after every step it is said where the
 * memory is. */
#include "demo.h"

#include "cli.h"
#include "options.h"

#include <string.h>

typedef struct demo_options {
    const char *device;
    const char *preset;
    uint64_t idle_ms; /* 0: not given */
    bool is_idle;
    bool is_waiting;
    bool is_json;
} demo_options;

static int read_options(int argc, char **argv, demo_options *options)
{
    const wr_option list[] = {
        {"device", WR_OPTION_KIND_TEXT, &options->device, "NAME",
         "host (default), sim, cuda, webgpu; see weir devices"},
        {"preset", WR_OPTION_KIND_TEXT, &options->preset, "NAME",
         "layout: elastic (default), adaptive, subslices, exclusive"},
        {"idle", WR_OPTION_KIND_FLAG, &options->is_idle, NULL,
         "make no call after \"dropped\"; idle memory goes back"},
        {"idle-ms", WR_OPTION_KIND_NUMBER, &options->idle_ms, "MS",
         "how long memory is idle before it goes back (5000)"},
        {"wait", WR_OPTION_KIND_FLAG, &options->is_waiting, NULL,
         "cleanups wait until the driver has let go"},
        {"json", WR_OPTION_KIND_FLAG, &options->is_json, NULL, "print one JSON object"},
    };
    const wr_command command = {
        .name = "demo",
        .summary =
            "Creates and drops tensors, and says after every step where the memory is.",
        .details =
            "in_use     bytes that live tensors asked for\n"
            "reserved   bytes taken from the driver\n"
            "footprint  bytes of this process, as the operating system counts them\n"
            "driver_deferred, on webgpu: bytes handed back that the driver still holds\n\n"
            "The exit code is 1 if dropped memory does not come back.\n",
        .options = list,
        .option_count = sizeof list / sizeof *list,
    };
    int code = wr_options_parse(&command, argc, argv, NULL);
    if (code == WR_OPTIONS_RUN && options->idle_ms > 0 && !options->is_idle) {
        return wr_cli_error(WR_EXIT_USAGE, "demo", "--idle-ms works with --idle only");
    }
    if (code == WR_OPTIONS_RUN && options->is_waiting && options->is_idle) {
        return wr_cli_error(WR_EXIT_USAGE, "demo",
                            "--wait is for cleanups; --idle makes "
                            "none");
    }
    if (options->idle_ms > 3600000) {
        return wr_cli_error(WR_EXIT_USAGE, "demo",
                            "--idle-ms is at most 3600000, an hour");
    }
    return code;
}

static weir_result open_device(const demo_options *options, wr_demo *demo)
{
    bool is_sim = strcmp(options->device, "sim") == 0;
    weir_device_desc desc = {
        .size = sizeof desc,
        .preset = options->preset,
        .idle_ms = demo->idle_ms,
        .no_idle = !options->is_idle,
        .no_thread = is_sim,
    };
    weir_result result = weir_device_open(options->device, &desc, &demo->device);
    if (result == WEIR_OK) {
        demo->stream = weir_device_default_stream(demo->device);
        demo->has_made_time = is_sim;
        demo->has_late =
            !is_sim && weir_device_driver(demo->device)->table->pending_bytes != NULL;
    }
    return result;
}

static int run_steps(wr_demo *demo, bool is_json)
{
    size_t count;
    const wr_demo_step *steps = wr_demo_steps(demo, &count);
    for (size_t i = 0; i < count; i++) {
        if (wr_demo_run_step(demo, &steps[i]) != WEIR_OK) {
            return wr_cli_error(WR_EXIT_FAILED, "demo", "%s: %s",
                                steps[i].label != NULL ? steps[i].label : "no call",
                                weir_last_error());
        }
        if (!is_json) {
            wr_demo_print_row(demo, &demo->rows[i]);
        }
    }
    char verdict[WR_DEMO_VERDICT_BYTES];
    bool is_good = wr_demo_verdict(&demo->dropped.report, demo->returned_bytes,
                                   demo->is_idle, verdict);
    if (is_json) {
        wr_demo_print_json(demo, verdict);
    } else {
        wr_demo_print_end(demo, verdict, is_good);
    }
    return is_good ? WR_EXIT_OK : WR_EXIT_FAILED;
}

static int run(const demo_options *options, wr_demo *demo)
{
    weir_result result = open_device(options, demo);
    if (result != WEIR_OK) {
        bool is_misnamed = result == WEIR_NOT_FOUND || result == WEIR_INVALID;
        return wr_cli_error(is_misnamed ? WR_EXIT_USAGE : WR_EXIT_FAILED, "demo",
                            "%s; see weir devices and weir demo --help",
                            weir_last_error());
    }
    if (!options->is_json) {
        wr_demo_print_head(demo);
    }
    if (wr_demo_warm_up(demo) != WEIR_OK) {
        return wr_cli_error(WR_EXIT_FAILED, "demo", "warm-up: %s", weir_last_error());
    }
    return run_steps(demo, options->is_json);
}

int weir_cli_demo(int argc, char **argv)
{
    demo_options options = {.device = "host"};
    int code = read_options(argc, argv, &options);
    if (code != WR_OPTIONS_RUN) {
        return code;
    }
    static wr_demo demo; /* large, and its pages are there before the first row */
    demo = (wr_demo){.is_idle = options.is_idle,
                     .is_waiting = options.is_waiting,
                     .idle_ms = options.idle_ms != 0 ? options.idle_ms : 5000};
    code = run(&options, &demo);
    wr_demo_finish(&demo);
    return code;
}
