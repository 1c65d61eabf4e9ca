/**
 * Twenty rounds of kill -9 on a real cluster while a directory is renamed, an empty one and a full one are removed: each is done as a whole
 * or not at all, a reader sees one of both names, and whoever asks again ends what was left half done.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { accountKey } from "../conformance/scripted-stamp.ts";

const rounds = 20;
const fileCount = 12;
/** Longest time from the sending of the operations to the kill, in milliseconds: about as long as one of them takes. */
const killMaxMs = 100;
const answerMs = 30_000;
const healMs = 60_000;
const victims = ["front-end", "partition-server", "front-end", "extent-node"] as const;

const account = "lake";
const accounts = [{ name: account, keys: [accountKey], hierarchicalNamespace: true }];
const target = await startOwn({ accounts, frontEnds: 2 }, false);
after(() => target.close());
const blobPort = Number(new URL(/BlobEndpoint=([^;]+)/.exec(target.connectionString)?.[1] ?? "").port);
/** Ports of Data Lake Storage at both front-ends. */
const ports = [blobPort + 4, blobPort + 14];
const rights = generateAccountSASQueryParameters(
  {
    expiresOn: new Date(Date.now() + 7_200_000),
    permissions: AccountSASPermissions.parse("rwdlacup"),
    services: AccountSASServices.parse("b").toString(),
    resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
  },
  new StorageSharedKeyCredential(account, accountKey),
).toString();

interface Told {
  readonly status: number;
  readonly text: string;
}

/** Asks a front-end; undefined: it died, or can't say. */
async function ask(
  door: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Told | undefined> {
  const url = `http://127.0.0.1:${ports[door]}/${account}/lake${path}${path.includes("?") ? "&" : "?"}${rights}`;
  const signal = AbortSignal.timeout(answerMs);
  try {
    const answer = await fetch(url, { method, signal, headers: { "x-ms-version": "2024-11-04", ...headers }, ...(body && { body }) });
    const text = await answer.text();
    return answer.status < 500 ? { status: answer.status, text } : undefined;
  } catch {
    return undefined;
  }
}

/** Asks both front-ends in turns until one says something. */
async function told(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Told> {
  for (let attempt = 0, endMs = performance.now() + healMs; performance.now() < endMs; attempt++) {
    const answer = await ask(attempt % 2, method, path, headers, body);
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`${method} ${path} was not answered within ${healMs} ms`);
}

async function done(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<void> {
  const { status, text } = await told(method, path, headers, body);
  // Asked again after a lost answer, it may be there.
  assert.ok(status < 300 || status === 409, `${method} ${path}: ${status} ${text}`);
}

const listOf = (directory: string, recursive: boolean): string =>
  `?resource=filesystem&recursive=${recursive}&directory=${encodeURIComponent(directory)}`;
const namesOf = ({ text }: Told): string[] =>
  (JSON.parse(text) as { paths: { name: string }[] }).paths.map(({ name }) => name.split("/").slice(1).join("/"));

async function make(round: string): Promise<void> {
  for (const name of ["", "/old", "/empty", "/full", "/full/below"]) await done("PUT", `/${round}${name}?resource=directory`);
  for (let n = 0; n < fileCount; n++) {
    const path = `/${round}/old/f${n}`;
    await done("PUT", `${path}?resource=file`);
    await done("PATCH", `${path}?action=append&position=0&flush=true`, {}, `content ${n}`);
    await done("PUT", `/${round}/full/below/f${n}?resource=file`);
  }
}

const moveIn = (round: string) => [`/${round}/new`, { "x-ms-rename-source": `/lake/${round}/old` }] as const;

test("directories: processes are killed at any step of a rename and of removals, each is whole or not done, and can be ended", async () => {
  const tally = { answered: 0, "unanswered, done": 0, "unanswered, not done": 0, looks: 0 };
  await done("PUT", "?resource=filesystem");
  for (let number = 0; number < rounds; number++) {
    const round = `round${number}`;
    await make(round);
    const before = namesOf(await told("GET", listOf(round, false)));
    assert.deepEqual(before, ["empty", "full", "old"]);
    const { processes } = await target.status();
    const kind = victims[number % victims.length] as string;
    const alike = processes.filter(({ name }) => name.startsWith(kind)).map(({ name }) => name);
    const name = alike[Math.floor(number / victims.length) % alike.length] as string;
    const [to, from] = moveIn(round);
    const asked = Promise.all([
      ask(number % 2, "PUT", to, from),
      ask(number % 2, "DELETE", `/${round}/empty?recursive=false`),
      ask((number + 1) % 2, "DELETE", `/${round}/full?recursive=true`),
    ]);
    let isOver = false;
    const looks = (async () => {
      while (!isOver) {
        const seen = await ask((number + 1) % 2, "GET", listOf(round, false));
        if (seen?.status === 200) {
          tally.looks++;
          assert.equal(
            namesOf(seen).filter((name) => name === "old" || name === "new").length,
            1,
            `${round}: a reader saw ${namesOf(seen)}`,
          );
        } else await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * killMaxMs));
    await target.ask({ do: "signal", name, signal: "SIGKILL" });
    const answers = await asked;
    isOver = true;
    await looks;
    await judge(round, answers, tally);
  }
  console.log(JSON.stringify(tally));
});

async function judge(round: string, answers: readonly (Told | undefined)[], tally: Record<string, number>): Promise<void> {
  const after = namesOf(await told("GET", listOf(round, false)));
  const isDone = [after.includes("new"), !after.includes("empty"), !after.includes("full")];
  assert.equal(after.includes("old"), !isDone[0], `${round}: ${after}`);
  for (const [index, answer] of answers.entries()) {
    if (answer) assert.ok(answer.status < 300 && isDone[index], `${round}: ${answer.status} ${answer.text}, and then ${after}`);
    const what = answer ? "answered" : isDone[index] ? "unanswered, done" : "unanswered, not done";
    tally[what] = (tally[what] ?? 0) + 1;
  }
  const wholeFull = namesOf(await told("GET", listOf(round, true))).filter((name) => name.startsWith("full/below/"));
  assert.equal(wholeFull.length, isDone[2] ? 0 : fileCount, `${round}: ${wholeFull}`);

  // Another coordinator ends what was left, or finds it done.
  const [to, from] = moveIn(round);
  const again = [
    await told("PUT", to, { ...from, "if-none-match": "*" }),
    await told("DELETE", `/${round}/empty?recursive=false`),
    await told("DELETE", `/${round}/full?recursive=true`),
  ];
  for (const { status, text } of again) assert.ok(status < 300 || status === 404, `${round}, asked again: ${status} ${text}`);
  assert.deepEqual(namesOf(await told("GET", listOf(round, false))), ["new"]);
  for (let n = 0; n < fileCount; n++) assert.deepEqual((await told("GET", `/${round}/new/f${n}`)).text, `content ${n}`);
  for (const name of ["empty", "full", "old"]) {
    const { status } = await told("PUT", `/${round}/${name}?resource=directory`, { "if-none-match": "*" });
    assert.ok(status < 300 || status === 409, `${round}: ${name} made again: ${status}`);
    const below = namesOf(await told("GET", listOf(`${round}/${name}`, true)));
    assert.deepEqual(below, [], `${round}: ${name} was made again`);
  }
}
