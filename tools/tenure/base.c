/* SPDX-License-Identifier: MIT */
#include "base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No control character reaches the terminal. */
static void text_make_printable(char *text) {
    for (char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?';
        }
    }
}

void complain(const char *format, ...) {
    char line[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_make_printable(line); /* names from a file end up here */
    fprintf(stderr, "tenure: %s\n", line);
}

static void *checked(void *memory, size_t bytes) {
    if (memory == NULL) {
        complain("out of memory: %zu bytes are not to be had", bytes);
        exit(EXIT_USAGE);
    }
    return memory;
}

void *memory_new(size_t count, size_t bytes_each) {
    if (count == 0) {
        count = 1;
    }
    return checked(calloc(count, bytes_each), count * bytes_each);
}

void *memory_resize(void *old, size_t count, size_t bytes_each) {
    size_t bytes = 0;

    if (__builtin_mul_overflow(count, bytes_each, &bytes)) {
        return checked(NULL, SIZE_MAX);
    }
    return checked(realloc(old, bytes == 0 ? 1 : bytes), bytes);
}

char *text_copy(const char *text) {
    size_t bytes = strlen(text) + 1;

    return memcpy(memory_new(bytes, 1), text, bytes);
}

char *text_printable(const char *text) {
    char *copy = text_copy(text);

    text_make_printable(copy);
    return copy;
}

char *text_format(const char *format, ...) {
    va_list arguments;
    int length = 0;
    char *text = NULL;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text = memory_new((size_t)length + 1, 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void *memory_reserve(void *array, size_t *capacity, size_t wanted, size_t bytes_each) {
    size_t next = *capacity == 0 ? 16 : *capacity;

    if (wanted <= *capacity) {
        return array;
    }
    while (next < wanted) {
        next *= 2;
    }
    array = memory_resize(array, next, bytes_each);
    *capacity = next;
    return array;
}

int output_finish(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: %s", strerror(errno));
        return EXIT_USAGE;
    }
    return EXIT_GOOD;
}
