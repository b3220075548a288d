/* SPDX-License-Identifier: MIT */
/* One run of one scenario: its device, what its names stand for, and its verdict.
 * Everything happens on one thread; the device has none of its own. A function that
 * returns false has set the verdict, and the run is over. */
#ifndef WEIR_CLI_SCENARIO_RUN_H
#define WEIR_CLI_SCENARIO_RUN_H

#include "names.h"
#include "program.h"

#include <weir/weir.h>

/* A number of an expression: any 64-bit size, or what is left when one is subtracted. */
__extension__ typedef __int128 wr_scn_value;

typedef enum wr_scn_verdict {
    WR_SCN_OK = 0,
    WR_SCN_FAILED = 1,  /* something that must be true is not */
    WR_SCN_WRONG = 2,   /* the file itself is wrong */
    WR_SCN_SKIPPED = 3, /* it needs what only the sim device can do */
} wr_scn_verdict;

typedef struct wr_scn_result {
    wr_scn_verdict verdict;
    uint32_t line; /* 0: no line is to blame */
    char message[1024];
} wr_scn_result;

typedef struct wr_scn_options {
    const char *device; /* NULL: sim */
    uint64_t fail_call; /* this memory call of the driver fails; 0: none */
} wr_scn_options;

/* A buffer's name, and what it stands for or last stood for. */
typedef struct wr_scn_buffer {
    weir_buffer handle;
    uint64_t address, bytes;
    uint64_t extent; /* padding included */
    bool is_known;   /* was allocated once */
    bool is_held;
} wr_scn_buffer;

typedef struct wr_scn_stream {
    weir_stream *stream; /* NULL: closed, or not opened yet */
    weir_driver_stream driver_stream;
} wr_scn_stream;

/* Numbers as of one moment. */
typedef struct wr_scn_snapshot {
    uint64_t value[WR_SCN_FIELD_COUNT]; /* or WEIR_UNKNOWN_BYTES */
    weir_tag_usage *tags;               /* of a mark only; owned */
    size_t tag_count;
} wr_scn_snapshot;

/* What a loop or a `random` remembers between executions. */
typedef struct wr_scn_state {
    wr_scn_value next, last; /* for: of the variable; repeat: from 1 to N */
    uint64_t executions;     /* random */
} wr_scn_state;

typedef struct wr_scn_run {
    const wr_scn_program *program;
    wr_scn_options options;
    wr_scn_result result;

    /* settings, then the device */
    char preset[WR_SCN_NAME_BYTES]; /* "": the default */
    weir_device_desc device_desc;
    weir_sim_desc sim_desc;
    weir_device *device;    /* NULL until the first action */
    weir_driver *sim;       /* its driver; NULL on another device... */
    uint64_t context_bytes; /* ...which has so much for itself */
    uint64_t now_ms;        /* and what `advance` has made of the time */
    wr_scn_stream default_stream;

    /* names, and beside each an array by the name's number */
    wr_scn_names variable_names, mark_names, stream_names, buffer_names, graph_names;
    wr_scn_value *variables;
    wr_scn_snapshot *marks;
    wr_scn_stream *streams;
    wr_scn_buffer *buffers;
    weir_graph **graphs; /* NULL: destroyed */
    size_t variable_capacity, mark_capacity, stream_capacity, buffer_capacity;
    size_t graph_capacity;

    /* held buffers by address, and their requested bytes */
    size_t *held; /* numbers of buffers */
    size_t held_count, held_capacity;
    uint64_t held_bytes;

    size_t *captures; /* numbers of the streams that are capturing, the latest last */
    size_t capture_count, capture_capacity;

    wr_scn_state *states;  /* by statement */
    uint64_t iterations;   /* of all loops */
    unsigned window_depth; /* persistent windows open */
    uint64_t driver_calls; /* memory calls that the driver saw, when the run is over */
    bool is_armed[WEIR_SIM_OP_COUNT]; /* a `fail` of that call may still be in force */
    bool is_child;                    /* this process was forked by the scenario */
    bool is_gone;                     /* after `shutdown` */
    bool is_small;                    /* the device, beside the scenario's capacity */
    bool is_host;                     /* its memory is the host's */
    weir_cleanup_outcome last;
    char error[1024]; /* text of the last call that failed */
} wr_scn_run;

/* All loops of a run together. */
#define WR_SCN_MAX_ITERATIONS UINT64_C(1000000)
/* Of one `advance`: a day. */
#define WR_SCN_MAX_ADVANCE_MS UINT64_C(86400000)

