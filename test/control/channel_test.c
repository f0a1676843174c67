/* SPDX-License-Identifier: MIT
 *
 * The socket of the control channel: whose it is, who may ask, who removes it. */
#include "control/control.h"
#include "double/os_fault.h"
#include "os/socket.h"
#include "unit/unit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* --- who may ask ------------------------------------------------------------------------------ */

static const char *uid_map, *overflow; /* NULL: there is no such file */

static size_t user_files(const char *name, char *buffer, size_t capacity) {
    bool is_map = strcmp(name, "/proc/self/uid_map") == 0;
    const char *text = is_map ? uid_map : overflow;
    if (!is_map && strcmp(name, "/proc/sys/kernel/overflowuid") != 0) {
        return HAK_OS_FAULT_REAL;
    }
    size_t length = text != NULL ? strlen(text) : 0;
    memcpy(buffer, text != NULL ? text : "", length < capacity ? length : capacity);
    return length;
}

/* Whether this process itself, under these texts, is a peer of its own. */
static bool is_accepted(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int listener, peer = -1;
    int length = snprintf(name, sizeof name, "@hak_channel.%ld", (long)getpid());
    memcpy(address.sun_path + 1, name + 1, (size_t)length - 1);
    assert_int_equal(hak_os_listen(name, &listener), HAK_OS_LISTEN_DONE);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length);
    assert_int_equal(connect(client, (struct sockaddr *)&address, bytes), 0);
    assert_true(hak_os_accept(listener, &peer));
    close(client);
    close(listener);
    if (peer >= 0) {
        close(peer);
    }
    return peer >= 0;
}

static void peer_with_the_overflow_id_is_refused_unless_all_users_have_ids(void **state) {
    (void)state;
    static const struct {
        const char *map;
        bool is_all;
    } maps[] = {
        {"         0          0 4294967295\n", true},
        {"0 0 100\n100 200 4294967195\n", true},
        {"         0     100000      65536\n", false},
        {"0 0 4294967294\n", false},
        {"65534 65534 1\n", false},
        {"x 0 4294967295x\n", false},
        {"", false},
        {NULL, false},
    };
    char own[32], other[32];
    (void)snprintf(own, sizeof own, "%lu\n", (unsigned long)geteuid());
    (void)snprintf(other, sizeof other, "%lu\n", (unsigned long)geteuid() + 1);
    hak_os_fault_files(user_files);
    for (size_t i = 0; i < UNIT_COUNT(maps); i++) {
        uid_map = maps[i].map;
        overflow = own;
        UNIT_EXPECT(is_accepted() == maps[i].is_all, "%s", uid_map != NULL ? uid_map : "none");
        overflow = other;
        UNIT_EXPECT(is_accepted(), "%s", uid_map != NULL ? uid_map : "none");
        overflow = NULL; /* 65534 */
        UNIT_EXPECT(is_accepted() == (maps[i].is_all || geteuid() != 65534), "map %zu", i);
    }
    hak_os_fault_files(NULL);
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
        cmocka_unit_test(peer_with_the_overflow_id_is_refused_unless_all_users_have_ids),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
