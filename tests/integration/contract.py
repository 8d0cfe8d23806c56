# SPDX-License-Identifier: Apache-2.0
"""Validates responses of the API against the generated openapi.json. The harness calls it for every response."""
import json
import os
import re

ITEMS = 50  # elements checked at the beginning and at the end of a list

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Contract:
    """The schemas of openapi.json."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.file = json.load(f)
        self.paths = [(re.compile(re.sub(r"\{[^}]*\}", "[^/]+", p)), operations)
                      for p, operations in sorted(self.file["paths"].items(), key=lambda item: "{" in item[0])]

    def resolve(self, o):
        while "$ref" in o:
            at = self.file
            for part in o["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            o = at
        return o

    def members(self, schema):
        """The members of a schema, and whether it allows others."""
        schema = self.resolve(schema)
        known = dict(schema.get("properties", {}))
        is_open = schema.get("additionalProperties", "properties" not in schema and "allOf" not in schema) is not False
        for part in schema.get("allOf", ()):
            more, part_open = self.members(part)
            known.update(more)
            is_open = is_open or (part_open and bool(self.resolve(part).get("additionalProperties")))
        return known, is_open

    def faults(self, schema, value, where):
        """The errors of a value, as sentences."""
        schema = self.resolve(schema)
        found = []
        types = schema.get("type")
        if types is not None:
            types = [types] if isinstance(types, str) else types
            if not any(TYPES[t](value) for t in types):
                return ["%s is %s and not %s" % (where, json.dumps(value)[:80], " or ".join(types))]
        if "enum" in schema and value not in schema["enum"] and value is not None:
            found.append("%s is %s, which the enum does not have" % (where, json.dumps(value)[:80]))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                each = [self.faults(s, value, where) + self.unknown_members(s, value, where) for s in schema[word]]
                if all(each):
                    found.append("%s matches nothing of %s: %s" % (where, word, "; ".join(e[0] for e in each)))
        for part in schema.get("allOf", ()):
            found += self.faults(part, value, where)
        found += self.scalar(schema, value, where)
        if isinstance(value, dict):
            found += self.object(schema, value, where)
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                if i < ITEMS or i >= len(value) - ITEMS:
                    found += self.check(schema["items"], item, "%s[%d]" % (where, i))
        return found

    @staticmethod
    def scalar(schema, value, where):
        found = []
        if isinstance(value, str):
            if schema.get("format") == "date-time" and not TIME.fullmatch(value):
                found.append("%s is '%s', which is not a time in UTC" % (where, value))
            if "pattern" in schema and not re.search(schema["pattern"], value):
                found.append("%s is '%s', which does not match the pattern" % (where, value[:80]))
            if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
                found.append("%s has %d characters" % (where, len(value)))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
                found.append("%s is %s, out of its range" % (where, value))
        return found

    def object(self, schema, value, where):
        found = ["%s lacks '%s'" % (where, name) for name in schema.get("required", ()) if name not in value]
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, member in value.items():
            if name in known:
                found += self.check(known[name], member, "%s.%s" % (where, name))
            elif isinstance(others, dict):
                found += self.check(others, member, "%s.%s" % (where, name))
        return found

    def unknown_members(self, schema, value, where):
        """Members that the schema does not have. All parts of an allOf together define the members."""
        known, is_open = self.members(schema)
        if not isinstance(value, dict) or is_open or not known:
            return []
        return ["%s has '%s', which is not in openapi.json" % (where, name) for name in value if name not in known]

    def check(self, schema, value, where):
        return self.faults(schema, value, where) + self.unknown_members(schema, value, where)

    def answer(self, method, path, status, value):
        """Fails if a response does not match openapi.json. All error statuses have the same schema."""
        name = "%s %s (%d)" % (method, path[:120], status)
        if status >= 400:
            wrong = self.check({"$ref": "#/components/schemas/Error"}, value, "answer")
        else:
            operation = next((o[method.lower()] for pattern, o in self.paths
                              if pattern.fullmatch(path.split("?")[0]) and method.lower() in o), None)
            assert operation, name + ": there is no such path in openapi.json"
            response = operation["responses"].get(str(status))
            assert response, name + ": openapi.json does not have this status"
            content = self.resolve(response).get("content", {}).get("application/json")
            assert content, name + ": openapi.json has no JSON for it"
            wrong = self.check(content["schema"], value, "answer")
        assert not wrong, "%s does not match openapi.json: %s" % (name, "; ".join(wrong[:5]))


CONTRACT = Contract(os.path.join(os.environ.get("top_builddir", "build"), "src", "daemon", "api", "openapi.json"))
