"""graph_rules.py - who may include whom."""

import fnmatch
import os
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# Each room, and the rooms that its files may include; the first that fits a path is its room.
ROOMS = (
    ("api/*.def", "api lists", ()),
    ("build/gen/openapi.*", "openapi", ()),
    ("build/gen/lease_scripts.*", "lease scripts", ("shared",)),
    ("build/gen/gateway_scripts.*", "gateway scripts", ("shared",)),
    ("build/gen/cli_scripts.*", "cli scripts", ("shared",)),
    ("shared/record/*", "shared/record", ("shared", "shared/token")),
    # A fencing token names its lease.
    ("shared/token*", "shared/token", ("shared", "shared/record")),
    ("shared/*", "shared", ("shared/token", "api lists", "openapi")),
    ("lease/*", "lease", ("shared", "shared/token", "shared/record", "api lists", "lease scripts")),
    ("gateway/*", "gateway", ("shared", "shared/token", "shared/record", "api lists", "gateway scripts")),
    ("api/client/*", "api/client", ("shared", "shared/token", "shared/record", "api lists")),
    ("api/cli/*", "api/cli", ("api/client", "shared", "shared/token", "shared/record", "api lists", "cli scripts")),
    ("tests/*", "tests", ("shared", "shared/token", "shared/record", "lease", "gateway", "api/client", "api/cli",
                          "api lists", "openapi", "lease scripts", "gateway scripts", "cli scripts")),
)

# The door to each library, and the files that are that door.
LIBRARIES = (
    (r"hiredis/|hiredis\.h|async\.h", ("shared/store_redis*",)),
    (r"microhttpd", ("shared/http*",)),
    (r"cjson/|cJSON", ("shared/json.c",)),
    (r"uv\.h|uv/", ("shared/loop.c",)),
    (r"sodium", ("shared/token*.c", "shared/random.c")),
    (r"curl/", ("api/cli/http*.c", "api/client/http*.c", "gateway/upstream_tls*")),
)


def includes(tree, path):
    """(line, "<" or '"', what is included); comments do not count, but what an include names is a text."""
    code, text = tree.code(path), tree.read(path)
    for match in INCLUDE.finditer(text):
        if code[match.start():match.start(2) - 1].strip():
            yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def room(path):
    return next(((name, may) for pattern, name, may in ROOMS if fnmatch.fnmatchcase(path, pattern)), (None, ()))


def resolved(tree, path, named):
    """Where an include in quotes leads: from the root, beside the file that includes, or what the build makes."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), named))
    if named in tree.paths:
        return named
    return next((f"build/gen/{named}" for one, _, _ in ROOMS if fnmatch.fnmatchcase(f"build/gen/{named}", one)),
                beside if beside in tree.paths else named)


def arrows(tree):
    """every include goes along an arrow between rooms"""
    for path in tree.files("*.c", "*.h"):
        name, may = room(path)
        if name is None:
            yield f"{path}:1: lies in no room; tests/lint/graph_rules.py names the rooms"
            continue
        for line, kind, named in includes(tree, path):
            to = resolved(tree, path, named)
            if kind == "<":
                continue
            if to not in (named, f"build/gen/{named}"):
                yield f'{path}:{line}: "{named}" is not named from the root of the tree'
            if to not in tree.paths and not to.startswith("build/gen/"):
                yield f'{path}:{line}: "{named}" is not there'
            elif room(to)[0] not in (name, *may):
                yield f"{path}:{line}: {name} may not include {named} ({room(to)[0] or 'in no room'})"


def cycles(tree):
    """no headers include each other in a circle"""
    graph = {path: [resolved(tree, path, named) for _, kind, named in includes(tree, path) if kind == '"']
             for path in tree.files("*.h")}
    done, way = set(), []

    def visit(path):
        if path in way:
            yield f"{path}:1: includes itself: {' -> '.join(way[way.index(path):] + [path])}"
        elif path not in done:
            way.append(path)
            for to in graph.get(path, ()):
                yield from visit(to)
            way.pop()
            done.add(path)
    for path in graph:
        yield from visit(path)


def libraries(tree):
    """each library is included in its own files only"""
    for path in tree.files("*.c", "*.h"):
        if path.startswith("tests/"):
            continue
        for line, _, named in includes(tree, path):
            for pattern, doors in LIBRARIES:
                if re.match(pattern, named) and not any(fnmatch.fnmatchcase(path, door) for door in doors):
                    yield f"{path}:{line}: {named} may be included in {', '.join(doors)} only"


RULES = (arrows, cycles, libraries)
