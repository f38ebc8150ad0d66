/* drill_peaks.c - the greatest that had been announced at any place of a history. */
#include "api/cli/drill_peaks.h"

#include <stdlib.h>

#include "api/cli/cli.h"

enum { FIRST_ROOM = 64 };

bool drill_is_above(int64_t epoch, int64_t token, int64_t other_epoch, int64_t other_token)
{
    return epoch > other_epoch || (epoch == other_epoch && token > other_token);
}

void drill_peaks_add(struct drill_peaks *peaks, const struct drill_event *event)
{
    struct drill_peak peak = peaks->count > 0 ? peaks->at[peaks->count - 1] : (struct drill_peak){0};

    if (drill_is_above(event->epoch, event->token, peak.epoch, peak.token)) {
        peak.epoch = event->epoch;
        peak.token = event->token;
    }
    peak.any_token = event->token > peak.any_token ? event->token : peak.any_token;
    peak.latest_begun = event->begun > peak.latest_begun ? event->begun : peak.latest_begun;
    peak.told = event->told;
    if (peaks->count == peaks->room) {
        peaks->room = peaks->room > 0 ? peaks->room * 2 : FIRST_ROOM;
        peaks->at = cli_realloc(peaks->at, peaks->room * sizeof(*peaks->at));
    }
    peaks->at[peaks->count++] = peak;
}

struct drill_peak drill_peaks_before(const struct drill_peaks *peaks, uint64_t place)
{
    size_t low = 0, high = peaks->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (peaks->at[middle].told < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? peaks->at[low - 1] : (struct drill_peak){0};
}

void drill_peaks_done(struct drill_peaks *peaks)
{
    free(peaks->at);
    *peaks = (struct drill_peaks){0};
}
