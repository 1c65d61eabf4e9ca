import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { sasParameters, singleParameters } from "./single-parameters.ts";
import { parseTarget } from "./target.ts";

const codeOf = (query: string): string => {
  const parsed = parseTarget(`/acct/c/b?${query}`, "h:1", { hostSuffixes: [] });
  return parsed.ok ? "ok" : `${parsed.error.code} ${parsed.error.details.QueryParameterName}`;
};

test("parameters: one that is read stands in a query once, in any case and encoding; `include` and unknown ones may repeat", () => {
  for (const name of singleParameters) {
    assert.equal(codeOf(`${encodeURIComponent(name)}=a`), "ok");
    assert.equal(codeOf(`${encodeURIComponent(name)}=a&x=1&${encodeURIComponent(name)}=a`), `InvalidQueryParameterValue ${name}`);
  }
  assert.equal(codeOf("comp=list&COMP=list"), "InvalidQueryParameterValue comp");
  assert.equal(codeOf("comp=list&%63omp="), "InvalidQueryParameterValue comp");
  assert.equal(codeOf("include=metadata&include=tags&v=1&v=2"), "ok");
});

test("parameters: every name that is asked for by itself is known to be single", () => {
  const root = resolve(import.meta.dirname, "../../..");
  const asked = new Set<string>();
  for (const file of globSync("{packages/azure-rest,services/front-end}/src/**/*.ts", { cwd: root })) {
    const text = readFileSync(resolve(root, file), "utf8");
    for (const [, name = ""] of text.matchAll(/queryValue\([^"()]*"([^"]+)"\)/g)) asked.add(name);
  }
  assert.ok(asked.has("comp") && asked.has("$filter") && asked.has("popreceipt"), "the sources are read");
  assert.deepEqual(
    [...asked, ...sasParameters].filter((name) => !singleParameters.has(name)),
    [],
  );
});
