/* SPDX-License-Identifier: MIT */
/* What the files of `weir demo` share. The experiment is a list of steps; after each the
 * device is asked where its bytes are, which gives a row. */
#ifndef WEIR_CLI_DEMO_DEMO_H
#define WEIR_CLI_DEMO_DEMO_H

#include <weir/report.h>
#include <weir/tensor.h>

enum {
    WR_DEMO_MOST_STEPS = 10,
    WR_DEMO_TENSORS = 4,
};

/* The numbers of a row, by their names in the JSON form without "_bytes". */
#define WR_DEMO_TERM_LIST(X)                                                             \
    X(in_use)                                                                            \
    X(reserved)                                                                          \
    X(footprint)                                                                         \
    X(padding)                                                                           \
    X(deferred)                                                                          \
    X(releasable)                                                                        \
    X(pinned)                                                                            \
    X(driver_deferred)                                                                   \
    X(overhead)                                                                          \
    X(untouched)                                                                         \
    X(others)

typedef struct wr_demo_row {
    char label[40];
#define WR_DEMO_FIELD(name) uint64_t name##_bytes;
    WR_DEMO_TERM_LIST(WR_DEMO_FIELD)
#undef WR_DEMO_FIELD
} wr_demo_row;

/* The state that people ask about: tensors dropped, memory still there. */
typedef struct wr_demo_dropped {
    weir_device_report report;
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    char *text; /* the seven lines in words; freed by wr_demo_finish */
} wr_demo_dropped;

typedef struct wr_demo {
    weir_device *device; /* NULL until opened */
    weir_stream *stream;
    uint64_t idle_ms;
    bool is_idle;       /* the shorter experiment: the idle reclaimer does it */
    bool is_waiting;    /* cleanups wait for fences and for the driver */
    bool has_late;      /* the driver may hold on to what it was handed back */
    bool has_made_time; /* sim: time passes by being told to */
    weir_tensor *tensors[WR_DEMO_TENSORS];
    wr_demo_row rows[WR_DEMO_MOST_STEPS];
    size_t row_count;
    wr_demo_dropped dropped;
    uint64_t returned_bytes; /* by the first cleanup, or by the idle reclaimer */
    double cleanup_ms;       /* what the first cleanup took */
} wr_demo;

typedef struct wr_demo_step {
    const char *label; /* NULL: "+N s, no call" */
    weir_result (*run)(wr_demo *demo);
    bool is_asked_about; /* the state after it is explained */
} wr_demo_step;

/* The steps of the experiment that `demo` is. */
const wr_demo_step *wr_demo_steps(const wr_demo *demo, size_t *count);

/* Everything that happens once only (threads start, buffers of the C library fill), so
 * that no row shows it; leaves no memory behind. */
weir_result wr_demo_warm_up(wr_demo *demo);

/* Runs a step and appends its row. */
weir_result wr_demo_run_step(wr_demo *demo, const wr_demo_step *step);

/* Drops what is left and closes the device. */
void wr_demo_finish(wr_demo *demo);

/* One line on what the bytes after "dropped" were; true if they were not leaked and came
 * back. `returned_bytes` is what cleanup gave back, or idle time if `is_idle`. */
#define WR_DEMO_VERDICT_BYTES 256
bool wr_demo_verdict(const weir_device_report *dropped, uint64_t returned_bytes,
                     bool is_idle, char text[WR_DEMO_VERDICT_BYTES]);

void wr_demo_print_head(const wr_demo *demo);
void wr_demo_print_row(const wr_demo *demo, const wr_demo_row *row);
/* What stands below the table. */
void wr_demo_print_end(const wr_demo *demo, const char *verdict, bool is_good);
void wr_demo_print_json(const wr_demo *demo, const char *verdict);

#endif
