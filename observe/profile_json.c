/* SPDX-License-Identifier: MIT
 *
 * The profile as JSON: docs/schema/profile.schema.json. */
#include "profile.h"

#include "base/bits.h"
#include "profile/chance.h"
#include "put.h"

enum { JSON_THREADS = 8, JSON_SIZES = 64 /* powers of two */ };

static void json_sum(const hak_sink_t *sink, const char *name, const hak_profile_sum_t *sum) {
    hak_sink_format(sink, ",\"%s\":{\"samples\":%l,\"objects\":%l,\"bytes\":%l,\"raw_bytes\":%l}",
                    name, sum->samples, hak_chance_whole(sum->objects),
                    hak_chance_whole(sum->bytes), sum->raw_bytes);
}

/* --- a site ----------------------------------------------------------------------------------- */

/* The lower bound of a lifetime's bucket. */
static uint64_t lifetime_ns(unsigned bucket) {
    uint64_t octave = 1ull << (HAK_PROFILE_LIFETIME_LOG2 + bucket / 2);
    return bucket == 0 ? 0 : bucket % 2 == 0 ? octave : octave + octave / 2;
}

/* The lifetime that `part` of 100 freed samples did not exceed, about: the middle of its bucket. */
static uint64_t lifetime_part(const hak_profile_site_t *site, uint64_t freed, unsigned part) {
    uint64_t rank = (freed * part + 99) / 100, passed = 0;
    unsigned bucket = 0;
    while (bucket + 1 < HAK_PROFILE_LIFETIMES && passed + site->lifetime[bucket] < rank) {
        passed += site->lifetime[bucket++];
    }
    uint64_t low = lifetime_ns(bucket);
    return freed == 0 ? 0 : low + (lifetime_ns(bucket + 1) - low) / 2;
}

static void json_lifetimes(const hak_sink_t *sink, const hak_profile_site_t *site,
                           uint64_t oldest_ns) {
    uint64_t freed = 0;
    for (unsigned i = 0; i < HAK_PROFILE_LIFETIMES; i++) {
        freed += site->lifetime[i];
    }
    hak_sink_format(sink,
                    ",\n  \"lifetimes_ns\":{\"freed\":%l,\"p10\":%l,\"p50\":%l,\"p90\":%l,"
                    "\"p99\":%l,\"censored\":%l,\"oldest_ns\":%l,\"temporary\":%l}",
                    freed, lifetime_part(site, freed, 10), lifetime_part(site, freed, 50),
                    lifetime_part(site, freed, 90), lifetime_part(site, freed, 99),
                    site->in_use.samples, oldest_ns, site->temporary);
}

typedef struct json_thread {
    uint32_t id;
    double bytes;
} json_thread_t;

/* Keeps the largest, in descending order. */
static void threads_note(json_thread_t *thread, unsigned *count, json_thread_t found) {
    unsigned at = *count < JSON_THREADS ? (*count)++ : JSON_THREADS;
    while (at > 0 && thread[at - 1].bytes < found.bytes) {
        if (at < JSON_THREADS) {
            thread[at] = thread[at - 1];
        }
        at--;
    }
    if (at < JSON_THREADS) {
        thread[at] = found;
    }
}

static void json_threads(const hak_sink_t *sink, const json_thread_t *thread, unsigned count) {
    hak_sink_format(sink, ",\n  \"threads\":[");
    for (unsigned i = 0; i < count; i++) {
        hak_sink_format(sink, "%s{\"tid\":%u,\"bytes\":%l}", i == 0 ? "" : ",", thread[i].id,
                        hak_chance_whole(thread[i].bytes));
    }
    hak_sink_format(sink, "]");
}

/* Blocks in use of 2^n to 2^(n+1) - 1 bytes. */
static void json_sizes(const hak_sink_t *sink, const hak_profile_sum_t size[JSON_SIZES]) {
    const char *comma = "";
    hak_sink_format(sink, ",\n  \"sizes\":[");
    for (unsigned i = 0; i < JSON_SIZES; i++) {
        if (size[i].samples != 0) {
            hak_sink_format(sink, "%s{\"from\":%l,\"samples\":%l,\"objects\":%l,\"bytes\":%l}",
                            comma, (uint64_t)1 << i, size[i].samples,
                            hak_chance_whole(size[i].objects), hak_chance_whole(size[i].bytes));
            comma = ",";
        }
    }
    hak_sink_format(sink, "]");
}

static void size_note(hak_profile_sum_t *size, const hak_profile_sample_t *sample) {
    size->samples++;
    size->objects += sample->weight;
    size->bytes += sample->weight * (double)sample->bytes;
}

/* The figures that are sums over the samples in use, which are sorted by thread. */
static void json_samples(const hak_sink_t *sink, const obs_copy_t *copy,
                         const hak_profile_site_t *site) {
    json_thread_t thread[JSON_THREADS], current = {0};
    hak_profile_sum_t size[JSON_SIZES] = {0};
    unsigned thread_count = 0;
    size_t count, first = obs_copy_samples(copy, site, &count);
    uint64_t oldest_ns = 0;
    double pinned = 0;
    for (size_t i = first; i < first + count; i++) {
        const hak_profile_sample_t *sample = copy->sample[i];
        oldest_ns = hak_most(oldest_ns, hak_excess(copy->now_ns, sample->time_ns));
        pinned += obs_copy_pinned(sample);
        size_note(&size[hak_log2(sample->bytes | 1)], sample);
        if (sample->thread_id != current.id && current.id != 0) {
            threads_note(thread, &thread_count, current);
            current.bytes = 0;
        }
        current.id = sample->thread_id;
        current.bytes += sample->weight * (double)sample->bytes;
    }
    if (current.id != 0) {
        threads_note(thread, &thread_count, current);
    }
    hak_sink_format(sink, ",\n  \"requested_bytes\":%l,\"pinned_bytes\":%l,\"variance\":%l",
                    hak_chance_whole(site->requested_bytes), hak_chance_whole(pinned),
                    hak_chance_whole(site->variance));
    json_lifetimes(sink, site, oldest_ns);
    json_threads(sink, thread, thread_count);
    json_sizes(sink, size);
}

