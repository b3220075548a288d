/* SPDX-License-Identifier: MIT */
#include "recording.h"

#include <string.h>

weir_graph *end_capture(weir_stream *stream, const char *name)
{
    weir_graph *graph = NULL;
    assert_ok(weir_capture_end(stream, name, &graph));
    assert_non_null(graph);
    return graph;
}

uint64_t waiting_for(rig *r, const char *name)
{
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(r->device, &report));
    for (size_t i = 0; i < 8; i++) {
        if (report.waiting[i].bytes > 0 && strcmp(report.waiting[i].name, name) == 0) {
            return report.waiting[i].bytes;
        }
    }
    return 0;
}

uint64_t forbidden_calls(rig *r)
{
    weir_sim_ledger ledger = ledger_of(r);
    return ledger.calls[WEIR_SIM_OP_page_free] + ledger.calls[WEIR_SIM_OP_decommit] +
           ledger.calls[WEIR_SIM_OP_move] + ledger.calls[WEIR_SIM_OP_fence_wait] +
           ledger.calls[WEIR_SIM_OP_stream_sync] + ledger.device_syncs;
}

void end_stream(weir_stream *stream)
{
    assert_ok(weir_stream_close(stream));
}

void run_steps(weir_stream *stream)
{
    for (uint64_t i = 1; i <= 12; i++) {
        weir_buffer a = make(stream, i * 700 * KIB, NULL);
        weir_buffer b = make(stream, i * 4096, NULL);
        drop(a), drop(b);
    }
}
