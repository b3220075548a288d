/* SPDX-License-Identifier: MIT */
/* Memory that several processes map: one makes a buffer with `exportable`, exports it,
 * and sends the share through a Unix socket; another one imports it on a device of the
 * same kind.
 *
 *     weir_buffer_create(stream, bytes, &(weir_buffer_desc){.exportable = true},
 * &buffer);
 *     ... fill it, weir_stream_sync(stream) ...
 *     weir_buffer_export(buffer, &share);
 *     weir_share_send(&share, socket);
 *     weir_share_close(&share);
 *
 *     weir_share_receive(socket, &share);                  (in the other process)
 *     weir_buffer_import(stream, &share, NULL, &buffer);
 *     weir_share_close(&share);
 *
 * Order between processes is the program's: streams do not wait for other processes'
 * ones.
 *
 * The memory stays until all have released it. What its maker has released and another
 * process still has is `deferred` here, with "exported" in reports; that a process has
 * released its buffer, has closed its share, or has died, is noticed at the next cleanup
 * or tick, and then the bytes go back. Processes forked meanwhile count as holders until
 * they end or execute another program. */
#ifndef WEIR_SHARE_H
#define WEIR_SHARE_H

#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer on its way to another process: two open file descriptors of the caller's. */
typedef struct weir_share {
    size_t size;    /* sizeof(weir_share), or 0 for this first layout */
    uint64_t bytes; /* the buffer's */
    int memory_file;
    int lives_file; /* whoever has it open counts as a holder */
} weir_share;

/* A share of a live buffer that was made with `exportable`; any number of them. The
 * caller closes it. INVALID: another buffer, or an imported one. Any thread. */
WEIR_API weir_result weir_buffer_export(weir_buffer buffer, weir_share *share);

/* A buffer of the same bytes, with one reference that the caller owns. It counts as
 * reserved and in use in this process too. The share stays the caller's. Of the options
 * only the tag matters. INVALID if the share is none of this kind of device. Any thread.
 */
WEIR_API weir_result weir_buffer_import(weir_stream *stream, const weir_share *share,
                                        const weir_buffer_desc *desc,
                                        weir_buffer *buffer);

/* The following three have nothing to do with any device, and work in forked children. */

/* Closes both descriptors. NULL, zeroed ones, and what is closed already, are OK. */
WEIR_API void weir_share_close(weir_share *share);

/* Sends a copy through a connected Unix socket, as one message. */
WEIR_API weir_result weir_share_send(const weir_share *share, int socket);

/* Waits for a share, which the caller closes. INVALID if what comes is none; DRIVER if
 * the socket fails or the other side has closed it. */
WEIR_API weir_result weir_share_receive(int socket, weir_share *share);

#ifdef __cplusplus
}
#endif
#endif
