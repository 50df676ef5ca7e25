/*
 * Fails chosen system calls of a process that is started with LD_PRELOAD.
 *
 *   IO_FAULT_PATH   only files whose path contains this text; ends with it, when it begins with *
 *   IO_FAULT_CALL   sync (fsync, fdatasync), write (write, pwrite), truncate (ftruncate), open (open for writing) or unlink
 *   IO_FAULT_FROM   number of the first such call that fails, counting from 1; 0: none
 *   IO_FAULT_COUNT  how many calls fail from there on; 0: all
 *   IO_FAULT_ERRNO  the error, as a number; 0: the process is killed (SIGKILL) before the call
 *   IO_FAULT_DELAY  milliseconds that every sync takes longer
 *   IO_FAULT_WHILE  file without which no sync takes longer
 *   IO_FAULT_LOCK   file by which the syncs of all processes with the library run one after the other
 *   IO_FAULT_LOG    file that gets one line per failed call: milliseconds since the epoch, and the path
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

static void record(const char *of) {
  const char *path = getenv("IO_FAULT_LOG");
  if (path == NULL) return;
  static int (*real_open)(const char *, int, ...);
  static ssize_t (*real_write)(int, const void *, size_t);
  if (real_open == NULL) real_open = dlsym(RTLD_NEXT, "open");
  if (real_write == NULL) real_write = dlsym(RTLD_NEXT, "write");
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char line[4200];
  int length = snprintf(line, sizeof line, "%lld %.4000s\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, of);
  int fd = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (real_write(fd, line, length) < 0) { /* the test notices the missing line */ }
  close(fd);
}

/* Whether a path is one that IO_FAULT_PATH names. */
static int matches(const char *path, const char *part) {
  if (part[0] != '*') return strstr(path, part) != NULL;
  size_t length = strlen(path), wanted = strlen(part + 1);
  return length >= wanted && strcmp(path + length - wanted, part + 1) == 0;
}

/* Counts a call on a matching path; true when the call is to fail, with errno set. */
static int fails(const char *call, const char *path) {
  const char *wanted = getenv("IO_FAULT_CALL");
  const char *part = getenv("IO_FAULT_PATH");
  long from = number("IO_FAULT_FROM");
  if (wanted == NULL || part == NULL || from == 0 || strcmp(wanted, call) != 0 || !matches(path, part)) return 0;
  long nth = atomic_fetch_add(&calls, 1) + 1;
  long count = number("IO_FAULT_COUNT");
  if (nth < from || (count != 0 && nth >= from + count)) return 0;
  record(path);
  errno = (int)number("IO_FAULT_ERRNO");
  if (errno == 0) raise(SIGKILL);
  return 1;
}

static int fails_on(const char *call, int fd) {
  if (getenv("IO_FAULT_CALL") == NULL) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int saved = errno;
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = saved;
  if (length < 0) return 0;
  path[length] = '\0';
  return fails(call, path);
}

static void delay(void) {
  long ms = number("IO_FAULT_DELAY");
  const char *condition = getenv("IO_FAULT_WHILE");
  if (ms > 0 && (condition == NULL || access(condition, F_OK) == 0)) {
    struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&time, NULL);
  }
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (real == NULL) real = dlsym(RTLD_NEXT, #name)

static int slow_sync(int fd, int (*real)(int)) {
  const char *path = getenv("IO_FAULT_LOCK");
  static int (*real_open)(const char *, int, ...);
  if (real_open == NULL) real_open = dlsym(RTLD_NEXT, "open");
  /* A lock of flock(2) belongs to an open file: each call has its own. */
  int lock = path == NULL ? -1 : real_open(path, O_RDONLY | O_CLOEXEC);
  if (path != NULL && (lock < 0 || flock(lock, LOCK_EX) != 0)) abort();
  delay();
  int result = fails_on("sync", fd) ? -1 : real(fd);
  int saved = errno;
  if (lock >= 0) close(lock);
  errno = saved;
  return result;
}

int fsync(int fd) {
  REAL(fsync);
  return slow_sync(fd, real);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return slow_sync(fd, real);
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  return fails_on("write", fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  return fails_on("write", fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  return fails_on("write", fd) ? -1 : real(fd, data, size, at);
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  return fails_on("truncate", fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  return fails_on("truncate", fd) ? -1 : real(fd, size);
}

static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && fails("open", path)) return -1;
  return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  REAL(open);
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened(real, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened(real, path, flags, mode);
}

int unlink(const char *path) {
  REAL(unlink);
  return fails("unlink", path) ? -1 : real(path);
}
