import assert from "node:assert/strict";
import { test } from "node:test";
import { loggedTarget, urlWithoutSignature } from "./shown-url.ts";

const signature = "c2VjcmV0";
/** Ways to write the name `sig` that a server reads as it. */
const written = ["sig", "SIG", "Sig", "s%69g", "%73%69%67", "%53i%47", "si%67"];

test("shown URLs: a signature is found however its name is written, alone, in front, behind and between", () => {
  for (const name of written) {
    for (const query of [
      `${name}=${signature}`,
      `comp=list&${name}=${signature}`,
      `${name}=${signature}&comp=list`,
      `a=b&${name}=${signature}&comp=list`,
      `a=b;${name}=${signature}`,
      `sig=x&${name}=${signature}`,
    ]) {
      assert.doesNotMatch(loggedTarget(`/acct/c/b?${query}`), /c2VjcmV0/, query);
      assert.doesNotMatch(urlWithoutSignature(`https://host/acct/c/b?${query}`), /c2VjcmV0/, query);
    }
  }
});

test("shown URLs: what can't be read is taken for a secret; what is none stays as it was", () => {
  assert.equal(loggedTarget(`/a?si%g=${signature}&comp=list`), "/a?REDACTED&comp=list");
  assert.equal(loggedTarget(`/a?%ff=${signature}`), "/a?REDACTED");
  assert.equal(urlWithoutSignature(`https://h/a?si%g=${signature}&x=1`), "https://h/a?x=1");
  assert.equal(loggedTarget("/a/sig=x?restype=container&prefix=sig%3D1"), "/a/sig=x?restype=container&prefix=sig%3D1");
  assert.equal(loggedTarget("/a"), "/a");
  assert.equal(loggedTarget("/q/messages/1?popreceipt=00ff&visibilitytimeout=1"), "/q/messages/1?popreceipt=REDACTED&visibilitytimeout=1");
});

test("shown URLs: a signature in a URL that was taken for a name, or for a value, is found, encoded once or more often", () => {
  for (const target of [
    `/a/c/b%3Fsv=1&sig=${signature}`,
    `/a/c/b%3fsig=${signature}?comp=block`,
    `/a/c/b%253Fsv%253D1%2526sig%253D${signature}`,
    `/a/c/https%3A%2F%2Fh%2Fb%3Fsp%3Dr%26SiG%3D${signature}%26se%3D1`,
    `/a/c?prefix=https%3A%2F%2Fh%2Fb%3Fs%69g%3D${signature}&comp=list`,
    `/a/c?restype=container?sv=1&sp=r?sig=${signature}`,
  ])
    assert.doesNotMatch(loggedTarget(target), /c2VjcmV0/, target);
  assert.equal(loggedTarget(`/a/b%3Fsig=${signature}?comp=tags`), "/a/b%3Fsig=REDACTED?comp=tags");
});

test("shown URLs: a source is told without its signature, its user and its fragment", () => {
  assert.equal(urlWithoutSignature("https://h/a/b?sv=1&sp=r&s%69g=x&snapshot=2026#y"), "https://h/a/b?snapshot=2026");
  assert.equal(urlWithoutSignature("https://user:secret@h/a/b"), "https://h/a/b");
  assert.equal(urlWithoutSignature("https://h/a@b?x=1"), "https://h/a@b?x=1");
});
