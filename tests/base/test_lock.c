/* SPDX-License-Identifier: MIT */
/* The lock: one holder at a time, and nobody who sleeps is forgotten, also where the
 * system has no membarrier. */
#define _GNU_SOURCE
#include "base/lock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define ROUNDS 20000
#define NAP_NS 50000 /* longer than others are willing to spin for */

typedef struct scene {
    wr_lock lock;
    uint64_t count; /* guarded by it */
    uint32_t rounds;
} scene;

static void *count_up(void *argument)
{
    scene *s = argument;
    struct timespec nap = {.tv_nsec = NAP_NS};
    for (uint32_t i = 0; i < s->rounds; i++) {
        wr_lock_take(&s->lock);
        uint64_t count = s->count;
        if (i % 64 == 0) {
            nanosleep(&nap, NULL);
        }
        s->count = count + 1;
        wr_lock_leave(&s->lock);
    }
    return NULL;
}

static uint64_t count_together(uint32_t threads, uint32_t rounds)
{
    scene s = {.rounds = rounds};
    pthread_t ids[THREADS];
    for (uint32_t i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, count_up, &s), 0);
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    assert_true(wr_lock_try(&s.lock));
    assert_int_equal(*wr_lock_sleepers(&s.lock), 0);
    return s.count;
}

static void lock__has_one_holder_and_forgets_no_sleeper(void **state)
{
    (void)state;
    assert_int_equal(count_together(2, ROUNDS), 2 * ROUNDS);
    assert_int_equal(count_together(THREADS, ROUNDS), THREADS * ROUNDS);
}

static void lock__is_refused_while_it_is_held(void **state)
{
    (void)state;
    wr_lock lock = {0};
    assert_true(wr_lock_try(&lock));
    assert_false(wr_lock_try(&lock));
    wr_lock_leave(&lock);
    assert_true(wr_lock_try(&lock));
}

static int forbid_membarrier(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* seccomp_data.nr */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static void lock__without_membarrier_wakes_in_time(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (forbid_membarrier() != 0) {
            _exit(2);
        }
        _exit(count_together(2, 2000) == 4000 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock__is_refused_while_it_is_held),
        cmocka_unit_test(lock__has_one_holder_and_forgets_no_sleeper),
        cmocka_unit_test(lock__without_membarrier_wakes_in_time),
    };
    return cmocka_run_group_tests_name("base, lock", tests, NULL, NULL);
}
