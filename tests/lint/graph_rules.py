"""graph_rules.py - who may include whom."""

import fnmatch
import os
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# The rooms that all others stand on, and what each of them may include.
SHARED = {
    "text": ("api lists",),
    "loop": ("text",),
    "token": ("text",),
    "tls": ("text",),
    "access": ("text", "token", "tls"),
    "http": ("text", "loop", "tls"),
    "store": ("text", "loop", "tls"),
    "service": ("text", "loop", "token", "access", "tls", "http", "store", "api lists", "openapi", "ui"),
    "member": ("text", "loop", "token", "store", "http", "service", "scripts"),
}
ALL_SHARED = tuple(f"shared/{name}" for name in SHARED)
ON_SHARED = (*ALL_SHARED, "api lists", "scripts")

# Each room, and the rooms that its files may include; the first that fits a path is its room.
ROOMS = (
    ("api/*.def", "api lists", ()),
    ("build/gen/openapi.*", "openapi", ()),
    ("build/gen/ui.*", "ui", ()),
    ("build/gen/scripts.*", "scripts", ("shared/store",)),
    *((f"shared/{name}/*", f"shared/{name}", tuple(f"shared/{one}" if one in SHARED else one for one in may))
      for name, may in SHARED.items()),
    ("lease/*", "lease", ON_SHARED),
    ("gateway/*", "gateway", ON_SHARED),
    ("api/client/*", "api/client", (*ALL_SHARED, "api lists")),
    ("api/cli/*", "api/cli", ("api/client", *ON_SHARED)),
    ("tests/*", "tests", (*ON_SHARED, "lease", "gateway", "api/client", "api/cli", "openapi")),
)

# The door to each library, and the files that are that door.
LIBRARIES = (
    (r"hiredis/|hiredis\.h|async\.h", ("shared/store/*",)),
    (r"microhttpd", ("shared/http/*",)),
    (r"cjson/|cJSON", ("shared/text/json.c",)),
    (r"uv\.h|uv/", ("shared/loop/loop.c",)),
    (r"sodium", ("shared/token/*.c", "shared/access/*.c")),
    (r"gnutls/", ("shared/tls/*.c", "shared/tls/tls_internal.h")),
    (r"curl/", ()),
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
    """no modules include each other in a circle, a .c and its .h counted as one"""
    graph = {}
    for path in tree.files("*.c", "*.h"):
        if not path.startswith("tests/"):
            graph.setdefault(path[:-2], []).extend(resolved(tree, path, named)[:-2] for _, kind, named in includes(tree, path)
                                                   if kind == '"' and resolved(tree, path, named)[:-2] != path[:-2])
    done, way = set(), []

    def visit(module):
        if module in way:
            yield f"{module}.h:1: includes itself: {' -> '.join(way[way.index(module):] + [module])}"
        elif module not in done:
            way.append(module)
            for to in graph.get(module, ()):
                yield from visit(to)
            way.pop()
            done.add(module)
    for module in graph:
        yield from visit(module)


def libraries(tree):
    """each library is included in its own files only; tests, and the demo, which shows recipes of others, may use any"""
    for path in tree.files("*.c", "*.h"):
        if path.startswith(("tests/", "api/cli/demo/")):
            continue
        for line, _, named in includes(tree, path):
            for pattern, doors in LIBRARIES:
                if re.match(pattern, named) and not any(fnmatch.fnmatchcase(path, door) for door in doors):
                    yield f"{path}:{line}: {named} may be included in {', '.join(doors) or 'tests'} only"


RULES = (arrows, cycles, libraries)
