/* SPDX-License-Identifier: MIT */
/* What the tests of captures and graphs share. */
#ifndef TESTS_CORE_RECORDING_H
#define TESTS_CORE_RECORDING_H

#include "support.h"

/* Ends a capture; must succeed. */
weir_graph *end_capture(weir_stream *stream, const char *name);

/* Bytes that wait for `name` in a report, 0 if it is not there. */
uint64_t waiting_for(rig *r, const char *name);

/* Driver calls so far of those that a capture forbids. */
uint64_t forbidden_calls(rig *r);

/* Makes and drops buffers of many sizes, two at a time. */
#define STEPS_BYTES ((700 * KIB + 4096) * 78) /* all together */
void run_steps(weir_stream *stream);

void end_stream(weir_stream *stream);

#endif
