/* SPDX-License-Identifier: MIT */
/* Another process for tests: this program again, executed with "peer" and the number of a
 * socket as its arguments. Both sides speak words of one letter. */
#ifndef WR_TESTS_SUPPORT_PEER_H
#define WR_TESTS_SUPPORT_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/weir.h>

/* In the peer: ends with `code` if the condition does not hold. */
static inline void peer_expect(bool condition, int code)
{
    if (!condition) {
        fprintf(stderr, "peer, %d: %s\n", code, weir_last_error());
        _exit(code);
    }
}

typedef struct peer {
    pid_t process;
    int socket;
} peer;

static inline peer start_peer(void)
{
    int ends[2];
    char number[16];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    fflush(NULL);
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        fcntl(ends[1], F_SETFD, 0);
        execl("/proc/self/exe", "test", "peer", number, (char *)NULL);
        _exit(9);
    }
    close(ends[1]);
    return (peer){process, ends[0]};
}

static inline void expect_word(const peer *p, char word)
{
    char got = 0;
    assert_int_equal(read(p->socket, &got, 1), 1);
    assert_int_equal(got, word);
}

/* Waits for its end; the status as waitpid has it. */
static inline int end_peer(const peer *p)
{
    int status = 0;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) {
    }
    close(p->socket);
    return status;
}

#endif
