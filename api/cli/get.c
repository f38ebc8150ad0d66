/* get.c - pawl get: who holds a lease. */
#include "api/cli/ask_command.h"
#include "api/cli/cli.h"
#include "api/cli/look.h"

static void get_show(const struct json *json, enum output output)
{
    if (output == OUTPUT_ENV) {
        look_print_env(json);
    } else {
        look_print_text(stdout, json);
    }
}

int cli_get(int argc, char **argv)
{
    static const struct ask_command command = {
        .usage =
            {
                .name = "get",
                .examples = "  pawl get orders:42\n"
                            "  pawl get orders:42 -o json | jq -r .state\n"
                            "  eval \"$(pawl get orders:42 -o env)\"; echo \"$LEASE_HOLDER\"\n",
                .summary =
                    "Shows whether the lease NAME is held, by whom and for how long yet. A lease that nobody "
                    "has ever\n"
                    "taken is free.",
            },
        .deed = "",
        .needs = "lease state token holders waiting",
        .show = get_show,
    };

    return ask_command_run(&command, argc, argv);
}
