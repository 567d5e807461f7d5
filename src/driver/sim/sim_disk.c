/* SPDX-License-Identifier: MIT */
/*
 * The disk: files by name, in memory. Opens, reads and writes take the disk one after the other;
 * who waits for it moves a virtual clock as any other waiting call does. Bytes move at the end of
 * that time.
 */
#include "driver/sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT_ALIGN 4096u
/* Above what the system gives out. */
#define FIRST_DESCRIPTOR (1 << 24)

/* Referenced by its name and by each open descriptor. */
typedef struct tn__sim_file {
    struct tn__sim_file *next;
    uint32_t refs;
    uint64_t bytes;
    unsigned char *data;
    char path[];
} file;

typedef struct descriptor {
    file *file;
    uint32_t flags;
} descriptor;

/* Files. */

static void file_drop(file *f) {
    if (--f->refs > 0)
        return;
    tn__sim_free(f->data);
    tn__sim_free(f);
}

static file **link_of(tn_sim *sim, const char *path) {
    file **link = &sim->files;

    while (*link != NULL && strcmp((*link)->path, path) != 0)
        link = &(*link)->next;
    return link;
}

static file *file_new(const char *path, const void *data, uint64_t bytes) {
    size_t length = strlen(path) + 1;
    file *f = tn__sim_alloc(1, sizeof(*f) + length);

    if (f == NULL)
        return NULL;
    f->data = tn__sim_alloc(bytes > 0 ? bytes : 1, 1);
    if (f->data == NULL) {
        tn__sim_free(f);
        return NULL;
    }
    if (data != NULL && bytes > 0)
        memcpy(f->data, data, bytes);
    memcpy(f->path, path, length);
    f->bytes = bytes;
    f->refs = 1;
    return f;
}

tn_status tn_sim_file_put(tn_sim *sim, const char *path, const void *data, uint64_t bytes) {
    file **link;
    file *old;
    file *f;

    if (sim == NULL)
        return tn__sim_null();
    if (path == NULL)
        return tn__fail(TN_ERR_KIND, "`path` is NULL");
    f = bytes <= SIZE_MAX ? file_new(path, data, bytes) : NULL;
    if (f == NULL)
        return tn__fail(TN_ERR_HOST_MEMORY, "no memory for a file of %llu bytes",
                        (unsigned long long)bytes);
    tn__lock(&sim->lock);
    link = link_of(sim, path);
    old = *link;
    f->next = old != NULL ? old->next : NULL;
    *link = f;
    if (old != NULL)
        file_drop(old);
    tn__unlock(&sim->lock);
    return TN_OK;
}

void tn__sim_disk_fini(tn_sim *sim) {
    uint32_t i;

    for (i = 0; i < sim->descriptors.count; i++) {
        descriptor *d = sim->descriptors.objects[i];

        if (d != NULL) {
            file_drop(d->file);
            tn__sim_free(d);
        }
    }
    tn__sim_slots_fini(&sim->descriptors);
    while (sim->files != NULL) {
        file *f = sim->files;

        sim->files = f->next;
        file_drop(f);
    }
}

static descriptor *descriptor_of(tn_sim *sim, int number) {
    uint32_t index = (uint32_t)number - FIRST_DESCRIPTOR;

    if (number < FIRST_DESCRIPTOR || index >= sim->descriptors.count)
        return NULL;
    return sim->descriptors.objects[index];
}

/* Calls. */

