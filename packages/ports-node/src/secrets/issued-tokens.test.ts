import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecretFile } from "./cluster-secret.ts";
import { issuedTokenOf, issuedTokens, issuedTokensBeside, noteIssuedToken, revokeIssuedToken } from "./issued-tokens.ts";
import { WatchedSecret } from "./watched-secret.ts";

test("tokens for tools: listed, revoked one by one, in force in a running process and after a change of the secret", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-tokens-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const clusterSecretFile = join(folder, "cluster-secret");
  makeSecretFile(clusterSecretFile);
  const file = issuedTokensBeside(clusterSecretFile);
  const running = new WatchedSecret({ clusterSecretFile });
  const [one, other] = [1, 2].map(() => {
    const text = running.credential.reusableToken(60_000);
    const facts = issuedTokenOf(text);
    assert.ok(facts);
    noteIssuedToken(file, facts, Date.now());
    return { text, id: facts.id };
  });
  assert.ok(one && other);
  const admits = (watched: WatchedSecret, { text }: { readonly text: string }): string => watched.credential.admit(text, []).kind;
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(
    issuedTokens(file).map(({ id, role, revoked }) => [id, role, revoked]),
    [
      [one.id, "operator", false],
      [other.id, "operator", false],
    ],
  );
  assert.equal(revokeIssuedToken(file, "unknown"), false);
  assert.equal(revokeIssuedToken(file, one.id), true);
  appendFileSync(file, "no JSON\nnull\n{}\n");
  running.look();
  assert.deepEqual([admits(running, one), admits(running, other)], ["refused", "admitted"]);
  const started = new WatchedSecret({ clusterSecretFile });
  assert.deepEqual([admits(started, one), admits(started, other)], ["refused", "admitted"]);
  makeSecretFile(`${clusterSecretFile}.next`);
  running.look();
  assert.equal(running.credential.accepts.length, 2);
  assert.deepEqual([admits(running, one), admits(running, other)], ["refused", "admitted"]);
  // A token that has ended leaves the list when the next one is made.
  noteIssuedToken(file, { id: "third", role: "operator", madeMs: 0, endsMs: Date.now() + 120_000, revoked: false }, Date.now() + 90_000);
  assert.deepEqual(
    issuedTokens(file).map(({ id }) => id),
    ["third"],
  );
});
