/* SPDX-License-Identifier: MIT */
/* The way of a share between processes: one message with two file descriptors beside it.
 * No state, no lock, no device, so a forked child may use it. */
#define _GNU_SOURCE
#include <weir/share.h>

#include "result.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3165726168735257) /* "WRshare1" */
#define FILES 2

void weir_share_close(weir_share *share)
{
    if (share == NULL || (share->memory_file == 0 && share->lives_file == 0)) {
        return;
    }
    int *files[FILES] = {&share->memory_file, &share->lives_file};
    for (int i = 0; i < FILES; i++) {
        if (*files[i] >= 0) {
            close(*files[i]);
            *files[i] = -1;
        }
    }
}

/* ---- between processes ---- */

typedef struct message {
    uint64_t magic, bytes;
} message;

/* Room for the descriptors beside a message, aligned as the system wants it. */
typedef union ancillary {
    struct cmsghdr header;
    char room[CMSG_SPACE(FILES * sizeof(int))];
} ancillary;

static weir_result refuse_socket(const char *function, const char *reason)
{
    return wr_error(WEIR_DRIVER, "%s: the socket: %s", function, reason);
}

weir_result weir_share_send(const weir_share *share, int socket)
{
    if (share == NULL || share->memory_file < 0 || share->lives_file < 0) {
        return wr_error(WEIR_INVALID, "weir_share_send: the share is NULL or closed");
    }
    message text = {MAGIC, share->bytes};
    const int files[FILES] = {share->memory_file, share->lives_file};
    struct iovec part = {&text, sizeof text};
    ancillary beside = {.room = {0}};
    struct msghdr whole = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &beside,
                           .msg_controllen = sizeof beside.room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&whole);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(rights), files, sizeof files);
    ssize_t sent;
    do {
        sent = sendmsg(socket, &whole, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof text
               ? WEIR_OK
               : refuse_socket("weir_share_send", sent < 0 ? strerror(errno) : "is full");
}

/* The descriptors that came beside a message; how many there are, at most FILES. */
static int take_files(struct msghdr *whole, int files[FILES])
{
    struct cmsghdr *rights = CMSG_FIRSTHDR(whole);
    if (rights == NULL || rights->cmsg_level != SOL_SOCKET ||
        rights->cmsg_type != SCM_RIGHTS) {
        return 0;
    }
    size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    count = count < FILES ? count : FILES;
    memcpy(files, CMSG_DATA(rights), count * sizeof(int));
    return (int)count;
}

weir_result weir_share_receive(int socket, weir_share *share)
{
    if (share == NULL || (share->size != 0 && share->size != sizeof *share)) {
        return wr_error(WEIR_INVALID, "weir_share_receive: the place for the share is "
                                      "NULL or of another size");
    }
    message text = {0};
    struct iovec part = {&text, sizeof text};
    ancillary beside = {.room = {0}};
    struct msghdr whole = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &beside,
                           .msg_controllen = sizeof beside.room};
    ssize_t got;
    do {
        got = recvmsg(socket, &whole, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return refuse_socket("weir_share_receive",
                             got < 0 ? strerror(errno) : "the other side has closed it");
    }
    int files[FILES] = {-1, -1};
    weir_share fresh = {.size = share->size, .bytes = text.bytes};
    int count = take_files(&whole, files);
    fresh.memory_file = files[0];
    fresh.lives_file = files[1];
    if (got != (ssize_t)sizeof text || text.magic != MAGIC || count != FILES ||
        (whole.msg_flags & MSG_CTRUNC) != 0) {
        weir_share_close(&fresh);
        return wr_error(WEIR_INVALID, "weir_share_receive: what came is no share");
    }
    *share = fresh;
    return WEIR_OK;
}
