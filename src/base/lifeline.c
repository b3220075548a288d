/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lifeline.h"

#include "memory.h"
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static wr_lifeline *refuse(wr_lifeline *lifeline, const char *what)
{
    int reason = errno;
    wr_error(WEIR_OUT_OF_HOST_MEMORY, "no %s to notice a peer's end with: %s", what,
             strerror(reason));
    wr_host_free(lifeline);
    return NULL;
}

wr_lifeline *wr_lifeline_create(void)
{
    int ends[2];
    wr_lifeline *lifeline = wr_host_alloc(sizeof *lifeline);
    if (lifeline == NULL) {
        errno = ENOMEM;
        return refuse(NULL, "host memory");
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return refuse(lifeline, "pipe");
    }
    *lifeline = (wr_lifeline){.watch = ends[0], .lives = ends[1], .is_held = true};
    return lifeline;
}

wr_lifeline *wr_lifeline_join(int lives)
{
    wr_lifeline *lifeline = wr_host_alloc(sizeof *lifeline);
    if (lifeline == NULL) {
        errno = ENOMEM;
        return refuse(NULL, "host memory");
    }
    int copy = fcntl(lives, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return refuse(lifeline, "file descriptor");
    }
    *lifeline = (wr_lifeline){.watch = -1, .lives = copy};
    return lifeline;
}

static void close_end(int *end)
{
    if (*end >= 0) {
        close(*end);
        *end = -1;
    }
}

void wr_lifeline_destroy(wr_lifeline *lifeline)
{
    if (lifeline != NULL) {
        close_end(&lifeline->lives);
        close_end(&lifeline->watch);
        wr_host_free(lifeline);
    }
}

int wr_lifeline_share(const wr_lifeline *lifeline)
{
    return fcntl(lifeline->lives, F_DUPFD_CLOEXEC, 0);
}

bool wr_lifeline_has_ended(wr_lifeline *lifeline)
{
    if (lifeline->is_held) {
        close_end(&lifeline->lives);
        struct pollfd watch = {.fd = lifeline->watch};
        int ready = poll(&watch, 1, 0);
        lifeline->is_held = ready != 1 || (watch.revents & POLLHUP) == 0;
    }
    return !lifeline->is_held;
}
