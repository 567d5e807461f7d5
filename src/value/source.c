/* SPDX-License-Identifier: MIT */
/* Registered sources: their checks (M69), their one block of memory, and callbacks. Files are
 * loaded in source_file.c. */
#include <string.h>

#include "value/value_priv.h"

#define PATH_BYTES_MAX 4095u

static tn_status copy_in(tn_source *own, const tn_source *source) {
    return tn__struct_in(own, sizeof *own, TN__SIZE_THROUGH(tn_source, checksum), source,
                         "tn_source");
}

/* ---- Checks ----------------------------------------------------------------------------- */

static tn_status check_path(const char *path) {
    if (!path)
        return tn__fail(TN_ERR_KIND, "the file source has no path");
    if (strnlen(path, PATH_BYTES_MAX + 1) > PATH_BYTES_MAX)
        return tn__fail(TN_ERR_VALUE, "the path is longer than %u bytes", PATH_BYTES_MAX);
    if (tn__blank(path))
        return tn__fail(TN_ERR_VALUE, "the path is blank");
    return TN_OK;
}

static tn_status check_segments(const tn_source *source, const tn_value_spec *spec) {
    uint64_t sum = 0;
    if (source->segment_count == 0)
        return TN_OK;
    if (!source->segment_bytes)
        return tn__fail(TN_ERR_KIND, "segment_bytes is NULL");
    for (size_t i = 0; i < source->segment_count; ++i)
        sum = tn__add_capped(sum, source->segment_bytes[i]);
    if (sum != spec->logical_bytes)
        return tn__fail(TN_ERR_VALUE, "the segments have %llu bytes, the spec %llu",
                        (unsigned long long)sum, (unsigned long long)spec->logical_bytes);
    return TN_OK;
}

static tn_status check_file(const tn_source *source, const tn_value_spec *spec) {
    if (!tn_value_type_is(tn_buffer_type(), spec->type))
        return tn__fail(TN_ERR_KIND, "a file gives buffers, which are not of the spec's type %.64s",
                        spec->type->name);
    tn_status status = check_path(source->path);
    if (status != TN_OK)
        return status;
    if (source->flags & ~(uint32_t)TN_SOURCE_CHECKSUM)
        return tn__fail(TN_ERR_VALUE, "unknown flags 0x%x", source->flags);
    status = check_segments(source, spec);
    if (status != TN_OK)
        return status;
    if (tn__add_capped(source->offset, spec->logical_bytes) > INT64_MAX)
        return tn__fail(TN_ERR_VALUE, "the content would end above INT64_MAX");
    return TN_OK;
}

tn_status tn__source_check(const tn_source *source, const tn_value_spec *spec) {
    tn_source own;
    tn_status status = copy_in(&own, source);
    if (status != TN_OK)
        return status;
    if (own.kind == TN_SOURCE_FILE)
        return check_file(&own, spec);
    if (own.kind != TN_SOURCE_CALLBACK)
        return tn__fail(TN_ERR_KIND, "%u is no kind of source", own.kind);
    if (!own.load)
        return tn__fail(TN_ERR_KIND, "the callback source has no `load`");
    if (own.flags != 0)
        return tn__fail(TN_ERR_VALUE, "a callback source has no flags, but they are 0x%x",
                        own.flags);
    return TN_OK;
}

/* ---- One block per source --------------------------------------------------------------- */

static tn__source *make_callback(const tn_source *own) {
    tn__source *source = tn__zalloc(sizeof *source);
    if (!source)
        return NULL;
    source->kind = own->kind;
    source->callback.load = own->load;
    source->callback.forget = own->forget;
    source->callback.context = own->context;
    return source;
}

static tn__source *make_file(const tn_source *own, const tn_value_spec *spec) {
    size_t count = own->segment_count ? own->segment_count : 1;
    size_t path_bytes = strlen(own->path) + 1;
    if (count > (SIZE_MAX - sizeof(tn__source) - path_bytes) / sizeof(uint64_t))
        return NULL;
    tn__source *source = tn__alloc(sizeof *source + count * sizeof(uint64_t) + path_bytes);
    if (!source)
        return NULL;
    source->kind = own->kind;
    source->flags = own->flags;
    source->file.offset = own->offset;
    source->file.bytes = spec->logical_bytes;
    source->file.checksum = own->checksum;
    source->file.segment_count = count;
    source->tail[0] = spec->logical_bytes;
    if (own->segment_count)
        memcpy(source->tail, own->segment_bytes, count * sizeof(uint64_t));
    memcpy(source->tail + count, own->path, path_bytes);
    return source;
}

tn_status tn__source_create(const tn_source *source, const tn_value_spec *spec, tn__source **out) {
    tn_source own;
    tn_status status = copy_in(&own, source);
    if (status != TN_OK)
        return status;
    tn__source *made = own.kind == TN_SOURCE_FILE ? make_file(&own, spec) : make_callback(&own);
    if (!made)
        return tn__no_memory();
    *out = made;
    return TN_OK;
}

void tn__source_destroy(tn__source *source) {
    if (!source)
        return;
    if (tn__source_is_callback(source) && source->callback.forget) {
        tn__assert_may_wait("forgetting a source");
        source->callback.forget(source->callback.context);
    }
    tn__free(source);
}

void tn__source_abandon(tn__source *source) { tn__free(source); }

bool tn__source_is_callback(const tn__source *source) { return source->kind == TN_SOURCE_CALLBACK; }

/* ---- Loading ---------------------------------------------------------------------------- */

/* The callback's words win over what a call of ours left in the thread's error. */
static tn_status report_callback(const tn__callback *call, tn_status returned,
                                 tn_load_result *result, const tn_load_request *request) {
    tn_status status =
        tn__callback_end(call, returned, TN_ERR_SOURCE, "loading", request->spec.type->name);
    tn_error *error = call->error;
    if (!error)
        return status;
    if (result->native_code != 0)
        error->native_code = result->native_code;
    result->message[sizeof result->message - 1] = '\0';
    if (!tn__blank(result->message))
        memcpy(error->message, result->message, sizeof error->message);
    if (error->handle.index == 0)
        error->handle = request->handle;
    if (error->at.kind == TN_LOCATION_NONE)
        error->at = request->at;
    return status;
}

static tn_status load_callback(const tn__source *source, const tn_load_request *request,
                               tn_payload *out) {
    tn__callback call;
    tn_load_result result = {.size = sizeof result};
    tn__callback_begin(&call);
    tn_status status = source->callback.load(source->callback.context, request, &result);
    if (status != TN_OK)
        return report_callback(&call, status, &result, request);
    (void)tn__callback_end(&call, TN_OK, TN_OK, "", "");
    if (!result.payload.data || !tn__type_valid(result.payload.type))
        return tn__fail(TN_ERR_PAYLOAD, "the source gave %s",
                        result.payload.data ? "a payload without valid type" : "no payload");
    *out = result.payload;
    return TN_OK;
}

tn_status tn__source_load(tn__source *source, const tn_load_request *request,
                          const tn__route *route, tn_payload *out) {
    if (tn__source_is_callback(source))
        return load_callback(source, request, out);
    return tn__source_file_load(source, request, route, out);
}
