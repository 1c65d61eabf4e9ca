import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { Logger } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { makeSecretFile } from "./cluster-secret.ts";
import { type IssuedToken, issuedTokenOf, issuedTokens, issuedTokensBeside, noteIssuedToken, revokeIssuedToken } from "./issued-tokens.ts";
import { WatchedSecret } from "./watched-secret.ts";

function secretFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "stamp-tokens-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "cluster-secret");
  makeSecretFile(file);
  return file;
}

const idOf = (number: number): string => number.toString(16).padStart(32, "0");
const living = (number: number): IssuedToken => ({ id: idOf(number), role: "operator", madeMs: number, endsMs: 2e12, revoked: false });
const admits = (watched: WatchedSecret, { text }: { readonly text: string }): string => watched.credential.admit(text, []).kind;

function made(running: WatchedSecret, file: string): { readonly text: string; readonly id: string } {
  const text = running.credential.reusableToken(60_000);
  const facts = issuedTokenOf(text);
  assert.ok(facts);
  noteIssuedToken(file, facts, Date.now());
  return { text, id: facts.id };
}

test("tokens for tools: listed, revoked one by one, in force in a running process and after a change of the secret", (t) => {
  const file = secretFile(t);
  const folder = issuedTokensBeside(file);
  const running = new WatchedSecret({ clusterSecretFile: file });
  const [one, other] = [made(running, file), made(running, file)];
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, `${one.id}.json`)).mode & 0o777, 0o600);
  const listed = (): unknown[] => issuedTokens(file, Date.now()).map(({ id, role, revoked }) => [id, role, revoked]);
  const both = (isRevoked: boolean): unknown[] => [
    [one.id, "operator", isRevoked],
    [other.id, "operator", false],
  ];
  const byId = (rows: unknown[]): unknown[] => rows.sort((a, b) => String(a).localeCompare(String(b)));
  assert.deepEqual(byId(listed()), byId(both(false)));
  for (const id of ["unknown", "../cluster-secret", `../${one.id}`, ""]) assert.equal(revokeIssuedToken(file, id, Date.now()), false);
  assert.equal(revokeIssuedToken(file, one.id, Date.now()), true);
  // Files that describe no token hide none.
  for (const [number, text] of ["no JSON", "null", "{}", "x".repeat(5_000)].entries())
    writeFileSync(join(folder, `${idOf(number)}.json`), text);
  mkdirSync(join(folder, `${idOf(9)}.json`));
  assert.deepEqual(byId(listed()), byId(both(true)));
  running.look();
  assert.deepEqual([admits(running, one), admits(running, other)], ["refused", "admitted"]);
  const started = new WatchedSecret({ clusterSecretFile: file });
  assert.deepEqual([admits(started, one), admits(started, other)], ["refused", "admitted"]);
  makeSecretFile(`${file}.next`);
  running.look();
  assert.equal(running.credential.accepts.length, 2);
  assert.deepEqual([admits(running, one), admits(running, other)], ["refused", "admitted"]);
});

test("tokens for tools: a list that is removed makes no revoked token good again in a running process", (t) => {
  const file = secretFile(t);
  const running = new WatchedSecret({ clusterSecretFile: file });
  const token = made(running, file);
  revokeIssuedToken(file, token.id, Date.now());
  running.look();
  assert.equal(admits(running, token), "refused");
  rmSync(issuedTokensBeside(file), { recursive: true });
  running.look();
  assert.equal(admits(running, token), "refused");
});

