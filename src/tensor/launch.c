/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include "error.h"

weir_binding wr_binding_of(weir_buffer buffer, weir_access access)
{
    return (weir_binding){.address = weir_buffer_address(buffer),
                          .bytes = weir_buffer_bytes(buffer),
                          .access = access};
}

weir_result wr_launch_declare(wr_queue *queue, weir_buffer buffer)
{
    return weir_buffer_stream(buffer) != queue->stream
               ? weir_buffer_use(buffer, queue->stream)
               : WEIR_OK;
}

weir_result wr_launch_run(wr_queue *queue, weir_launch *launch, weir_buffer *buffers)
{
    if (queue->argument_buffers) {
        weir_buffer *buffer = &buffers[launch->buffer_count];
        WR_TRY(wr_arguments_place(&queue->arguments, queue->stream, launch->arguments,
                                  launch->argument_bytes, buffer));
        launch->argument_address = weir_buffer_address(*buffer);
        launch->buffer_count++;
        queue->counters.argument_writes = queue->arguments.writes;
    }
    WR_TRY(weir_stream_launch(queue->stream, launch));
    queue->counters.launches++;
    return WEIR_OK;
}
