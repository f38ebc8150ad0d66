/* state_record.h - a content of a state directory for the tests of it. */
#ifndef PAWL_TESTS_STATE_RECORD_H
#define PAWL_TESTS_STATE_RECORD_H

#include "shared/member/state_file.h"
#include "tests/unit/check.h"

/* One content for each floor, of another length each time. */
static inline struct state_record record_of(int64_t floor)
{
    struct state_record record;

    memset(&record, 0, sizeof(record));
    memcpy(record.member, "member_-01234567", MEMBER_ID_CHARS);
    memcpy(record.store, "store_-ABCDEFGHIJKLMNOPQ", STORE_ID_CHARS);
    record.floor = floor;
    record.epoch = floor % 7;
    record.members_version = floor % 5;
    record.member_count = (unsigned)(floor % 40);
    for (unsigned i = 0; i < record.member_count; i++) {
        record.members[i].role = i % 3 == 0 ? MEMBER_GATEWAY : MEMBER_LEASE;
        snprintf(record.members[i].id, sizeof(record.members[i].id), "id%014u", i);
        snprintf(record.members[i].incarnation, sizeof(record.members[i].incarnation), "%016" PRId64, floor);
    }
    return record;
}

#endif