/* Begin a call: lock, count, faults. Not 0: the errno it fails with. The lock is held on return. */
static int enter(tn_sim *sim, uint32_t entry, int number, tn_sim_fault *fault) {
    const descriptor *d;
    uint32_t flags = 0;

    tn__lock(&sim->lock);
    *fault = (tn_sim_fault)TN_SIM_FAULT_INIT;
    tn__sim_count(sim, entry, NULL);
    if (tn__sim_inside(sim))
        return EDEADLK;
    tn__sim_run_due(sim);
    d = descriptor_of(sim, number);
    if (d != NULL && (d->flags & TN_SIM_FILE_DIRECT))
        flags |= TN_SIM_FAULT_DIRECT;
    if (!tn__sim_strike(sim, entry, TN_SIM_ANY_DEVICE, TN_SIM_ANY_DEVICE, flags, fault))
        return 0;
    if (fault->stall_ns > 0)
        tn__sim_pass(sim, fault->stall_ns);
    if (fault->status == TN_OK)
        return 0;
    return fault->native_code > 0 && fault->native_code <= INT32_MAX ? (int)fault->native_code
                                                                     : EIO;
}

static int64_t leave(tn_sim *sim, int code, int64_t result) {
    tn__unlock(&sim->lock);
    if (code == 0)
        return result;
    errno = code;
    return -1;
}

/* Take the disk for a while, behind whoever has it. */
static void take_time(tn_sim *sim, uint64_t bytes) {
    unsigned __int128 ns = sim->machine.seek_ns;
    uint64_t now = tn__sim_now(sim);
    uint64_t start = sim->disk_free_ns > now ? sim->disk_free_ns : now;
    uint64_t end;

    if (sim->machine.disk_rate > 0)
        ns += ((unsigned __int128)bytes * 1000000000u + sim->machine.disk_rate - 1) /
              sim->machine.disk_rate;
    if (ns > (unsigned __int128)INT64_MAX)
        ns = (unsigned __int128)INT64_MAX;
    end = tn__add_capped(start, (uint64_t)ns);
    sim->disk_free_ns = end;
    sim->disk.busy_ns += (uint64_t)ns;
    tn__sim_pass_until(sim, end);
}

static int open_now(tn_sim *sim, const char *path, uint32_t flags, int64_t *out) {
    file *f = *link_of(sim, path);
    descriptor *d;
    uint32_t index;

    if (f == NULL)
        return ENOENT;
    d = tn__sim_alloc(1, sizeof(*d));
    if (d == NULL || !tn__sim_slot_take(&sim->descriptors, d, &index)) {
        tn__sim_free(d);
        return ENOMEM;
    }
    f->refs++;
    d->file = f;
    d->flags = flags;
    sim->disk.opens++;
    *out = FIRST_DESCRIPTOR + (int64_t)index;
    return 0;
}

int tn_sim_file_open(tn_sim *sim, const char *path, uint32_t flags) {
    tn_sim_fault fault;
    int64_t number = -1;
    int code = enter(sim, TN_SIM_FILE_OPEN, -1, &fault);

    if (code == 0 && (path == NULL || (flags & ~(uint32_t)TN_SIM_FILE_DIRECT) != 0))
        code = EINVAL;
    if (code == 0) {
        take_time(sim, 0);
        code = open_now(sim, path, flags, &number);
    }
    return (int)leave(sim, code, number);
}

int tn_sim_file_stat(tn_sim *sim, int number, uint64_t *out_bytes) {
    tn_sim_fault fault;
    int code = enter(sim, TN_SIM_FILE_STAT, number, &fault);
    const descriptor *d = descriptor_of(sim, number);

    if (code == 0 && d == NULL)
        code = EBADF;
    if (code == 0 && out_bytes == NULL)
        code = EFAULT;
    if (code == 0)
        *out_bytes = d->file->bytes;
    return (int)leave(sim, code, 0);
}

static int misaligned(const descriptor *d, const void *memory, uint64_t bytes, uint64_t offset) {
    uint64_t bits = (uint64_t)(uintptr_t)memory | bytes | offset;

    return (d->flags & TN_SIM_FILE_DIRECT) && bits % DIRECT_ALIGN != 0 ? EINVAL : 0;
}

/* How many of `bytes` from `offset` the file has. */
static uint64_t inside(const file *f, uint64_t bytes, uint64_t offset) {
    uint64_t left = offset < f->bytes ? f->bytes - offset : 0;

    return bytes < left ? bytes : left;
}

