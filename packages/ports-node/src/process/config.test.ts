/** Configuration: precedence, conversion, and errors that name what to change. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { ConfigError, HelpRequested, loadConfig, unknownNames } from "./config.ts";

const schema = z.object({
  name: z.string().min(2).describe("Who it is."),
  leaseTermMs: z.number().int().min(1).default(6_000).describe("Term of a lease."),
  verbose: z.boolean().default(false),
  blobListen: z.string().default("127.0.0.1:10000"),
  nodes: z.array(z.string()).default([]),
  accounts: z.array(z.object({ name: z.string() })).optional(),
});

test("config: defaults, then the environment, then flags", () => {
  assert.deepEqual(loadConfig(schema, { STAMP_NAME: "from-env" }, []), {
    name: "from-env",
    leaseTermMs: 6_000,
    verbose: false,
    blobListen: "127.0.0.1:10000",
    nodes: [],
  });
  const config = loadConfig(schema, { STAMP_NAME: "a1", STAMP_LEASE_TERM_MS: "5", STAMP_NODES: "x, y", STAMP_VERBOSE: "true" }, [
    "--name=b1",
    "--blob-listen",
    "0.0.0.0:1",
    "--no-verbose",
  ]);
  assert.deepEqual(config, { name: "b1", leaseTermMs: 5, verbose: false, blobListen: "0.0.0.0:1", nodes: ["x", "y"] });
  assert.equal(loadConfig(schema, {}, ["--verbose", "--name", "cc"]).verbose, true);
  assert.deepEqual(loadConfig(schema, { STAMP_ACCOUNTS: '[{"name":"x"}]' }, ["--name", "cc"]).accounts, [{ name: "x" }]);
});

test("config: a file comes below environment and flags; its unknown keys are errors", async () => {
  const folder = await mkdtemp(join(tmpdir(), "stamp-config-"));
  try {
    const file = join(folder, "config.json");
    await writeFile(file, JSON.stringify({ name: "file", leaseTermMs: 1, nodes: ["n"] }));
    const config = loadConfig(schema, { STAMP_LEASE_TERM_MS: "2" }, ["--config", file, "--name", "flag"]);
    assert.deepEqual([config.name, config.leaseTermMs, config.nodes], ["flag", 2, ["n"]]);
    assert.equal(loadConfig(schema, { STAMP_CONFIG: file }, []).name, "file");
    await writeFile(file, JSON.stringify({ nam: "x" }));
    assert.throws(() => loadConfig(schema, {}, ["--config", file]), /unknown key nam/);
    await writeFile(file, "{");
    assert.throws(() => loadConfig(schema, {}, ["--config", file]), ConfigError);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("config: an error names the key, its environment variable and its flag; all of them at once", () => {
  assert.throws(
    () => loadConfig(schema, { STAMP_LEASE_TERM_MS: "soon" }, ["--name", "x"]),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, /leaseTermMs \(environment STAMP_LEASE_TERM_MS, flag --lease-term-ms\)/);
      assert.match(error.message, /name \(environment STAMP_NAME, flag --name\)/);
      return true;
    },
  );
  assert.throws(() => loadConfig(schema, {}, ["--nmae", "x"]), /unknown flag --nmae/);
  assert.throws(() => loadConfig(schema, {}, ["--name"]), /--name needs a value/);
});

test("config: what no setting is in the environment is told, with the nearest name that is one", () => {
  const known = ["STAMP_NAME", "STAMP_LEASE_TERM_MS"];
  const env = { STAMP_LEASE_TERM: "1", STAMP_NAEM: "1", STAMP_NAME: "1", STAMP_QWERTZUIOP: "1", HOME: "/" };
  assert.deepEqual(unknownNames(env, known), [
    { name: "STAMP_LEASE_TERM", nearest: "STAMP_LEASE_TERM_MS" },
    { name: "STAMP_NAEM", nearest: "STAMP_NAME" },
    { name: "STAMP_QWERTZUIOP", nearest: undefined },
  ]);
});

test("config: help lists every key with its default and meaning", () => {
  assert.throws(
    () => loadConfig(schema, {}, ["--help"]),
    (error: unknown) => {
      assert.ok(error instanceof HelpRequested);
      for (const text of ["--lease-term-ms", "STAMP_LEASE_TERM_MS", "6000", "Term of a lease.", "required", "Who it is."]) {
        assert.ok(error.message.includes(text), text);
      }
      return true;
    },
  );
});
