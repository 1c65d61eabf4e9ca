/**
 * Never accept and ignore: every header and query parameter that the SDK's operations have stands in the code that reads requests, or is
 * refused by name there. What the SDK can send is read from its published parameters, so that a newer SDK with a new one fails here.
 */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkUnsupported } from "@stamp/azure-rest";
import { sdkParameterNames } from "./sdk-parameters.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

/** Of operations that are 501 as a whole: Rename Container. */
const ofRefusedOperations: ReadonlySet<string> = new Set(["x-ms-source-container-name"]);
/** `x-ms-blob-` before a name that is read with it (parseContentProperties, parseConditions). */
const composed = /^x-ms-blob-(content-type|content-encoding|content-language|content-disposition|cache-control|if-.*)$/;

async function sourceText(folder: string): Promise<string> {
  const files = await readdir(join(root, folder), { recursive: true });
  const sources = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
  return (await Promise.all(sources.map((file) => readFile(join(root, folder, file), "utf8")))).join("\n").toLowerCase();
}

describe("parameters of the Blob service", () => {
  test("every one that the SDK can send is read, or refused by its name", async () => {
    const names = await sdkParameterNames();
    assert.ok(names.size > 90, `${names.size} names`);
    const text = `${await sourceText("packages/azure-rest/src")}${await sourceText("services/front-end/src")}`;
    const unknown: string[] = [];
    for (const name of names) {
      if (name === "accept") continue;
      const isRead = new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text) || composed.test(name) || ofRefusedOperations.has(name);
      const refused = checkUnsupported("GetBlob", { [name]: "x" });
      if (!isRead && refused.ok) unknown.push(name);
    }
    assert.deepEqual(unknown, []);
  });

  test("features that are not here are 501 by the header that asks for them", () => {
    for (const name of ["x-ms-encryption-key", "x-ms-source-encryption-key", "x-ms-structured-body", "x-ms-file-request-intent"]) {
      const refused = checkUnsupported("PutBlockFromUrl", { [name]: "x" });
      assert.ok(!refused.ok && refused.error.status === 501 && refused.error.message.includes(name), name);
    }
    const condition = checkUnsupported("DeleteBlob", { "x-ms-access-tier-if-modified-since": "x" });
    assert.equal(condition.ok ? 200 : condition.error.status, 501);
  });
});
