/** The string to sign, as a refused signature shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { shownString } from "./shown-string.ts";

test("a string to sign is shown without keys, tokens and signatures; all else of it stays", () => {
  const text = [
    "PUT",
    "",
    "x-ms-blob-type:BlockBlob",
    "x-ms-copy-source:https://h/acct/c/b?sp=r&sig=secret%3D&sv=1",
    "x-ms-copy-source-authorization:Bearer secret",
    "x-ms-encryption-algorithm:AES256",
    "x-ms-encryption-key:secret=",
    "x-ms-encryption-key-sha256:digest=",
    "x-ms-meta-sig:kept",
    "x-ms-source-encryption-key:secret=",
    "/acct/c/sig:kept",
    "comp:block",
    "sig:secret",
  ];
  const shown = [
    "PUT",
    "",
    "x-ms-blob-type:BlockBlob",
    "x-ms-copy-source:https://h/acct/c/b?sp=r&sig=REDACTED&sv=1",
    "x-ms-copy-source-authorization:REDACTED",
    "x-ms-encryption-algorithm:AES256",
    "x-ms-encryption-key:REDACTED",
    "x-ms-encryption-key-sha256:digest=",
    "x-ms-meta-sig:kept",
    "x-ms-source-encryption-key:REDACTED",
    "/acct/c/sig:kept",
    "comp:block",
    "sig:REDACTED",
  ];
  assert.deepEqual(shownString(text.join("\n")).split("\n"), shown);
  // A SAS names the headers that it binds in any case.
  assert.equal(shownString("r\nX-Ms-Encryption-Key:secret\n"), "r\nX-Ms-Encryption-Key:REDACTED\n");
});
