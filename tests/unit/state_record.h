/* state_record.h - a content of a state directory for the tests of it. */
#ifndef PAWL_TESTS_STATE_RECORD_H
#define PAWL_TESTS_STATE_RECORD_H

#include "shared/member/state_file.h"
#include "tests/unit/check.h"

/* Puts a line behind the list. */
#define list_line(list, ...) CHECK(state_list_add((list), bytes_of(textf(__VA_ARGS__))))

/* How many lines of this kind it has. */
static inline unsigned listed(const struct state_record *record, enum state_kind kind)
{
    struct bytes rest = bytes_of(record->list);
    unsigned count = 0;

    while (rest.len > 0)
        count += state_line_kind(bytes_cut(&rest, ',')) == kind;
    return count;
}

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
    for (unsigned i = 0; i < (unsigned)(floor % 40); i++)
        list_line(record.list, "%s id%014u %016" PRId64, i % 3 == 0 ? "gateway" : "lease", i, floor);
    return record;
}

#endif
