/* ask_judge.h - whether an answer is Pawl's: somebody between may have answered, who does not know what
 * became of the request. */
#ifndef PAWL_CLI_ASK_JUDGE_H
#define PAWL_CLI_ASK_JUDGE_H

#include "api/cli/ask.h"

/* A problem as Pawl tells it, or a 2xx with all that Pawl always sends with it (ask.wants). */
bool ask_is_pawls(const struct ask *ask, const struct http_client_answer *answer);
/* What a refusal after an attempt of unknown end is worth. */
enum ask_doubt {
    ASK_CERTAIN, /* done, or a hold that is over, whatever became of the attempt before */
    ASK_REFUSED, /* the attempt before may yet arrive */
    ASK_IN_DOUBT /* the service does not know either */
};
enum ask_doubt ask_doubt_of(const struct http_client_answer *answer);

#endif
