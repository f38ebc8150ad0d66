#!/usr/bin/python3
"""ui.py - the web pages of api/ui as C: build/gen/ui.c and .h, each file plain and as gzip, with its type and ETag.

    ui.py api/ui build/gen/ui
"""

import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml"}
HEADER = """#ifndef PAWL_GEN_UI_H
#define PAWL_GEN_UI_H

#include <stddef.h>

struct ui_file {
    const char *name, *type, *etag; /* name NULL: the end */
    const unsigned char *plain, *gzip;
    size_t plain_len, gzip_len;
};
extern const struct ui_file ui_files[];

#endif
"""


def array(name, data):
    lines = [",".join(str(byte) for byte in data[at:at + 40]) for at in range(0, len(data), 40)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    source, out = sys.argv[1:]
    made_from = f"/* ui: made from {source} by deploy/build/ui.py; do not edit. */\n"
    arrays, rows = [], []
    for i, name in enumerate(sorted(os.listdir(source))):
        with open(os.path.join(source, name), "rb") as file:
            plain = file.read()
        packed = gzip.compress(plain, 9, mtime=0)
        etag = 'W/\\"' + hashlib.sha256(plain).hexdigest()[:24] + '\\"'  # weak: of both (RFC 9110, 8.8.1)
        arrays += [array(f"plain_{i}", plain), array(f"gzip_{i}", packed)]
        rows.append(f'    {{"{name}", "{TYPES[os.path.splitext(name)[1]]}", "{etag}", plain_{i}, gzip_{i}, sizeof(plain_{i}), sizeof(gzip_{i})}},\n')
    body = (f'{made_from}#include "build/gen/ui.h"\n\n' + "\n".join(arrays) + "\nconst struct ui_file ui_files[] = {\n" + "".join(rows)
            + "    {NULL, NULL, NULL, NULL, NULL, 0, 0}};\n")
    for suffix, content in ((".h", made_from + HEADER), (".c", body)):
        with open(out + suffix + ".new", "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(out + suffix + ".new", out + suffix)


main()
