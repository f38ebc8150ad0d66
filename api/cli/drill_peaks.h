/* drill_peaks.h - the greatest that had been announced at any place of a history. */
#ifndef PAWL_CLI_DRILL_PEAKS_H
#define PAWL_CLI_DRILL_PEAKS_H

#include "api/cli/drill_history.h"

struct drill_peak {
    uint64_t told;         /* from this place on */
    int64_t token, epoch;  /* the greatest (epoch, token) */
    int64_t any_token;     /* the greatest number, whatever the epoch */
    uint64_t latest_begun; /* the latest beginning */
};

/* All zero: empty. */
struct drill_peaks {
    struct drill_peak *at;
    size_t count, room;
};

/* Events are added in the order in which they were told. */
void drill_peaks_add(struct drill_peaks *peaks, const struct drill_event *event);
/* Of all that was told before this place; zeros when there is none. */
struct drill_peak drill_peaks_before(const struct drill_peaks *peaks, uint64_t place);
void drill_peaks_done(struct drill_peaks *peaks);

/* Tokens compare as (epoch, token). */
bool drill_is_above(int64_t epoch, int64_t token, int64_t other_epoch, int64_t other_token);

#endif
