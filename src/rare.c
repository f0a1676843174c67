/* SPDX-License-Identifier: MIT
 *
 * The other translation unit of the products: what a program that asks nothing, and does nothing
 * wrong, never runs. It lies behind all other code (api/place.ld): its pages are not read. */
#define _GNU_SOURCE 1
#include "os/os_guard.c"
#include "os/os_kept.c"
#include "os/os_socket.c"
#include "os/os_trap.c"

#include "large/resident.c"

#include "front/quarantine.c"

#include "conf/show.c"

#include "control/body.c"
#include "control/channel.c"
#include "control/report.c"
#include "control/serve.c"

#include "guard/describe.c"
#include "guard/hunt.c"
#include "guard/module.c"
#include "guard/report.c"
#include "guard/stack.c"

#include "stat/collect.c"
#include "stat/explain.c"
#include "stat/inventory.c"
#include "stat/map.c"
#include "stat/report.c"
#include "stat/report_json.c"
#include "stat/report_metrics.c"
#include "stat/report_summary.c"
#include "stat/report_text.c"
#include "stat/report_xml.c"
#include "stat/residence.c"

#include "api/dlopen.c"
#include "api/entry.c"
