/* SPDX-License-Identifier: MIT
 *
 * A plugin that brings hakmem, and perhaps another allocator behind it. */
int unloaded_plugin;
