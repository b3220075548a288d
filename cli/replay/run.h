/* SPDX-License-Identifier: MIT */
/* Replays a trace on a device and measures it. */
#ifndef WEIR_CLI_REPLAY_RUN_H
#define WEIR_CLI_REPLAY_RUN_H

#include "trace.h"

#include <weir/weir.h>

typedef struct wr_replay_desc {
    const char *device;      /* as weir_device_open() takes it */
    const char *preset;      /* NULL: the default */
    uint64_t capacity_bytes; /* sim, all of it for the trace: there is no context */
    uint64_t granule_bytes;  /* sim; 0: pages whole */
    uint64_t chunk_bytes;    /* sim: the most that one chunk has; 0: a granule */
    uint64_t lag;     /* sim: operations from a fence's place to its passing; 0: none */
    uint64_t step_ms; /* sim: the clock's move at each mark */
    uint64_t passes;  /* how often the trace is played, from 1 */
    void (*progress)(
        double share); /* heard now and then, outside the measured time; or NULL */
} wr_replay_desc;

/* Of one pass, or of several together. */
typedef struct wr_replay_pass {
    double ns_per_operation;
    double host_ns_per_operation; /* the same without the driver's memory calls */
    uint64_t driver_calls;        /* for memory, until the trace's end */
} wr_replay_pass;

typedef struct wr_replay_result {
    char preset[32];
    wr_replay_pass first;
    wr_replay_pass later; /* the passes after the first; zero if there are none */
    uint64_t peak_reserved_bytes;
    uint64_t padding_bytes;    /* when the requested bytes were at their peak */
    bool has_modelled_seconds; /* sim only */
    double modelled_seconds;   /* what the first pass's calls cost on a GPU */
    uint64_t kept_bytes;       /* reserved after all was dropped and cleaned up */
} wr_replay_result;

typedef struct wr_replay_error {
    bool is_setup; /* nothing was replayed: the device could not be had */
    uint64_t
        operation;   /* which of the trace's operations failed, from 1; 0: none of them */
    uint64_t bytes;  /* of that operation */
    uint32_t stream; /* likewise, in the trace's order */
    char reason[1024];
} wr_replay_error;

/* False with `*error` filled and `*result` untouched if the device cannot be opened or an
 * operation fails; the device is closed in any case. */
bool wr_replay_run(const wr_trace *trace, const wr_replay_desc *desc,
                   wr_replay_result *result, wr_replay_error *error);

#endif
