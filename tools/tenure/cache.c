/* SPDX-License-Identifier: MIT */
#include "cache.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { VERSION = 1, PIECE_BYTES = 1 << 18 };

/* At the start of a file, in the byte order of the machine that wrote it: it is only a cache. */
struct header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t content_bytes, seed, tenant, name_hash, checksum;
    uint64_t header_checksum; /* of everything before */
};

_Static_assert(sizeof(struct header) == CACHE_HEADER_BYTES, "the header has no holes");

static struct header header_for(struct content_name name, uint64_t bytes, uint64_t checksum) {
    struct header header = {.magic = "tenure\r\n",
                            .version = VERSION,
                            .header_bytes = CACHE_HEADER_BYTES,
                            .content_bytes = bytes,
                            .seed = name.seed,
                            .tenant = name.tenant,
                            .name_hash = content_hash(name),
                            .checksum = checksum};

    header.header_checksum = XXH3_64bits(&header, offsetof(struct header, header_checksum));
    return header;
}

/* mkdir -p; true if the directory is there in the end. */
static bool make_directories(char *path) {
    struct stat status;

    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777); /* the last one tells whether it worked */
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return false;
    }
    if (stat(path, &status) != 0) {
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return access(path, R_OK | W_OK | X_OK) == 0;
}

/* Below /tmp anyone could have put something there first. */
static bool is_mine(const char *path) {
    struct stat status;

    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static char *default_directory(void) {
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;

    if (base != NULL && base[0] == '/') {
        path = text_format("%s/tenure", base);
    } else if (home != NULL && home[0] == '/') {
        path = text_format("%s/.cache/tenure", home);
    }
    if (path != NULL && make_directories(path)) {
        return path;
    }
    free(path);
    path = text_format("/tmp/tenure-cache-%lu", (unsigned long)geteuid());
    (void)mkdir(path, 0700);
    if (is_mine(path) && make_directories(path)) {
        return path;
    }
    free(path);
    return NULL;
}

bool cache_open(struct cache *cache, const char *directory) {
    *cache = (struct cache){0};
    if (directory == NULL) {
        cache->directory = default_directory();
        if (cache->directory == NULL) {
            complain("no cache directory can be written; name one with --cache");
            return false;
        }
        return true;
    }
    if (directory[0] == '\0') {
        complain("--cache: the name is empty");
        return false;
    }
    cache->directory = text_copy(directory);
    if (!make_directories(cache->directory)) {
        complain("cache directory %s: %s", directory, strerror(errno));
        cache_close(cache);
        return false;
    }
    return true;
}

void cache_close(struct cache *cache) {
    free(cache->directory);
    cache->directory = NULL;
}

/* Whether the file is there and its header is the one we would write. */
static bool file_fits(const char *path, struct content_name name, uint64_t bytes,
                      uint64_t *out_checksum) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct header header;
    struct header wanted;
    struct stat status;
    bool fits = false;

    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) == 0 && status.st_size >= 0 &&
        (uint64_t)status.st_size == bytes + CACHE_HEADER_BYTES &&
        pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header) {
        wanted = header_for(name, bytes, header.checksum);
        fits = memcmp(&header, &wanted, sizeof header) == 0;
        *out_checksum = header.checksum;
    }
    close(fd);
    return fits;
}

static bool write_all(int fd, const void *from, size_t bytes) {
    const char *place = from;

    while (bytes > 0) {
        ssize_t written = write(fd, place, bytes);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        place += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* Header (without its checksum yet), content, header. */
static bool write_content(int fd, struct content_name name, uint64_t bytes,
                          uint64_t *out_checksum) {
    struct generator generator = content_generator(name);
    struct header header = {.magic = ""};
    char *piece = memory_new(PIECE_BYTES, 1);
    XXH3_state_t *hash = XXH3_createState();
    bool good =
        hash != NULL && XXH3_64bits_reset(hash) == XXH_OK && write_all(fd, &header, sizeof header);

    for (uint64_t done = 0; good && done < bytes; done += PIECE_BYTES) {
        size_t part = bytes - done < PIECE_BYTES ? (size_t)(bytes - done) : PIECE_BYTES;

        generator_fill(&generator, piece, part);
        good = XXH3_64bits_update(hash, piece, part) == XXH_OK && write_all(fd, piece, part);
    }
    if (good) {
        *out_checksum = XXH3_64bits_digest(hash);
        header = header_for(name, bytes, *out_checksum);
        good = pwrite(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
    }
    XXH3_freeState(hash);
    free(piece);
    return good;
}

static bool make_file(struct cache *cache, const char *path, struct content_name name,
                      uint64_t bytes, uint64_t *out_checksum) {
    char *part = text_format("%s.%ld.part", path, (long)getpid());
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write_content(fd, name, bytes, out_checksum);

    if (fd >= 0 && close(fd) != 0) {
        good = false;
    }
    if (!good || rename(part, path) != 0) {
        int error = errno;

        complain("%s: %s (%" PRIu64 " bytes for %s were to be written)", part, strerror(error),
                 bytes + CACHE_HEADER_BYTES, name.id);
        (void)unlink(part);
        free(part);
        return false;
    }
    free(part);
    cache->made_count++;
    cache->made_bytes += bytes;
    return true;
}

bool cache_file_ready(struct cache *cache, struct content_name name, uint64_t bytes,
                      struct cache_file *out_file) {
    struct cache_file file = {.path = text_format("%s/%016" PRIx64 "-%" PRIu64 ".value",
                                                  cache->directory, content_hash(name), bytes)};

    if (!file_fits(file.path, name, bytes, &file.checksum) &&
        !make_file(cache, file.path, name, bytes, &file.checksum)) {
        free(file.path);
        return false;
    }
    *out_file = file;
    return true;
}
