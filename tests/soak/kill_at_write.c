/* Kills the process at one of its writes below a directory: LD_PRELOAD of tests.soak.kill_at_write.

   KILL_UNDER  the directory, with a slash at its end
   KILL_PAGE   file of pairs of numbers of 8 bytes: how many writes there were, and at which to kill, from 1; 0: at none;
               below 0: at which to stop, until the process is continued
   KILL_PAIR   which pair is this process's; children have the same unless their environment says otherwise

   A write is a call that changes a file or a name: a file is opened to write, bytes are written to it, it is renamed,
   linked or removed. The process is killed before the call; of bytes, half are written first.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static _Atomic int64_t *pair;

/* Return whether there are settings, which are read at the first write: a process may change its KILL_PAIR before. */
static int ready(void) {
    if (pair != NULL)
        return 1;
    const char *file = getenv("KILL_PAGE"), *number = getenv("KILL_PAIR");
    if (file == NULL || number == NULL)
        return 0;
    int fd = REAL(open)(file, O_RDWR);
    if (fd < 0)
        return 0;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return 0;
    pair = (_Atomic int64_t *)page + 2 * atol(number);
    return 1;
}

static int is_under(const char *path) {
    const char *under = getenv("KILL_UNDER");
    return path != NULL && under != NULL && strncmp(path, under, strlen(under)) == 0 && ready();
}

static int is_under_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_under(path);
}

/* Count a write; return whether it is the one to kill at. Stops at the one to stop at. */
static int is_last(void) {
    int64_t number = atomic_fetch_add(&pair[0], 1) + 1, wanted = atomic_load(&pair[1]);
    if (number == -wanted)
        kill(getpid(), SIGSTOP);
    return number == wanted;
}

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void at_name(const char *path) {
    if (is_under(path) && is_last())
        end();
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        static __typeof__(&name) real;                                                                                 \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        int mode = va_arg(more, int);                                                                                  \
        va_end(more);                                                                                                  \
        if (real == NULL)                                                                                              \
            real = REAL(name);                                                                                         \
        if (flags & (O_CREAT | O_TRUNC))                                                                               \
            at_name(path);                                                                                             \
        return real(path, flags, mode);                                                                                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        static __typeof__(&name) real;                                                                                 \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        int mode = va_arg(more, int);                                                                                  \
        va_end(more);                                                                                                  \
        if (real == NULL)                                                                                              \
            real = REAL(name);                                                                                         \
        if (flags & (O_CREAT | O_TRUNC))                                                                               \
            at_name(path);                                                                                             \
        return real(folder, path, flags, mode);                                                                        \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRITE(name, declared, given, half)                                                                             \
    ssize_t name declared {                                                                                            \
        static __typeof__(&name) real;                                                                                 \
        if (real == NULL)                                                                                              \
            real = REAL(name);                                                                                         \
        if (is_under_fd(fd) && is_last()) {                                                                            \
            real half;                                                                                                 \
            end();                                                                                                     \
        }                                                                                                              \
        return real given;                                                                                             \
    }
WRITE(write, (int fd, const void *buf, size_t n), (fd, buf, n), (fd, buf, n / 2))
WRITE(pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at), (fd, buf, n / 2, at))
WRITE(pwrite64, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at), (fd, buf, n / 2, at))

#define NAMES(name, declared, given, path)                                                                             \
    int name declared {                                                                                                \
        static __typeof__(&name) real;                                                                                 \
        if (real == NULL)                                                                                              \
            real = REAL(name);                                                                                         \
        at_name(path);                                                                                                 \
        return real given;                                                                                             \
    }
NAMES(rename, (const char *from, const char *to), (from, to), to)
NAMES(link, (const char *from, const char *to), (from, to), to)
NAMES(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), to)
NAMES(unlink, (const char *path), (path), path)
NAMES(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), path)
NAMES(mkdir, (const char *path, mode_t mode), (path, mode), path)
