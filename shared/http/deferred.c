/* deferred.c - what owners are told at the end of a turn, each thing once: that a client has gone, that
 * there is room again, the rest of a body. An owner that is told may do whatever it likes, so each is taken
 * off the list before it is told, and the list is looked at anew. */
#include "shared/http/http_internal.h"

void http_deferred_add(struct http_server *server, struct http_deferred *told)
{
    struct http_disconnect *disconnect = &server->disconnect;

    disconnect->look = true;
    loop_again(server->loop); /* if this is the end of the turn, and our hook has already had its go */
    if (told->at != NULL) {
        return;
    }
    told->next = disconnect->to_tell;
    told->at = &disconnect->to_tell;
    if (told->next != NULL) {
        told->next->at = &told->next;
    }
    disconnect->to_tell = told;
}

void http_deferred_remove(struct http_deferred *told)
{
    if (told->at == NULL) {
        return;
    }
    *told->at = told->next;
    if (told->next != NULL) {
        told->next->at = told->at;
    }
    told->at = NULL;
}

void http_tell_all(struct http_server *server)
{
    struct http_deferred *told;

    while ((told = server->disconnect.to_tell) != NULL) {
        http_deferred_remove(told);
        told->tell(told);
        loop_again(server->loop); /* their calls to the store are to go out in this turn */
    }
}
