/** Stored access policies and user delegation keys, from their XML and back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { parseSignedIdentifiers, signedIdentifiersXml } from "./signed-identifiers.ts";
import { codeOf, utf8 } from "./testing/sas-harness.ts";

test("signed identifiers come back from their XML as they were; at most five, each id once, known letters", () => {
  const one = fc.record(
    {
      id: fc.string({ minLength: 1, maxLength: 64 }).filter((id) => id === id.trim()),
      startMs: fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined }),
      expiryMs: fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined }),
      permissions: fc.option(fc.constantFrom("r", "rwdl", "racwdl"), { nil: undefined }),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(fc.uniqueArray(one, { maxLength: 5, selector: ({ id }) => id }), (identifiers) => {
      const back = parseSignedIdentifiers(utf8(signedIdentifiersXml(identifiers)), "blob");
      assert.ok(back.ok, JSON.stringify(back));
      assert.deepEqual(
        back.value.map((each) => ({ startMs: undefined, expiryMs: undefined, permissions: undefined, ...each })),
        identifiers,
      );
    }),
  );
  const parse = (xml: string, of: ServiceName = "blob"): string => codeOf(parseSignedIdentifiers(utf8(xml), of));
  const policy = (permission: string, id = "x"): string =>
    `<SignedIdentifier><Id>${id}</Id><AccessPolicy><Permission>${permission}</Permission></AccessPolicy></SignedIdentifier>`;
  const list = (inner: string): string => `<SignedIdentifiers>${inner}</SignedIdentifiers>`;
  assert.equal(parse(""), "ok");
  assert.equal(parse(list("")), "ok");
  assert.equal(parse(list(policy("raup")), "queue"), "ok");
  assert.equal(parse(list(policy("w")), "queue"), "InvalidXmlNodeValue");
  assert.equal(parse(list(policy("r") + policy("r"))), "InvalidXmlNodeValue");
  assert.equal(parse(list([1, 2, 3, 4, 5, 6].map((id) => policy("r", String(id))).join(""))), "InvalidXmlDocument");
  assert.equal(parse(list("<SignedIdentifier></SignedIdentifier>")), "MissingRequiredXmlNode");
  assert.equal(parse(list("<Other/>")), "UnsupportedXmlNode");
  assert.equal(parse(list(policy("r", "x".repeat(65)))), "InvalidXmlNodeValue");
  assert.equal(parse("<!DOCTYPE x [<!ENTITY a 'b'>]><SignedIdentifiers/>"), "InvalidXmlDocument");
});
