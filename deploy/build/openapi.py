#!/usr/bin/python3
"""openapi.py - api/openapi.yaml as C: build/gen/openapi.c and .h, the text that /openapi.json answers with; .json is that text.

    openapi.py api/openapi.yaml build/gen/openapi
"""

import json
import os
import sys

import yaml

WIDTH = 100


def main():
    source, out = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    for path, item in document.get("paths", {}).items():
        for method, one in item.items():
            if method not in ("head", "options") and "operationId" in one and "x-needs" not in one and "x-other-methods" not in item:
                sys.exit(f"{source}: {method} {path} does not say what its caller needs (x-needs)")
    # ASCII only: a string that is cut into pieces cannot then be cut within a character.
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    made_from = f"/* openapi: made from {source} by deploy/build/openapi.py; do not edit. */\n"
    header = (f"{made_from}#ifndef PAWL_GEN_OPENAPI_H\n#define PAWL_GEN_OPENAPI_H\n\n#include <stddef.h>\n\n"
              "extern const char openapi_json[];\nextern const size_t openapi_json_len; /* without the NUL */\n\n#endif\n")
    lines = []
    for at in range(0, len(text), WIDTH):
        piece = text[at:at + WIDTH].replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
        lines.append(f'    "{piece}"')
    # Longer than the 4,095 characters that C11 5.2.4.1 promises; gcc and clang take any length.
    body = (f'{made_from}#include "build/gen/openapi.h"\n\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n'
            "const char openapi_json[] =\n" + "\n".join(lines) + ";\n"
            "const size_t openapi_json_len = sizeof(openapi_json) - 1;\n")
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    for suffix, content in ((".h", header), (".c", body), (".json", text)):
        with open(out + suffix + ".new", "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(out + suffix + ".new", out + suffix)
    return 0


if __name__ == "__main__":
    sys.exit(main())
