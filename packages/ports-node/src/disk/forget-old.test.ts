/** Old values of a LevelDB store: in no file after they were asked to be forgotten, however they got there; what is there now stays. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fromUtf8, utf8 } from "@stamp/base";
import type { KeyValue } from "@stamp/ports";
import { NodeKeyValueStores } from "./key-value.ts";

const secret = "k3y-of-an-account";
const put = (key: string, value: string) => [{ kind: "put", key: utf8(key), value: utf8(value) }] as const;
const sync = { sync: true };

test("key-value store: a replaced or deleted value is in no file after it was forgotten, from the log, one file or several", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "stamp-forget-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const stores = new NodeKeyValueStores(root);
  const open = async (name: string): Promise<KeyValue> => {
    const opened = await stores.open(name);
    assert.ok(opened.kind === "opened");
    return opened.store;
  };
  const filesWith = (name: string): string[] =>
    readdirSync(join(root, name)).filter((file) => readFileSync(join(root, name, file)).includes(secret));
  for (const [name, reopens] of [
    ["in the log", []],
    ["in a file", ["between"]],
    ["in two files", ["between", "after"]],
  ] as const) {
    let store = await open(name);
    const reopened = async (when: string): Promise<void> => {
      if (!(reopens as readonly string[]).includes(when)) return;
      await store.close();
      store = await open(name);
    };
    await store.batch(put("a/0", "stays"), sync);
    await store.batch(put("a/replaced", `{"keys":"${secret}"}`), sync);
    await store.batch(put("a/deleted", `{"keys":"${secret}"}`), sync);
    await store.batch(put("b/other", "out of the range"), sync);
    await reopened("between");
    await store.batch(put("a/replaced", "{}"), sync);
    await store.batch([{ kind: "delete", key: utf8("a/deleted") }], sync);
    await reopened("after");
    assert.notDeepEqual(filesWith(name), [], `${name}: it is there before`);
    await store.forgetOld?.({ gte: utf8("a/"), lt: utf8("a0") });
    assert.deepEqual(filesWith(name), [], name);
    const left: string[] = [];
    for await (const [key, value] of store.range({})) left.push(`${fromUtf8(key)} ${fromUtf8(value)}`);
    assert.deepEqual(left, ["a/0 stays", "a/replaced {}", "b/other out of the range"], name);
    await store.close();
    await (await open(name)).close();
    assert.deepEqual(filesWith(name), [], `${name}: opened again`);
  }
});