test("tokens for tools: files that are older than any token leave the list, and those of tokens that are still good do not", (t) => {
  const file = secretFile(t);
  const folder = issuedTokensBeside(file);
  const nowMs = Date.now();
  for (const number of [1, 2]) noteIssuedToken(file, { ...living(number), endsMs: nowMs + 60_000 }, nowMs);
  for (const number of [1, 2]) revokeIssuedToken(file, idOf(number), nowMs);
  const left = `${idOf(3)}.json.1.abc.new`;
  writeFileSync(join(folder, left), "half");
  const daysAgo = (days: number): number => nowMs / 1_000 - days * 86_400;
  for (const name of [`${idOf(1)}.json`, `${idOf(1)}.revoked`, left]) utimesSync(join(folder, name), daysAgo(2), daysAgo(2));
  for (const name of [`${idOf(2)}.json`, `${idOf(2)}.revoked`]) utimesSync(join(folder, name), daysAgo(1), daysAgo(1));
  noteIssuedToken(file, living(4), nowMs);
  assert.deepEqual(readdirSync(folder).sort(), [`${idOf(2)}.json`, `${idOf(2)}.revoked`, `${idOf(4)}.json`]);
  assert.deepEqual(
    issuedTokens(file, nowMs + 60_000).map(({ id }) => id),
    [idOf(4)],
  );
});

test("tokens for tools: made and revoked by many processes at once, all are listed and all are revoked", {
  timeout: 120_000,
}, async (t) => {
  const file = secretFile(t);
  const script = `
    const { noteIssuedToken, revokeIssuedToken } = await import(${JSON.stringify(new URL("issued-tokens.ts", import.meta.url).href)});
    const [file, name] = process.argv.slice(1);
    for (let at = 0; at < 20; at++) {
      const id = (Number(name) * 1000 + at).toString(16).padStart(32, "0");
      noteIssuedToken(file, { id, role: "operator", madeMs: 0, endsMs: 2e12, revoked: false }, Date.now());
      if (!revokeIssuedToken(file, id, Date.now())) throw new Error(id + " is on no list");
    }`;
  const run = promisify(execFile);
  await Promise.all(["1", "2", "3"].map((name) => run(process.execPath, ["--input-type=module", "-e", script, file, name])));
  const all = issuedTokens(file, Date.now());
  assert.equal(all.length, 60);
  assert.ok(all.every(({ revoked }) => revoked));
  assert.equal(readdirSync(issuedTokensBeside(file)).length, 120);
});

test("tokens for tools: a list that others can write is refused by commands, and told once by a process, which goes on refusing", (t) => {
  const file = secretFile(t);
  const folder = issuedTokensBeside(file);
  const said: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (words) => said.push(words),
    error: (words, facts) => said.push(`${words} ${facts?.problem}`),
  };
  const running = new WatchedSecret({ clusterSecretFile: file }, logger);
  const token = made(running, file);
  revokeIssuedToken(file, token.id, Date.now());
  for (const mode of [0o720, 0o702]) {
    chmodSync(folder, mode);
    assert.throws(() => noteIssuedToken(file, living(1), 0), /chmod go-w/);
    assert.throws(() => issuedTokens(file, 0), /chmod go-w/);
    assert.throws(() => revokeIssuedToken(file, token.id, 0), /chmod go-w/);
  }
  for (let times = 0; times < 3; times++) running.look();
  assert.equal(admits(running, token), "refused");
  assert.match(said.join("\n"), /^[^\n]*can't be trusted[^\n]*chmod go-w[^\n]*$/);
  chmodSync(folder, 0o700);
  for (let times = 0; times < 3; times++) running.look();
  assert.deepEqual(said.slice(1), ["the list of tokens can be used again"]);
  // The process tells once of a list that it can not read, too.
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "no folder");
  for (let times = 0; times < 3; times++) running.look();
  assert.equal(said.length, 3);
  assert.equal(admits(running, token), "refused");
});

test("tokens for tools: the list has a bound, and says so", (t) => {
  const file = secretFile(t);
  const folder = issuedTokensBeside(file);
  for (let number = 0; number < 1_000; number++) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { revoked: _, ...facts } = living(number);
    writeFileSync(join(folder, `${idOf(number)}.json`), JSON.stringify(facts));
  }
  assert.throws(() => noteIssuedToken(file, living(1_000), 0), /lists 1000 tokens/);
  assert.equal(revokeIssuedToken(file, idOf(7), 0), true);
  for (let number = 0; number < 3_000; number++) writeFileSync(join(folder, `${number}`), "");
  assert.throws(() => issuedTokens(file, 0), /more than 4000 files/);
});
