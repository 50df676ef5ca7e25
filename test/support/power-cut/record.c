/*
 * Records what a process that is started with LD_PRELOAD does to the files of a folder, in order.
 *
 *   IO_RECORD_FOLDER  the folder, as an absolute path; files in folders below it are not recorded
 *   IO_RECORD_FILE    gets one record per call: a line "KIND INODE OFFSET LENGTH NAME", then LENGTH bytes
 *
 * KIND is create, unlink, rename (the new name follows), write, truncate (LENGTH is 0, OFFSET the size), begin and sync (begin and end of a
 * sync of a file, OFFSET is the thread; of the folder: syncdir at the end). A sync takes up to 4 ms, so that other threads write meanwhile. SQLite and Node call these functions by the symbols of the C library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) \
  static __typeof__(name) *real; \
  if (real == NULL) real = dlsym(RTLD_NEXT, #name)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t raw_write(int fd, const void *data, size_t size) {
  static ssize_t (*real_write)(int, const void *, size_t);
  if (real_write == NULL) real_write = dlsym(RTLD_NEXT, "write");
  return real_write(fd, data, size);
}

static void put(const char *kind, unsigned long inode, long long offset, size_t length, const char *name, const void *data) {
  static int file = -1;
  static int (*real_open)(const char *, int, ...);
  int saved = errno;
  if (real_open == NULL) real_open = dlsym(RTLD_NEXT, "open");
  if (file < 0) file = real_open(getenv("IO_RECORD_FILE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char line[512];
  int size = snprintf(line, sizeof line, "%s %lu %lld %zu %s\n", kind, inode, offset, length, name);
  if (raw_write(file, line, size) != size || (length > 0 && raw_write(file, data, length) != (ssize_t)length)) abort();
  errno = saved;
}

/* The name of a file in the folder; "" for the folder itself, NULL for any other path. */
static const char *inside(const char *path) {
  const char *folder = getenv("IO_RECORD_FOLDER");
  if (folder == NULL || strncmp(path, folder, strlen(folder)) != 0) return NULL;
  const char *rest = path + strlen(folder);
  if (*rest == '\0') return "";
  return *rest == '/' && strchr(rest + 1, '/') == NULL ? rest + 1 : NULL;
}

/* The same for an open file, with its inode. */
static const char *of(int fd, char *path, unsigned long *inode) {
  char link[64];
  struct stat status;
  int saved = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, 4095);
  const char *name = NULL;
  if (length >= 0) {
    path[length] = '\0';
    name = inside(path);
    if (name != NULL && fstat(fd, &status) == 0) *inode = status.st_ino;
  }
  errno = saved;
  return name;
}

/* A record is written under the lock together with its call, so that records of threads are in the order of the calls. */
#define RECORDED(type, fd, call, kind, offset, length, data) \
  char path[4096]; \
  unsigned long inode = 0; \
  const char *name = of(fd, path, &inode); \
  if (name == NULL) return call; \
  pthread_mutex_lock(&lock); \
  type result = call; \
  if (result >= 0) put(kind, inode, offset, length, name, data); \
  pthread_mutex_unlock(&lock); \
  return result

/* Records the begin of a sync of a file, and waits. */
static void begin(int fd) {
  static atomic_uint count;
  char path[4096];
  unsigned long inode = 0;
  const char *name = of(fd, path, &inode);
  if (name == NULL || *name == '\0') return;
  pthread_mutex_lock(&lock);
  put("begin", inode, gettid(), 0, name, NULL);
  pthread_mutex_unlock(&lock);
  /* In turns: short ones, for which the store waits, and long ones. */
  unsigned n = atomic_fetch_add(&count, 1);
  if ((n / 24) % 2 == 1) usleep(n * 2654435761u % 4000);
}

static int synced(int fd, int (*real)(int)) {
  begin(fd);
  RECORDED(int, fd, real(fd), *name == '\0' ? "syncdir" : "sync", gettid(), 0, NULL);
}

int fsync(int fd) {
  REAL(fsync);
  return synced(fd, real);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return synced(fd, real);
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  RECORDED(ssize_t, fd, real(fd, data, size), "write", lseek(fd, 0, SEEK_CUR) - result, (size_t)result, data);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  RECORDED(ssize_t, fd, real(fd, data, size, at), "write", (long long)at, (size_t)result, data);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  RECORDED(ssize_t, fd, real(fd, data, size, at), "write", (long long)at, (size_t)result, data);
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  RECORDED(int, fd, real(fd, size), "truncate", (long long)size, 0, NULL);
}

int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  RECORDED(int, fd, real(fd, size), "truncate", (long long)size, 0, NULL);
}

int unlink(const char *path) {
  REAL(unlink);
  const char *name = inside(path);
  if (name == NULL) return real(path);
  pthread_mutex_lock(&lock);
  int result = real(path);
  if (result == 0) put("unlink", 0, 0, 0, name, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  const char *name = inside(from), *next = inside(to);
  if (name == NULL || next == NULL) return real(from, to);
  pthread_mutex_lock(&lock);
  int result = real(from, to);
  if (result == 0) put("rename", 0, 0, strlen(next), name, next);
  pthread_mutex_unlock(&lock);
  return result;
}

static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  const char *name = (flags & O_CREAT) != 0 || (flags & O_TRUNC) != 0 ? inside(path) : NULL;
  if (name == NULL) return real(path, flags, mode);
  pthread_mutex_lock(&lock);
  int is_new = access(path, F_OK) != 0;
  int fd = real(path, flags, mode);
  struct stat status;
  if (fd >= 0 && fstat(fd, &status) == 0) {
    if (is_new) put("create", status.st_ino, 0, 0, name, NULL);
    else if ((flags & O_TRUNC) != 0) put("truncate", status.st_ino, 0, 0, name, NULL);
  }
  pthread_mutex_unlock(&lock);
  return fd;
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
