/**
 * Bytes of a real metadata store are flipped, cut off or zeroed, one damage at a time, and each time a child process opens it: either every
 * key is there as it was acknowledged, or the store is refused. STAMP_EVERY_BYTE=1 takes every byte of every file instead of some.
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { allRules, leaseEpoch, type RuleName, rulesWithout, toHex, unwrap, utf8 } from "@stamp/base";
import { type CompleteStoreWorld, silentLogger } from "@stamp/ports";
import { quickFolder, storesIn } from "../testing/real-stores.ts";
import { LockStore } from "./store.ts";

type Damage = "flip" | "cut" | "zero";
interface Case {
  readonly file: string;
  readonly damage: Damage;
  readonly at: number;
}
type Verdict = "whole" | "refused" | "wrong";

const zeroedBytes = 512;

const worldOf = (folder: string, rules = allRules): CompleteStoreWorld => ({ ...storesIn(folder), logger: silentLogger, rules });

async function contentOf(store: LockStore): Promise<string[]> {
  const content: string[] = [];
  for await (const [key, value] of store.everything()) content.push(`${toHex(key)} ${toHex(value)}`);
  return content;
}

/** Tables, a manifest with a history, and a log: what a lock service leaves that was started three times. */
async function made(folder: string): Promise<string[]> {
  let version = 0;
  for (let start = 0; start < 3; start++) {
    const store = unwrap(await LockStore.open(worldOf(folder)));
    if (start === 0) await store.initialise("2b1f3c04-7f5e-4d0a-9a57-000000000001");
    for (let i = 0; i < 12; i++) {
      version += 1;
      const value = utf8(`value ${version} of this key`.repeat(3));
      await store.commit([], [[`sm/extent/${String((version * 7) % 30).padStart(16, "0")}`, { value, version }]], version);
    }
    const lease = { name: "stream-manager", holder: "sm", identity: "i", instance: "j", incarnation: 1, address: "a:1", termMs: 6_000 };
    await store.commit([{ ...lease, epoch: leaseEpoch(start + 1), ended: false, refused: false }], [], version);
    if (start === 2) {
      const content = await contentOf(store);
      await store.close();
      return content;
    }
    await store.close();
  }
  throw new Error("not reached");
}

function hurt(folder: string, { file, damage, at }: Case): void {
  const path = join(folder, file);
  const bytes = readFileSync(path);
  if (damage === "flip") bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
  if (damage === "zero") bytes.fill(0, at, Math.min(bytes.length, at + zeroedBytes));
  writeFileSync(path, damage === "cut" ? bytes.subarray(0, at) : bytes);
}

async function verdictOf(good: string, content: readonly string[], each: Case, rulesOff: readonly RuleName[]): Promise<Verdict> {
  const folder = mkdtempSync(join(quickFolder, "stamp-byte-"));
  try {
    cpSync(good, folder, { recursive: true });
    hurt(folder, each);
    const rules = rulesWithout(...rulesOff);
    const opened = await LockStore.open(worldOf(folder, rules)).catch(() => undefined);
    if (opened?.ok !== true) return "refused";
    try {
      return (await contentOf(opened.value)).join() === content.join() ? "whole" : "wrong";
    } catch {
      return "refused";
    } finally {
      await opened.value.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const filesOf = (folder: string): string[] =>
  ["stores/metadata", "files"].flatMap((part) => readdirSync(join(folder, part)).map((name) => `${part}/${name}`));

function casesOf(folder: string, every: boolean): Case[] {
  const cases: Case[] = [];
  for (const file of filesOf(folder)) {
    const size = statSync(join(folder, file)).size;
    const step = every ? 1 : Math.max(1, Math.floor(size / 10));
    // Odd offsets too, and the last byte.
    for (let at = 0; at < size; at += step) {
      cases.push({ file, damage: "flip", at: Math.min(size - 1, at + (every ? 0 : at % 7)) });
      cases.push({ file, damage: "cut", at });
      if (!every || at % 64 === 0) cases.push({ file, damage: "zero", at });
    }
  }
  return cases;
}

interface Asked {
  readonly good: string;
  readonly content: readonly string[];
  readonly rulesOff: readonly RuleName[];
}

/** One case after another in a child; after one that ends it, the next child goes on. */
async function verdicts(t: TestContext, cases: readonly Case[], asked: Asked): Promise<Map<Verdict | "died", Case[]>> {
  const found = new Map<Verdict | "died", Case[]>();
  let answered: (verdict: Verdict | "died") => void = () => {};
  const start = (): ChildProcess => {
    const env = { ...process.env, STAMP_EVERY_BYTE_CHILD: "1", NODE_TEST_CONTEXT: "" };
    const child = fork(import.meta.filename, { env, stdio: "ignore" });
    child.on("message", (verdict: Verdict) => answered(verdict));
    child.on("exit", () => answered("died"));
    child.send(asked);
    return child;
  };
  let child = start();
  t.after(() => child.kill("SIGKILL"));
  for (const each of cases) {
    const answer = new Promise<Verdict | "died">((resolve) => {
      answered = resolve;
    });
    child.send(each);
    const verdict = await answer;
    if (verdict === "died") child = start();
    found.set(verdict, [...(found.get(verdict) ?? []), each]);
  }
  child.kill("SIGKILL");
  return found;
}

function childLoop(): void {
  let asked: Asked | undefined;
  process.on("message", (message: Asked | Case) => {
    if ("good" in message) asked = message;
    else if (asked !== undefined)
      void verdictOf(asked.good, asked.content, message, asked.rulesOff).then((verdict) => process.send?.(verdict));
  });
}

if (process.env.STAMP_EVERY_BYTE_CHILD === "1") childLoop();
else {
  test("metadata store: whatever byte of whatever file is flipped, cut or zeroed, all keys are there or it is refused", async (t) => {
    const good = mkdtempSync(join(tmpdir(), "stamp-good-"));
    t.after(() => rmSync(good, { recursive: true, force: true }));
    const content = await made(good);
    const kinds = filesOf(good).map((file) => file.replace(/\d+/, "N"));
    for (const kind of ["stores/metadata/N.log", "stores/metadata/N.ldb", "stores/metadata/MANIFEST-N", "files/metadata-mark"])
      assert.ok(kinds.includes(kind), `${kind} of ${kinds.join()}`);
    const cases = casesOf(good, process.env.STAMP_EVERY_BYTE === "1");
    const found = await verdicts(t, cases, { good, content, rulesOff: [] });
    const told = [...found].map(([verdict, of]) => `${verdict} ${of.length}`).join(", ");
    t.diagnostic(`${cases.length} damages: ${told}`);
    assert.deepEqual([...(found.get("wrong") ?? []), ...(found.get("died") ?? [])], [], told);
    assert.ok((found.get("refused")?.length ?? 0) > 0 && (found.get("whole")?.length ?? 0) > 0, told);
    // A test that can't fail is none: without the rule the ends of the log are lost and nothing is said.
    const ends = cases.filter(({ file }) => file.endsWith(".log"));
    const unguarded = await verdicts(t, ends, { good, content, rulesOff: ["storeNotBehind"] });
    assert.ok((unguarded.get("wrong")?.length ?? 0) > 0);
  });
}
