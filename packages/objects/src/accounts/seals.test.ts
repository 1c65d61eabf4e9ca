import assert from "node:assert/strict";
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { emptyBytes, unwrap, utf8 } from "@stamp/base";
import { versionOfRow } from "../rows/row.ts";
import { TestTable } from "../testing/table.ts";
import type { Account } from "./operation.ts";
import { AccountSeals, masterKeyIdIn, type SealingCiphers } from "./seals.ts";

const ciphers: SealingCiphers = {
  hmacSha256: (key, message) => createHmac("sha256", key).update(message).digest(),
  sealAes256Gcm: (key, nonce, content, boundTo) => {
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(boundTo);
    return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]);
  },
  openAes256Gcm: (key, nonce, sealed, boundTo) => {
    const cipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 }).setAAD(boundTo);
    cipher.setAuthTag(sealed.subarray(sealed.length - 16));
    const content = cipher.update(sealed.subarray(0, sealed.length - 16));
    try {
      return Buffer.concat([content, cipher.final()]);
    } catch {
      return undefined;
    }
  },
};

const masterKey = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);

/** Random bytes that are the same in every run. */
function sealsWith(...keys: readonly Uint8Array[]): AccountSeals {
  let made = 0;
  return new AccountSeals(
    ciphers,
    (length) => createHmac("sha512", "test").update(String(made++)).digest().subarray(0, length),
    () => keys,
  );
}

const secretKey = "dGhlIGtleSBvZiB0aGUgYWNjb3VudA==";
const account: Account = {
  name: "acct",
  keys: [secretKey, "c2Vjb25k"],
  delegationSecret: utf8("the delegation secret"),
  serviceProperties: { blob: "text" },
  configuredDigest: utf8("the digest of the keys"),
  encryptionScopes: [{ name: "scope", key: utf8("the key of the encryption scope."), disabled: true }],
  createdMs: 0,
  geoRole: "",
};
const secrets = [secretKey, "c2Vjb25k", "the delegation secret", "the digest of the keys", "the key of the encryption scope."];

function holding(seals: AccountSeals | undefined): TestTable {
  const table = new TestTable();
  if (seals) table.seals = seals;
  table.run({ case: "putAccount", value: { account, onlyIfAbsent: true } });
  return table;
}

const rowOf = (table: TestTable): Uint8Array => table.sorted()[0]?.value ?? emptyBytes;
const shown = (row: Uint8Array): string => Buffer.from(row).toString("latin1");

const read = (table: TestTable, name = "acct"): Account => {
  const result = table.run({ case: "getAccount", value: { account: name } });
  assert.ok(result.case === "account");
  return result.value;
};

const failureOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
};

const golden = new URL("../../../../tests/golden/row/v4/sealed-account.bin", import.meta.url);

test("account at rest: no secret is in the row, all are read back, and the bytes are frozen", () => {
  const table = holding(sealsWith(masterKey(1)));
  const row = rowOf(table);
  assert.equal(versionOfRow(row), 4, "a release that knows no seals refuses the row, instead of finding no keys");
  for (const secret of secrets) {
    assert.ok(!shown(row).includes(secret), secret);
    assert.ok(shown(rowOf(holding(undefined))).includes(secret), `without a master key it is there: ${secret}`);
  }
  assert.ok(shown(row).includes("scope") === false && shown(row).includes("text"), "what is no secret stays as it was");
  const list = table.run({ case: "listAccounts", value: { marker: "", maxResults: 10 } });
  const sealedBy = sealsWith(masterKey(1)).ids[0];
  for (const held of [read(table), list.case === "accounts" ? list.value.accounts[0] : undefined])
    assert.deepEqual(
      { ...held, delegationSecret: shown(held?.delegationSecret ?? emptyBytes) },
      {
        ...account,
        sealedBy,
        createdMs: table.wallMs,
        delegationSecret: "the delegation secret",
        configuredDigest: held?.configuredDigest,
        encryptionScopes: held?.encryptionScopes,
      },
    );
  assert.deepEqual(
    read(table).encryptionScopes.map(({ key, ...rest }) => ({ ...rest, key: shown(key) })),
    [{ name: "scope", disabled: true, key: "the key of the encryption scope." }],
  );
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(golden)) {
    mkdirSync(new URL(".", golden), { recursive: true });
    writeFileSync(golden, row);
  }
  assert.deepEqual(new Uint8Array(row), new Uint8Array(readFileSync(golden)));
});

test("account at rest: a row from before the master key is read, and sealed when it is written next", () => {
  const table = holding(undefined);
  assert.equal(versionOfRow(rowOf(table)), 3);
  table.seals = sealsWith(masterKey(1));
  assert.deepEqual(read(table).keys, account.keys);
  assert.equal(versionOfRow(rowOf(table)), 3, "reads write nothing");
  table.run({
    case: "changeAccount",
    value: { account: "acct", serviceProperties: { queue: "q" }, expected: { keys: account.keys, serviceProperties: {} } },
  });
  assert.equal(versionOfRow(rowOf(table)), 4);
  assert.ok(!shown(rowOf(table)).includes(secretKey));
  assert.deepEqual([read(table).keys, read(table).serviceProperties], [account.keys, { blob: "text", queue: "q" }]);
});

