/* SPDX-License-Identifier: MIT
 *
 * The socket of the control channel: whose it is, who removes it. */
#include "control/control.h"
#include "os/os_socket.h"
#include "unit/unit.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hak_channelXXXXXX";
static char path[64];

static void *open_channel(void *failure) {
    *(const char **)failure = hak_control_open(path);
    return NULL;
}

/* In a thread, which gets descriptors of its own. Its end closes the socket, somewhat later than it
 * can be joined; the file stays. */
static const char *opened(void) {
    const char *failure = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_channel, &failure), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    while (failure == NULL && !hak_os_is_deserted(path)) {
        hak_os_sleep(1000000);
    }
    return failure;
}

static bool is_there(void) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* The first process of a namespace may have the ID that its parent has in another one. */
static void child_with_the_parents_id_leaves_its_socket(void **state) {
    (void)state;
    if (opened() != NULL) {
        skip(); /* no close_range */
    }
    hak_control_after_fork();
    hak_control_remove();
    assert_true(is_there());
    assert_null(opened()); /* nobody listens: it is replaced */
    hak_control_remove();
    assert_false(is_there());
}

static void path_of_the_longest_option_fits(void **state) {
    (void)state;
    char pattern[256], made[HAK_CONTROL_PATH_BYTES];
    memset(pattern, '/', sizeof pattern);
    for (unsigned i = 0; i + 2 < sizeof pattern; i += 2) {
        memcpy(pattern + 1 + i, "%p", 2);
    }
    pattern[255] = '\0';
    assert_true(hak_control_path(pattern, made, sizeof made));
    assert_true(127 * strlen("4294967295") + 1 < sizeof made);
    assert_null(strchr(made, '%'));
}

static int make_folder(void **state) {
    (void)state;
    (void)snprintf(path, sizeof path, "%s/s", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_with_the_parents_id_leaves_its_socket),
        cmocka_unit_test(path_of_the_longest_option_fits),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
