/* probe.c - what upstreams have answered to the last probes of this process (forward/look.c).
 *
 * For operators who look at open intents. In memory alone, and only the latest: nothing rests on it. */
#include <stdio.h>
#include <string.h>

#include "gateway/intent/intent.h"

/* Whose intent it is, and its number there; never that of another. */
static void probe_key(struct bytes text, char key[PROBE_KEY_SIZE])
{
    struct bytes gateway = intent_part(text, INTENT_GATEWAY), id = intent_part(text, INTENT_ID);
    struct bytes incarnation = intent_part(text, INTENT_INCARNATION);

    snprintf(key, PROBE_KEY_SIZE, "%.*s %.*s %.*s", (int)gateway.len, gateway.at, (int)incarnation.len,
             incarnation.at, (int)id.len, id.at);
}

/* The place of this intent; NULL: it was not probed, or too many others since. */
static struct probe *probe_find(struct probes *probes, const char *key)
{
    for (unsigned i = 0; i < PROBES_KEPT; i++)
        if (strcmp(probes->kept[i].key, key) == 0)
            return &probes->kept[i];
    return NULL;
}

void probes_note(struct probes *probes, struct bytes text, int64_t at_ms, const char *said)
{
    char key[PROBE_KEY_SIZE];
    struct probe *probe;

    probe_key(text, key);
    pthread_mutex_lock(&probes->mutex);
    probe = probe_find(probes, key);
    if (probe == NULL)
        probe = &probes->kept[probes->next++ % PROBES_KEPT];
    memcpy(probe->key, key, sizeof(key));
    probe->at_ms = at_ms;
    snprintf(probe->said, sizeof(probe->said), "%s", said);
    pthread_mutex_unlock(&probes->mutex);
}

void probes_write(struct probes *probes, struct bytes text, struct json_out *json)
{
    char key[PROBE_KEY_SIZE];
    const struct probe *probe;

    probe_key(text, key);
    pthread_mutex_lock(&probes->mutex);
    probe = probe_find(probes, key);
    if (probe == NULL) {
        json_null(json, "probe");
    } else {
        json_object(json, "probe");
        json_int(json, "at_ms", probe->at_ms);
        json_text(json, "said", bytes_of(probe->said));
        json_object_end(json);
    }
    pthread_mutex_unlock(&probes->mutex);
}