static void json_site(const hak_sink_t *sink, const obs_copy_t *copy,
                      const hak_profile_site_t *site) {
    hak_sink_format(sink, "{\"stack\":[");
    for (uint32_t i = 0; i < site->depth; i++) {
        hak_sink_format(sink, "%s\"%x\"", i == 0 ? "" : ",", (uint64_t)site->stack[i]);
    }
    hak_sink_format(sink, "],\"label\":\"");
    if (site->label != NULL) {
        hak_sink_format(sink, "%p", site->label);
    }
    hak_sink_format(sink, "\"");
    json_sum(sink, "inuse", &site->in_use);
    json_sum(sink, "alloc", &site->all);
    json_sum(sink, "peak", obs_copy_peak(copy, site));
    json_samples(sink, copy, site);
    hak_sink_format(sink, "}");
}

/* --- the document ----------------------------------------------------------------------------- */

static void json_modules(const hak_sink_t *sink, const obs_copy_t *copy) {
    static const char digits[] = "0123456789abcdef";
    hak_sink_format(sink, ",\n\"mappings\":[");
    for (size_t i = 0; i < copy->module_count; i++) {
        const obs_module_t *module = &copy->module[i];
        hak_sink_format(sink, "%s{\"start\":\"%x\",\"end\":\"%x\",\"offset\":\"%x\",\"path\":",
                        i == 0 ? "\n" : ",\n", (uint64_t)module->start, (uint64_t)module->end,
                        (uint64_t)module->offset);
        obs_put_quoted(sink, copy->text + module->path);
        hak_sink_format(sink, ",\"build_id\":\"");
        for (uint32_t j = 0; j < module->build_id_bytes; j++) {
            hak_sink_format(sink, "%c%c", digits[module->build_id[j] >> 4],
                            digits[module->build_id[j] & 15]);
        }
        hak_sink_format(sink, "\"}");
    }
    hak_sink_format(sink, "]");
}

static void json_head(const hak_sink_t *sink, const obs_copy_t *copy) {
    const hak_profile_store_t *store = &copy->store;
    hak_sink_format(sink,
                    "{\"profile\":1,\"version\":\"%s\",\"pid\":%u,\"program\":", copy->version,
                    copy->pid);
    obs_put_quoted(sink, copy->program);
    hak_sink_format(sink,
                    ",\n\"time_ns\":%l,\"started_ns\":%l,\"is_on\":%s,\"is_whole\":%s,"
                    "\"rate\":%z",
                    copy->wall_ns, store->started_ns, copy->rate != 0 ? "true" : "false",
                    store->is_whole ? "true" : "false", store->rate);
}

static void json_totals(const hak_sink_t *sink, const obs_copy_t *copy) {
    const hak_profile_store_t *store = &copy->store;
    size_t own_bytes = store->base != NULL ? store->low + (store->bytes - store->high) : 0;
    hak_sink_format(sink,
                    copy->live_bytes == OBS_COPY_UNKNOWN
                        ? ",\n\"exact\":{\"live_bytes\":null,\"live_objects\":null}"
                        : ",\n\"exact\":{\"live_bytes\":%l,\"live_objects\":null}",
                    copy->live_bytes);
    hak_sink_format(sink, ",\"estimate\":{\"live_bytes\":%l,\"sigma_bytes\":%l}",
                    hak_chance_whole(store->live_bytes),
                    hak_chance_whole(obs_square_root(store->variance)));
    hak_sink_format(sink,
                    ",\n\"samples\":{\"live\":%l,\"taken\":%l,\"dropped\":%l,\"sites\":%l,"
                    "\"sites_dropped\":%l,\"own_bytes\":%z}",
                    store->live, store->taken, store->dropped, store->sites, store->sites_dropped,
                    own_bytes);
    uint64_t age_ns = hak_excess(copy->now_ns, store->peak_time_ns);
    hak_sink_format(sink, ",\n\"peak\":{\"time_ns\":%l,\"live_bytes\":%l}",
                    store->peak_time_ns != 0 ? hak_excess(copy->wall_ns, age_ns) : 0,
                    hak_chance_whole(store->peak_bytes));
}

void obs_write_json_copy(const hak_sink_t *sink, const obs_copy_t *copy) {
    json_head(sink, copy);
    json_totals(sink, copy);
    json_modules(sink, copy);
    hak_sink_format(sink, ",\n\"sites\":[");
    const char *comma = "\n";
    for (const hak_profile_site_t *site = obs_copy_next(copy, NULL); site != NULL;
         site = obs_copy_next(copy, site)) {
        hak_sink_format(sink, "%s", comma);
        json_site(sink, copy, site);
        comma = ",\n";
    }
    hak_sink_format(sink, copy->doubt != NULL ? "],\n\"notes\":[\"%s\"]}\n" : "]}\n", copy->doubt);
}