test("account at rest: below its level no row becomes sealed, what is sealed stays so, and before the level is known nothing is written", () => {
  let made = 0;
  const table = new TestTable();
  table.seals = sealsWith(masterKey(1));
  table.mayWrite = false;
  table.run({ case: "putAccount", value: { account, onlyIfAbsent: true } });
  const change = () =>
    table.run({
      case: "changeAccount",
      value: { account: "acct", serviceProperties: { queue: String(made++) }, expected: { keys: account.keys, serviceProperties: {} } },
    });
  assert.equal(versionOfRow(rowOf(table)), 3, "the release before reads it after a way back");
  change();
  assert.equal(versionOfRow(rowOf(table)), 3);
  table.mayWrite = undefined;
  const before = rowOf(table);
  assert.match(failureOf(change), /has not heard the feature level/);
  assert.deepEqual(rowOf(table), before);
  table.mayWrite = true;
  change();
  assert.equal(versionOfRow(rowOf(table)), 4);
  for (table.mayWrite of [false, undefined]) {
    change();
    assert.equal(versionOfRow(rowOf(table)), 4, "a secret that was sealed is never stored openly again");
  }
  assert.deepEqual(read(table).keys, account.keys);
});

test("account at rest: a new master key opens what the one before has sealed, and seals what is written next", () => {
  const table = holding(sealsWith(masterKey(1)));
  const before = shown(rowOf(table));
  table.seals = sealsWith(masterKey(2), masterKey(1));
  assert.deepEqual(read(table).keys, account.keys);
  const first = read(table).sealedBy;
  table.run({ case: "changeAccount", value: { account: "acct", serviceProperties: {}, expected: { serviceProperties: {} } } });
  assert.notEqual(shown(rowOf(table)), before);
  assert.deepEqual([first, read(table).sealedBy], [sealsWith(masterKey(1)).ids[0], sealsWith(masterKey(2)).ids[0]]);
  table.seals = sealsWith(masterKey(2));
  assert.deepEqual(read(table).keys, account.keys, "the one before is not needed any more");
  table.seals = sealsWith(masterKey(1));
  assert.match(
    failureOf(() => read(table)),
    /masterKeyMissing/,
  );
});

test("account at rest: keys that change under a running process are taken at the next use", () => {
  let keys = [masterKey(1)];
  const seals = new AccountSeals(
    ciphers,
    (length) => new Uint8Array(length).fill(7),
    () => keys,
  );
  const old = seals.seal("acct", utf8("content")) ?? emptyBytes;
  const [first] = seals.ids;
  keys = [masterKey(2), masterKey(1)];
  assert.deepEqual(seals.ids, [...sealsWith(masterKey(2)).ids, first]);
  const sealed = seals.seal("acct", utf8("content")) ?? emptyBytes;
  assert.deepEqual([old, sealed].map(masterKeyIdIn), seals.ids.toReversed());
  for (const each of [old, sealed]) assert.ok(seals.open("acct", each).ok);
  keys = [masterKey(2)];
  assert.deepEqual(
    [old, sealed].map((each) => seals.open("acct", each).ok),
    [false, true],
  );
});

test("account at rest: without its master key nothing is read or written, and the error names the key and the guide", () => {
  const [id] = sealsWith(masterKey(1)).ids;
  assert.match(id ?? "", /^[0-9a-f]{16}$/);
  for (const [held, has] of [
    [undefined, "none"],
    [sealsWith(masterKey(3)), sealsWith(masterKey(3)).ids[0]],
  ] as const) {
    const table = holding(sealsWith(masterKey(1)));
    const row = shown(rowOf(table));
    table.seals = held ?? new TestTable().seals;
    const put = { case: "putAccount", value: { account: { ...account, keys: ["b3RoZXI="] }, onlyIfAbsent: false } } as const;
    for (const work of [
      () => read(table),
      () => table.run(put),
      () => table.run({ case: "listAccounts", value: { marker: "", maxResults: 9 } }),
    ]) {
      const failure = failureOf(work);
      assert.match(
        failure,
        new RegExp(`masterKeyMissing.*account acct are sealed by master key ${id}, and this .* has ${has}\\b.*keys-at-rest`),
      );
    }
    assert.equal(shown(rowOf(table)), row);
  }
});

test("account at rest: every changed byte, a cut and a row of another account do not open", () => {
  const seals = sealsWith(masterKey(1));
  const sealed = seals.seal("acct", utf8("content")) as Uint8Array;
  assert.equal(shown(unwrap(seals.open("acct", sealed))), "content");
  for (let at = 0; at < sealed.length; at++) {
    const opened = seals.open(
      "acct",
      sealed.map((byte, i) => (i === at ? byte ^ 0x10 : byte)),
    );
    assert.ok(!opened.ok && ["damaged", "masterKeyMissing"].includes(opened.failure.reason), `byte ${at}`);
  }
  for (const length of [0, 1, 9, 70, 96, sealed.length - 1])
    assert.equal(seals.open("acct", sealed.subarray(0, length)).ok, false, `${length} bytes`);
  assert.equal(seals.open("acct2", sealed).ok, false, "copied into the row of another account");
  assert.notEqual(shown(seals.seal("acct", utf8("content")) as Uint8Array), shown(sealed), "sealed twice, and nothing is alike");
});
