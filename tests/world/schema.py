"""What api/openapi.yaml uses of JSON Schema (draft 2020-12), as functions: jsonschema, with which tests/service/test_contract.py
compares it, takes a hundred times as long, and every answer to every test is held against one."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
SAYS_NOTHING = {"description", "default"}
LAST = "unevaluatedProperties"  # it asks what all others have seen


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (not isinstance(value, bool) or name == "boolean")


def is_same(value, other):
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def simple(kind, holds, says):
    """A keyword that asks something of a value of this kind."""
    def keyword(_schemas, wanted, _schema):
        return lambda value, _seen: None if not is_type(value, kind) or holds(value, wanted) else f": {value!r} {says} {wanted!r}"
    return keyword


def of_any(holds, says):
    return lambda _schemas, wanted, _schema: lambda value, _seen: None if holds(value, wanted) else f": {value!r} {says} {wanted!r}"


def of_type(_schemas, wanted, _schema):
    names = [wanted] if isinstance(wanted, str) else wanted
    kinds, not_this = tuple(TYPES[name] for name in names), () if "boolean" in names else bool  # for Python True is an int
    return lambda value, _seen: None if isinstance(value, kinds) and not isinstance(value, not_this) else f": {value!r} is no {wanted}"


def ref(schemas, wanted, _schema):
    return lambda value, seen: schemas.check(schemas.at(wanted))(value, seen)  # only now: a schema may refer to itself


def all_of(schemas, wanted, _schema):
    checks = [schemas.check(one) for one in wanted]
    return lambda value, seen: next(filter(None, (check(value, seen) for check in checks)), None)


def some_of(most):
    """At least one fits, and at most so many."""
    def keyword(schemas, wanted, _schema):
        checks = [schemas.check(one) for one in wanted]

        def check(value, seen):
            fitting = sum(one(value, seen) is None for one in checks)
            return None if 1 <= fitting <= (most or fitting) else f": {value!r} fits {fitting} of {len(checks)}"
        return check
    return keyword


def if_then(schemas, wanted, schema):
    check, then, other = (schemas.check(one) for one in (wanted, schema.get("then", True), schema.get("else", True)))
    return lambda value, seen: (then if check(value, seen) is None else other)(value, seen)


def properties(schemas, wanted, _schema):
    checks = {name: schemas.check(one) for name, one in wanted.items()}

    def check(value, seen):
        for name in value if isinstance(value, dict) else ():
            if name in checks:
                seen.add(name)
                wrong = checks[name](value[name], set())
                if wrong:
                    return f".{name}{wrong}"
        return None
    return check


def members(schemas, wanted, known):
    """Of a keyword for all members but those that known(seen) are."""
    of_member = schemas.check(wanted)

    def check(value, seen):
        for name in set(value) - known(seen) if isinstance(value, dict) else ():
            seen.add(name)
            wrong = of_member(value[name], set())
            if wrong:
                return f": the member {name}{wrong}"
        return None
    return check


def items(schemas, wanted, _schema):
    of_item = schemas.check(wanted)

    def check(value, _seen):
        for number, one in enumerate(value if isinstance(value, list) else ()):
            wrong = of_item(one, set())
            if wrong:
                return f"[{number}]{wrong}"
        return None
    return check


KEYWORDS = {
    "$ref": ref, "allOf": all_of, "anyOf": some_of(None), "oneOf": some_of(1), "if": if_then,
    "type": of_type,
    "const": of_any(is_same, "is not"),
    "enum": of_any(lambda value, wanted: any(is_same(value, one) for one in wanted), "is none of"),
    "pattern": simple("string", lambda value, wanted: re.search(wanted, value), "is not like"),
    "minLength": simple("string", lambda value, wanted: len(value) >= wanted, "is shorter than"),
    "maxLength": simple("string", lambda value, wanted: len(value) <= wanted, "is longer than"),
    "minimum": simple("number", lambda value, wanted: value >= wanted, "is below"),
    "maximum": simple("number", lambda value, wanted: value <= wanted, "is above"),
    "minItems": simple("array", lambda value, wanted: len(value) >= wanted, "has fewer than"),
    "maxItems": simple("array", lambda value, wanted: len(value) <= wanted, "has more than"),
    "uniqueItems": simple("array", lambda value, wanted: not wanted or len({repr(one) for one in value}) == len(value), "has one twice"),
    "required": simple("object", lambda value, wanted: set(wanted) <= set(value), "lacks one of"),
    "dependentRequired": simple("object", lambda value, wanted: all(set(more) <= set(value) for name, more in wanted.items() if name in value), "lacks one of"),
    "properties": properties, "items": items,
    "additionalProperties": lambda schemas, wanted, schema: members(schemas, wanted, lambda _seen: set(schema.get("properties", ()))),
    LAST: lambda schemas, wanted, _schema: members(schemas, wanted, lambda seen: seen),
}


class Schemas:
    def __init__(self, document):
        self.document, self.made = document, {}

    def at(self, reference):
        node = self.document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node

    def wrong(self, schema, value):
        """What is wrong with it, as "$.member: ..."; None: nothing."""
        wrong = self.check(schema)(value, set())
        return wrong and f"${wrong}"

    def check(self, schema):
        """function(value, seen): what is wrong; it adds to seen the members that the schema has looked at."""
        if isinstance(schema, bool):
            return lambda value, _seen: None if schema else f": {value!r} should not be here"
        if id(schema) not in self.made:
            names = sorted(set(schema) - SAYS_NOTHING - {"then", "else"}, key=lambda name: name == LAST)
            checks = [KEYWORDS[name](self, schema[name], schema) for name in names]

            def check(value, seen):
                own = set()
                for one in checks:
                    wrong = one(value, own)
                    if wrong:
                        return wrong
                seen |= own
                return None
            self.made[id(schema)] = check, schema  # which is kept, for nothing else gets its id
        return self.made[id(schema)][0]
