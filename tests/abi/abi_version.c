/* SPDX-License-Identifier: MIT */
/* The version is written in two places, version.h and CMakeLists.txt: they agree. */
#include "tn_test.h"

#include "tenure/version.h"

#include <stdio.h>

static void header_and_build_agree(void **state) {
    char text[64];
    (void)state;
    snprintf(text, sizeof text, "%d.%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
    assert_string_equal(text, TN_PROJECT_VERSION);
}

static void library_tells_the_version_of_its_header(void **state) {
    (void)state;
    assert_int_equal(tn_api_version(),
                     TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH);
    assert_int_equal(TN_API_VERSION, tn_api_version());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(header_and_build_agree),
    cmocka_unit_test(library_tells_the_version_of_its_header),
};

TN_TEST_MAIN("abi.version", tests)
