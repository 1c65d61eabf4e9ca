import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  refusedEmptyHeaders,
  refusedEmptyParameters,
  withoutEmptyHeaders,
  withoutEmptyParameters,
  withoutEmptyValues,
} from "./empty-values.ts";
import { parseQuery, parseTarget } from "./target.ts";

const queryOf = (text: string) => {
  const query = parseQuery(text);
  assert.ok(query.ok);
  return query.value;
};

describe("empty values", () => {
  test("headers: empty ones are dropped, metadata and what has a value stay", () => {
    const headers = { "x-ms-access-tier": "", "x-ms-lease-id": "", "x-ms-if-tags": "", "x-ms-meta-a": "", "x-ms-blob-type": "BlockBlob" };
    const kept = withoutEmptyHeaders(headers);
    assert.deepEqual(kept, { ok: true, value: { "x-ms-meta-a": "", "x-ms-blob-type": "BlockBlob" } });
    assert.equal(headers["x-ms-access-tier"], "", "the caller's record is not changed");
  });

  test("headers: each of the table is refused by its name, with its reason", () => {
    assert.ok(Object.keys(refusedEmptyHeaders).length > 20);
    for (const [name, reason] of Object.entries(refusedEmptyHeaders)) {
      const refused = withoutEmptyHeaders({ [name]: "" });
      assert.deepEqual(refused.ok ? undefined : [refused.error.code, refused.error.status, refused.error.details], [
        "InvalidHeaderValue",
        400,
        { HeaderName: name, HeaderValue: "", Reason: reason },
      ]);
      assert.ok(withoutEmptyHeaders({ [name]: "x" }).ok);
    }
  });

  test("headers: names of Object.prototype are names like others", () => {
    assert.deepEqual(withoutEmptyHeaders({ constructor: "" } as never), { ok: true, value: {} });
  });

  test("parameters: dropped when all their values are empty; what a list repeats stays", () => {
    const kept = withoutEmptyParameters(queryOf("include=&prefix=&maxresults=&where=a&blockid=&blockid=x"));
    assert.deepEqual(kept.ok ? [...kept.value.keys()] : [], ["prefix", "where", "blockid"]);
  });

  test("parameters: each of the table is refused by its name, with its reason", () => {
    for (const [name, reason] of Object.entries(refusedEmptyParameters)) {
      const refused = withoutEmptyParameters(queryOf(`${name}=`));
      assert.deepEqual(refused.ok ? undefined : [refused.error.code, refused.error.details.Reason], ["InvalidQueryParameterValue", reason]);
    }
  });

  test("a request without empty values is passed on as it is", () => {
    const target = parseTarget("/account/c/b?comp=metadata", "h", { hostSuffixes: [] });
    assert.ok(target.ok);
    const headers = { "x-ms-meta-a": "1" };
    const said = withoutEmptyValues(target.value, headers);
    assert.ok(said.ok && said.value.target === target.value && said.value.headers === headers);
  });
});