/* Runs a parsed scenario on a device of its own. */
void wr_scn_run_program(wr_scn_run *run, const wr_scn_program *program,
                        const wr_scn_options *options);
/* Gives back what the run holds on the host. */
void wr_scn_run_finish(wr_scn_run *run);

/* Runs statements [from, to). */
bool wr_scn_run_range(wr_scn_run *run, size_t from, size_t to);

/* ---- verdicts (verdict.c) ---- */

/* Something that must be true is not; always false. */
bool wr_scn_fail(wr_scn_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* The file is wrong; always false. */
bool wr_scn_wrong(wr_scn_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Only the sim device can do that; always false. */
bool wr_scn_skip(wr_scn_run *run, const char *what) __attribute__((cold));
/* Judges what a call returned: OK, or a failure that the scenario itself has brought
 * about (a forked child, a driver that is gone or made to fail). Keeps the text of a
 * failure. */
bool wr_scn_accept(wr_scn_run *run, const char *call, weir_result result);
/* Keeps the text of a call that failed as it should. */
void wr_scn_keep_error(wr_scn_run *run);
/* A call may fail for memory: the scenario, or --fail-call, makes the driver fail. */
bool wr_scn_is_faulty(const wr_scn_run *run);

/* ---- numbers and names (evaluate.c) ---- */

bool wr_scn_evaluate(wr_scn_run *run, const wr_scn_expr *expr, wr_scn_value *value);
/* The same for what must not be negative; an absent expression is 0. `what` names it. */
bool wr_scn_evaluate_size(wr_scn_run *run, const wr_scn_expr *expr, const char *what,
                          uint64_t *size);
/* Puts variables into a name or text. */
bool wr_scn_expand(wr_scn_run *run, wr_scn_text text, char name[WR_SCN_NAME_BYTES]);
bool wr_scn_variable_set(wr_scn_run *run, wr_scn_text name, wr_scn_value value);
/* Decimal; returns `text`. */
char *wr_scn_value_text(wr_scn_value value, char text[24]);

/* ---- snapshots (snapshot.c) ---- */

bool wr_scn_field_read(wr_scn_run *run, const wr_scn_op *op, wr_scn_value *value);
bool wr_scn_run_mark(wr_scn_run *run, const wr_scn_statement *statement);
void wr_scn_snapshot_finish(wr_scn_snapshot *snapshot);

/* ---- device, streams, buffers (device.c, buffer.c) ---- */

bool wr_scn_run_setting(wr_scn_run *run, const wr_scn_statement *statement);
bool wr_scn_device_open(wr_scn_run *run);
/* Gives everything back; a device that then refuses to close is a failure. */
void wr_scn_device_close(wr_scn_run *run);

/* The stream of a name, opened when first mentioned; an absent name is the default
 * stream. Its opening may fail in `*result`, and then `*stream` is NULL. */
bool wr_scn_stream_get(wr_scn_run *run, wr_scn_text name, wr_scn_stream **stream,
                       weir_result *result);

/* The buffer of a name that is held. In a run with --fail-call one may not exist: NULL.
 */
bool wr_scn_buffer_get(wr_scn_run *run, wr_scn_text name, wr_scn_buffer **buffer);
/* The buffer of a name that is or was held; same. */
bool wr_scn_buffer_recall(wr_scn_run *run, wr_scn_text name, wr_scn_buffer **buffer);
bool wr_scn_run_alloc(wr_scn_run *run, const wr_scn_statement *statement);
bool wr_scn_run_free(wr_scn_run *run, const wr_scn_statement *statement);
/* Drops all buffers at the end. */
void wr_scn_buffers_release(wr_scn_run *run);

/* ---- statements ---- */

bool wr_scn_run_action(wr_scn_run *run, const wr_scn_statement *statement); /* action.c */
bool wr_scn_run_check(wr_scn_run *run, const wr_scn_statement *statement);  /* expect.c */
bool wr_scn_run_capture(wr_scn_run *run,
                        const wr_scn_statement *statement); /* capture.c */
/* At the end: aborts captures, destroys graphs. */
void wr_scn_graphs_release(wr_scn_run *run);
bool wr_scn_run_fork(wr_scn_run *run, size_t fork, size_t exit); /* fork.c */

/* What must be true after every statement (invariant.c). */
bool wr_scn_check_invariants(wr_scn_run *run);

#endif
