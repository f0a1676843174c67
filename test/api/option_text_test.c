/* SPDX-License-Identifier: MIT
 *
 * The longest text an option takes (HAKMEM_OPTIONS has it) comes back whole. */
#include "expect.h"
#include <hakmem/hakmem.h>

#include <errno.h>
#include <string.h>

enum { LONGEST = 255 };

int main(void) {
    char value[LONGEST + 1] = "kept";
    EXPECT_EQ(hak_option_get("report_file", value, LONGEST), ERANGE);
    EXPECT(strcmp(value, "kept") == 0);
    EXPECT_EQ(hak_option_get("report_file", value, sizeof value), 0);
    EXPECT_EQ(strlen(value), LONGEST);
    EXPECT(value[0] == '/' && strspn(value + 1, "x") == LONGEST - 1);
    return expect_status();
}
