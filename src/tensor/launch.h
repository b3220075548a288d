/* SPDX-License-Identifier: MIT */
/* What all launches have in common. Under the queue's lock. */
#ifndef WR_TENSOR_LAUNCH_H
#define WR_TENSOR_LAUNCH_H

#include "queue.h"

/* All bytes of a buffer. */
weir_binding wr_binding_of(weir_buffer buffer, weir_access access);

/* Before the launch: a buffer of another stream is ordered behind that. */
weir_result wr_launch_declare(wr_queue *queue, weir_buffer buffer);

/* Launches on the queue's stream, after putting the arguments into device memory if the
 * driver wants that; `buffers` are the launch's own, with room for one more. Counts it.
 */
weir_result wr_launch_run(wr_queue *queue, weir_launch *launch, weir_buffer *buffers);

#endif
