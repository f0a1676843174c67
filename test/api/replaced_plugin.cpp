// SPDX-License-Identifier: MIT
//
// A plugin that uses operators new and delete, perhaps with a library that replaces them.
#include <new>

extern "C" {

bool replaced_early() __attribute__((weak));

bool replaced_plugin_works() {
    int *volatile one = new int(3);
    int *volatile many = new int[100]();
    int *volatile quiet = new (std::nothrow) int(4);
    bool is_right = *one == 3 && many[99] == 0 && *quiet == 4;
    is_right = is_right && (replaced_early == nullptr || replaced_early());
    delete one;
    delete[] many;
    delete quiet;
    return is_right;
}
}
