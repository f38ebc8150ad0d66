/* condition.c - what is the matter with a service, the worst of it, and what to do: for the overview. */
#include <stdio.h>
#include <string.h>

#include "shared/service/service.h"

#define NOTHING_GOES                                                                                         \
    "Nothing is granted, renewed or written until then; who holds a lease keeps it for its ttl. "
#define OLD_FILES "All goes on by the files of before. "

/* Of each code the first row that it begins with: what goes on in spite of it and what does not; what to do.
 */
static const struct {
    const char *code, *remedy, *command;
} remedies[] = {
    {"draining", "Others serve. Wait until the service has stopped, and start it again.", NULL},
    {"store-connecting", NOTHING_GOES "Start Redis, or mend the way to it.", "pawl store status"},
    {"store-electing",
     NOTHING_GOES "Wait until the sentinels have elected a primary, or start a node that may be it.",
     "pawl store status"},
    {"store-auth", NOTHING_GOES "Give the service the password of Redis: --redis-password-file.", NULL},
    {"store-loading", NOTHING_GOES "Wait until Redis has loaded its data.", NULL},
    {"store-busy", NOTHING_GOES "Wait, or find out whose script keeps Redis busy.", "redis-cli script kill"},
    {"store-refuse", NOTHING_GOES "Mend what Redis says in the detail.", "pawl store status"},
    {"store-unsafe",
     "Nothing new is granted; renewals, releases and writes go on. Give Redis the settings that keep what it "
     "is "
     "told.",
     "pawl doctor"},
    {"store-not-ours", NOTHING_GOES "Name the Redis of this store with --redis.", "pawl store status"},
    {"access-missing", NOTHING_GOES "Start the service with --access FILE.", NULL},
    {"store-not-admitted", NOTHING_GOES "Start the lease services that the store waits for.",
     "pawl store status"},
    {"store-not-kept", NOTHING_GOES "Bring the nodes of Redis back that are away.", "pawl store status"},
    {"store-behind", NOTHING_GOES "Make one of the nodes of the in-sync set the primary.",
     "pawl store status"},
    {"store-full",
     "Nothing new is granted or written; renewals and releases go on. Give Redis more memory, or delete "
     "stored "
     "resources.",
     "pawl store status"},
    {"store-", NOTHING_GOES "See what the store needs.", "pawl store status"},
    {"state-dir",
     "This service grants nothing; all else goes on. Make room on the disk of the state directory, or give "
     "its "
     "owner the right to write.",
     NULL},
    {"member-silent", "All else goes on. Start it again. If it is gone for good, let the store forget it.",
     "pawl store status"},
    {"in-doubt",
     "Newer writes by ordered routes wait for those in doubt; all else goes on. Find out whether they have "
     "arrived, and say so.",
     "pawl resolve"},
    {"routes-differ",
     "This gateway forwards nothing; stored resources, checks and leases go on. Give all gateways the same "
     "route file.",
     "pawl routes adopt"},
    {"marks-lost",
     "What goes by the mark of that store takes no writes; all else goes on. Say below which token of "
     "that store nothing passes.",
     "pawl store marks"},
    {"access-refused", OLD_FILES "Mend the access file and send SIGHUP.", "pawl access check"},
    {"tls-not-reloaded", OLD_FILES "Mend the files and send SIGHUP.", NULL},
    {"functions-not-loaded", "All goes on, slower. Let Redis load the functions.", "pawl store status"},
};

const char *service_condition_remedy(const char *code, const char **command)
{
    unsigned i = 0, count = sizeof(remedies) / sizeof(remedies[0]);

    while (i < count && strncmp(code, remedies[i].code, strlen(remedies[i].code)) != 0)
        i++;
    *command = i < count ? remedies[i].command : NULL;
    return i < count ? remedies[i].remedy : NULL;
}

const char *service_condition(struct worker *worker, char detail[READY_DETAIL_SIZE])
{
    enum problem problem;
    const char *member = NULL, *code = service_not_ready(worker, &problem, detail);

    if (code != NULL)
        return code;
    if (service_stand(worker).is_full) {
        snprintf(detail, READY_DETAIL_SIZE, "%s", problem_info(PROBLEM_STORE_FULL)->detail);
        return "store-full";
    }
    code = service_lacks(worker, &member, detail);
    if (code != NULL) {
        return strcmp(member, "access") == 0 ? "access-refused"
               : strcmp(member, "tls") == 0  ? "tls-not-reloaded"
                                             : code;
    }
    code = store_not_loaded(worker->store);
    snprintf(detail, READY_DETAIL_SIZE, "%s", code != NULL ? code : "");
    return code != NULL ? "functions-not-loaded" : NULL;
}
