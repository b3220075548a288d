/* SPDX-License-Identifier: MIT */
/* `fork` ... `exit`: a real fork. The child runs the statements between and sends its
 * verdict through a pipe, in one write that fits into the pipe's buffer. */
#define _POSIX_C_SOURCE 200809L
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that hangs, perhaps on a lock that it inherited, ends by a signal after so
 * long. */
#define CHILD_SECONDS 60

static _Noreturn void run_child(wr_scn_run *run, size_t from, size_t to, int pipe_end)
{
    run->is_child = true;
    signal(SIGALRM, SIG_DFL);
    alarm(CHILD_SECONDS);
    bool is_right = wr_scn_run_range(run, from, to);
    ssize_t written = write(pipe_end, &run->result, sizeof run->result);
    _exit(is_right && written == (ssize_t)sizeof run->result ? 0 : 1);
}

static bool read_result(int pipe_end, wr_scn_result *result)
{
    size_t used = 0;
    while (used < sizeof *result) {
        ssize_t bytes = read(pipe_end, (char *)result + used, sizeof *result - used);
        if (bytes < 0 && errno == EINTR) {
            continue;
        }
        if (bytes <= 0) {
            return false;
        }
        used += (size_t)bytes;
    }
    return true;
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static bool judge_child(wr_scn_run *run, pid_t child, int pipe_end)
{
    wr_scn_result result;
    bool is_read = read_result(pipe_end, &result);
    int status = wait_for(child);
    if (is_read && result.verdict == WR_SCN_OK && WIFEXITED(status) &&
        WEXITSTATUS(status) == 0) {
        return true;
    }
    if (is_read && result.verdict != WR_SCN_OK) {
        run->result = result;
        return false;
    }
    return wr_scn_fail(run, "expected the forked child to exit with 0, got %s %d",
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

bool wr_scn_run_fork(wr_scn_run *run, size_t fork_at, size_t exit_at)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return wr_scn_wrong(run, "no pipe for the child: %s", strerror(errno));
    }
    fflush(NULL); /* or the child's copies of the buffers might be written too */
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(run, fork_at + 1, exit_at, ends[1]);
    }
    int fork_error = errno;
    close(ends[1]);
    bool is_right = child > 0 ? judge_child(run, child, ends[0])
                              : wr_scn_wrong(run, "no child: %s", strerror(fork_error));
    close(ends[0]);
    return is_right;
}
