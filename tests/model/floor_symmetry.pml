/* floor_symmetry.pml - states that differ only in the numbers of the services are one state: of the six ways to
 * number them one is kept: sorted by kind, and among those the least as a row of bytes. */
c_code {
struct view {
    unsigned char floor[3], next_floor[3], list[3], recorded[3], next_list[3], next_recorded[3];
    unsigned char there, in, pending, reported, open, once;
#ifdef REPORTS_ARE_KEPT
    unsigned char told_list[3], told_floor[3];
#endif
};

/* A set after service i has become service to[i]. */
static unsigned char renamed(unsigned char set, const unsigned char *to)
{
    return (unsigned char)((set & 1) << to[0] | (set >> 1 & 1) << to[1] | (set >> 2 & 1) << to[2]);
}

static void view_make(struct view *v, const unsigned char *to)
{
    for (int i = 0; i < 3; i++) {
        v->floor[to[i]] = now.floor[i];
        v->next_floor[to[i]] = now.next_floor[i];
        v->list[to[i]] = renamed(now.list[i], to);
        v->recorded[to[i]] = renamed(now.recorded[i], to);
        v->next_list[to[i]] = renamed(now.next_list[i], to);
        v->next_recorded[to[i]] = renamed(now.next_recorded[i], to);
#ifdef REPORTS_ARE_KEPT
        v->told_floor[to[i]] = now.told_floor[i];
        v->told_list[to[i]] = renamed(now.told_list[i], to);
#endif
    }
    v->once = renamed(now.once, to);
    v->there = renamed(now.there, to);
    v->in = renamed(now.in, to);
    v->pending = renamed(now.pending, to);
    v->reported = renamed(now.reported, to);
    v->open = now.open < 2 ? now.open : 2 + to[now.open - 2];
}

/* What a service is without the numbers of others: most states need only one of the six ways. */
static unsigned kind(int i)
{
    return now.floor[i] | now.next_floor[i] << 3 | __builtin_popcount(now.list[i]) << 6 |
           __builtin_popcount(now.next_list[i]) << 8 | (now.there >> i & 1) << 10 | (now.in >> i & 1) << 11 |
           (now.pending >> i & 1) << 12 | (now.reported >> i & 1) << 13 | (now.list[i] >> i & 1) << 14;
}

static void renumber(void)
{
    static const unsigned char ways[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    unsigned kinds[3] = {kind(0), kind(1), kind(2)}, sorted[3];
    struct view least, other;
    int found = 0;

    for (int way = 0; way < 6; way++) {
        for (int i = 0; i < 3; i++) {
            sorted[ways[way][i]] = kinds[i];
        }
        if (sorted[0] > sorted[1] || sorted[1] > sorted[2]) {
            continue;
        }
        view_make(&other, ways[way]);
        if (found++ == 0 || memcmp(&other, &least, sizeof(least)) < 0) {
            least = other;
        }
    }
    memcpy(now.floor, least.floor, 3);
    memcpy(now.next_floor, least.next_floor, 3);
    memcpy(now.list, least.list, 3);
    memcpy(now.recorded, least.recorded, 3);
    memcpy(now.next_list, least.next_list, 3);
    memcpy(now.next_recorded, least.next_recorded, 3);
#ifdef REPORTS_ARE_KEPT
    memcpy(now.told_floor, least.told_floor, 3);
    memcpy(now.told_list, least.told_list, 3);
#endif
    now.once = least.once;
    now.there = least.there;
    now.in = least.in;
    now.pending = least.pending;
    now.reported = least.reported;
    now.open = least.open;
}
};
#define DONE c_code { renumber(); }