/* What all reads and writes check; 0: the file is referenced, the bytes are cut to it. */
static int begin(tn_sim *sim, int number, const void *memory, uint64_t *bytes, uint64_t offset,
                 file **out, bool *out_direct) {
    const descriptor *d = descriptor_of(sim, number);
    int code = d != NULL ? misaligned(d, memory, *bytes, offset) : EBADF;

    if (code == 0 && memory == NULL && *bytes > 0)
        code = EFAULT;
    if (code != 0)
        return code;
    *bytes = inside(d->file, *bytes, offset);
    *out_direct = (d->flags & TN_SIM_FILE_DIRECT) != 0;
    *out = d->file;
    d->file->refs++;
    return 0;
}

static void deliver(const file *f, const tn_sim_fault *fault, unsigned char *to, uint64_t bytes,
                    uint64_t offset) {
    if (bytes == 0)
        return;
    memcpy(to, f->data + offset, bytes);
    if (fault->flags & TN_SIM_FAULT_WRONG)
        to[0] ^= 0xff;
}

int64_t tn_sim_file_read(tn_sim *sim, int number, void *to, uint64_t bytes, uint64_t offset) {
    tn_sim_fault fault;
    bool direct = false;
    file *f = NULL;
    int code = enter(sim, TN_SIM_FILE_READ, number, &fault);

    if (code == 0)
        code = begin(sim, number, to, &bytes, offset, &f, &direct);
    if (code != 0)
        return leave(sim, code, -1);
    if ((fault.flags & TN_SIM_FAULT_SHORT) && bytes > 1)
        bytes /= 2;
    take_time(sim, bytes);
    deliver(f, &fault, to, bytes, offset);
    file_drop(f);
    sim->disk.reads++;
    sim->disk.direct_reads += direct;
    sim->disk.bytes_read += bytes;
    return leave(sim, 0, (int64_t)bytes);
}

int64_t tn_sim_file_write(tn_sim *sim, int number, const void *from, uint64_t bytes,
                          uint64_t offset) {
    tn_sim_fault fault;
    bool direct = false;
    file *f = NULL;
    int code = enter(sim, TN_SIM_FILE_WRITE, number, &fault);

    if (code == 0)
        code = begin(sim, number, from, &bytes, offset, &f, &direct);
    if (code != 0)
        return leave(sim, code, -1);
    take_time(sim, bytes);
    if (bytes > 0)
        memcpy(f->data + offset, from, bytes);
    file_drop(f);
    sim->disk.writes++;
    sim->disk.bytes_written += bytes;
    return leave(sim, 0, (int64_t)bytes);
}

int tn_sim_file_close(tn_sim *sim, int number) {
    tn_sim_fault fault;
    int code = enter(sim, TN_SIM_FILE_CLOSE, number, &fault);
    descriptor *d = descriptor_of(sim, number);

    if (d == NULL)
        return (int)leave(sim, code != 0 ? code : EBADF, -1);
    tn__sim_slot_drop(&sim->descriptors, (uint32_t)number - FIRST_DESCRIPTOR);
    file_drop(d->file);
    tn__sim_free(d);
    return (int)leave(sim, code, 0);
}

tn_status tn_sim_read_disk(tn_sim *sim, tn_sim_disk *out) {
    tn_status status = tn__struct_check_out(out, sizeof(size_t), "tn_sim_disk");
    tn_sim_disk figures;

    if (status == TN_OK && sim == NULL)
        status = tn__sim_null();
    if (status != TN_OK)
        return status;
    tn__lock(&sim->lock);
    figures = sim->disk;
    figures.open_descriptors = sim->descriptors.live;
    tn__unlock(&sim->lock);
    tn__struct_out(out, &figures, sizeof(figures));
    return TN_OK;
}
