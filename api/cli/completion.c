/* completion.c - pawl completion bash|zsh|fish: the few lines that a shell needs.
 *
 * They know no command and no flag: at each Tab they ask the program itself (flags.h), which looks
 * into the tables that --help is made of. */
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"

/* Names of leases come from the service; a shell that waits for Tab does not wait longer than a second for
 * them. */
#define LEASES "timeout 1 pawl ls --limit 200 --prefix"

/* bash breaks words at ':' and '=' (COMP_WORDBREAKS): they are put together for us, and what bash has already
 * is cut off what it is to insert. */
static const char bash[] =
    "# bash completion of pawl: eval \"$(pawl completion bash)\"\n"
    "_pawl()\n"
    "{\n"
    "    local words=() word line offset cut joined=''\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD}\"; do\n"
    "        if [[ ${#words[@]} -gt 0 && ( $word == [:=] || -n $joined ) ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        joined=''\n"
    "        [[ $word == [:=] ]] && joined=yes\n"
    "    done\n"
    "    local typed=${words[${#words[@]}-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- \"$typed\") ;;\n"
    "        :directories) compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -d -- \"$typed\") ;;\n"
    "        :leases) while IFS=$'\\t' read -r word _; do COMPREPLY+=(\"$word\"); done \\\n"
    "            < <(" LEASES " \"$typed\" 2>/dev/null </dev/null) ;;\n"
    "        :hazards) while read -r word; do [[ $word == \"$typed\"* ]] && COMPREPLY+=(\"$word\"); done \\\n"
    "            < <(pawl demo --list 2>/dev/null </dev/null | sed 's/[[:space:]].*//') ;;\n"
    "        :accidents) while read -r word _; do [[ $word == \"$typed\"* ]] && COMPREPLY+=(\"$word\"); done "
    "\\\n"
    "            < <(pawl drill --list 2>/dev/null </dev/null) ;;\n"
    "        :command*) offset=$((COMP_CWORD - ${line#:command } + 1))\n"
    "            if declare -F _command_offset >/dev/null; then\n"
    "                _command_offset \"$offset\"\n"
    "            elif [[ $offset -eq $COMP_CWORD ]]; then\n"
    "                while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -c -- \"$typed\")\n"
    "            else\n"
    "                compopt -o filenames 2>/dev/null\n"
    "                while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- \"$typed\")\n"
    "            fi\n"
    "            return ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(pawl " FLAGS_COMPLETE " \"${words[@]}\" 2>/dev/null </dev/null)\n"
    "    cut=$typed\n"
    "    [[ $COMP_WORDBREAKS == *:* ]] || cut=${cut//:/}\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] || cut=${cut//=/}\n"
    "    if [[ $cut == *[:=]* ]]; then\n"
    "        cut=${typed%\"${cut##*[:=]}\"}\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"$cut\"}\")\n"
    "    fi\n"
    "}\n"
    "complete -F _pawl pawl\n";

static const char zsh[] =
    "#compdef pawl\n"
    "# zsh completion of pawl: eval \"$(pawl completion zsh)\", or as _pawl in a directory of $fpath\n"
    "_pawl()\n"
    "{\n"
    "    local line typed=${words[CURRENT]}\n"
    "    local -a found\n"
    "    for line in ${(f)\"$(pawl " FLAGS_COMPLETE
    " \"${(@Q)words[2,CURRENT]}\" 2>/dev/null </dev/null)\"}; do\n"
    "        case $line in\n"
    "        :files) _files ;;\n"
    "        :directories) _files -/ ;;\n"
    "        :leases) compadd -- ${${(f)\"$(" LEASES " \"$typed\" 2>/dev/null </dev/null)\"}%%$'\\t'*} ;;\n"
    "        :hazards) compadd -- ${${(f)\"$(pawl demo --list 2>/dev/null </dev/null)\"}%%[[:space:]]*} ;;\n"
    "        :accidents) compadd -- ${${(f)\"$(pawl drill --list 2>/dev/null </dev/null)\"}%%[[:space:]]*} "
    ";;\n"
    "        :command*) (( CURRENT -= ${#words} - ${line#:command } ))\n"
    "            words=(\"${(@)words[-${line#:command },-1]}\")\n"
    "            CURRENT=${#words}\n"
    "            _normal ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}${${(M)line:#*$'\\t'*}:+:${line#*$'\\t'}}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( ${#found} )) && _describe -V pawl found\n"
    "}\n"
    "if [[ ${funcstack[1]-} == _pawl ]]; then\n"
    "    _pawl \"$@\"\n"
    "else\n"
    "    compdef _pawl pawl\n"
    "fi\n";

static const char fish[] =
    "# fish completion of pawl: pawl completion fish | source\n"
    "function __pawl_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l typed (commandline -ct)\n"
    "    for line in (pawl " FLAGS_COMPLETE " $words[2..-1] \"$typed\" 2>/dev/null </dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path \"$typed\"\n"
    "            case :directories\n"
    "                __fish_complete_directories \"$typed\"\n"
    "            case :leases\n"
    "                " LEASES " \"$typed\" 2>/dev/null </dev/null | string replace -r '\\t.*' ''\n"
    "            case :hazards\n"
    "                pawl demo --list 2>/dev/null </dev/null | string replace -r '\\s+' \\t\n"
    "            case :accidents\n"
    "                pawl drill --list 2>/dev/null </dev/null | string replace -r '\\s+' \\t\n"
    "            case ':command*'\n"
    "                set -l count (string replace ':command ' '' -- $line)\n"
    "                set -l rest $words[(math \"-$count + 1\")..-1]\n"
    "                test $count -gt 1; or set rest\n"
    "                complete -C (string join ' ' -- (string escape -- $rest) \"$typed\")\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c pawl -f -a '(__pawl_complete)'\n";

static const struct shell {
    const char *name, *text;
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

int cli_completion(int argc, char **argv)
{
    const struct option flags[] = {{0}};
    const struct usage usage = {
        .name = "completion",
        .arguments = "bash|zsh|fish",
        .examples =
            "  eval \"$(pawl completion bash)\"                            # in ~/.bashrc\n"
            "  eval \"$(pawl completion zsh)\"                             # in ~/.zshrc, behind compinit\n"
            "  pawl completion fish | source                             # in ~/.config/fish/config.fish\n",
        .summary =
            "Prints what the shell needs to complete commands, flags, their values and the names of leases.",
        .flags = flags};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON)
        return status;
    for (unsigned i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shells[i].name, arguments[0]) == 0) {
            fputs(shells[i].text, stdout);
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, "there is no completion for \"%s\": it is bash, zsh or fish", arguments[0]);
}
