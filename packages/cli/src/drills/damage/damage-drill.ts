/**
 * The drill `damage`: a cluster is hurt by hand, in one way after another, each on an extent or node of its own. After each, what fsck says,
 * and how long until nothing is wrong any more. In the end every blob is read back.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { checkDisk, rebuildDisk } from "@stamp/extent-node";
import { MetadataClient } from "@stamp/metadata-store";
import { silentLogger, type Transport } from "@stamp/ports";
import { NodeClock, nodeWorld } from "@stamp/ports-node";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { fsckRunning } from "../fsck/fsck-command.ts";
import { restoreStore } from "../metadata-command.ts";
import { BlobClient } from "./blob-client.ts";
import type { DrillTarget } from "./target.ts";
import { untilReady } from "./target.ts";

export interface DamageStep {
  readonly damage: string;
  /** What fsck said, in its words. */
  readonly said: readonly string[];
  /** From the end of fsck until it finds nothing any more. */
  readonly mendedAfterMs: number | undefined;
}

export interface DamageReport {
  readonly ok: boolean;
  readonly steps: readonly DamageStep[];
  readonly blobs: number;
  readonly readBack: number;
  readonly broken: readonly string[];
}

interface Scene {
  readonly target: DrillTarget;
  readonly transport: Transport;
  readonly dataDir: string;
  /** Sealed extents with all their copies that no damage was done to yet. */
  readonly fresh: ExtentInfo[];
  stray: string;
}

interface Damage {
  readonly name: string;
  /** Hurts something; gives what the node itself or an offline check said, when that is not fsck of the running cluster. */
  readonly inflict: (scene: Scene) => Promise<readonly string[]>;
  /** fsck of the running cluster must name this (`kind`); undefined: it was mended before, or is only told offline. */
  readonly expected: string | undefined;
  /** What a person does when fsck has told him. */
  readonly afterwards?: (scene: Scene) => void;
}

const headerBytes = 8192;
const blobBytes = 4 * 1024 * 1024;
const blobs = 30;
const mendWithinMs = 90_000;
/** Nodes copy the metadata every 30 s. */
const copyWithinMs = 300_000;
const lockService = "lock-service-1";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function extentFile(dataDir: string, node: string, id: bigint): string {
  const name = id.toString(16).padStart(14, "0");
  return join(dataDir, node, "files", "extents", name.slice(-2), `${name}.extent`);
}

function flip(path: string, offset: number, length = 1): void {
  const file = openSync(path, "r+");
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, offset);
  writeSync(
    file,
    bytes.map((byte) => byte ^ 0x55),
    0,
    length,
    offset,
  );
  closeSync(file);
}

/** A sealed extent, and the file of one of its replicas. */
function take(scene: Scene): { readonly file: string; readonly node: string; readonly id: bigint } {
  const extent = scene.fresh.shift();
  const node = extent?.nodeIds[scene.fresh.length % extent.nodeIds.length];
  if (extent === undefined || node === undefined) throw new Error("not enough sealed extents");
  const id = extent.location?.extentId ?? 0n;
  return { file: extentFile(scene.dataDir, node, id), node, id };
}

async function heldDown(scene: Scene, node: string, work: () => Promise<readonly string[]>): Promise<readonly string[]> {
  await scene.target.ask({ do: "hold", name: node });
  try {
    return await work();
  } finally {
    await scene.target.ask({ do: "start", name: node });
    await untilReady(scene.target);
  }
}

const offline = (scene: Scene, node: string) => ({
  world: nodeWorld({ dataDir: join(scene.dataDir, node), name: node, logger: silentLogger }),
  nodeId: node,
});

const damages: readonly Damage[] = [
  {
    name: "one bit of a sealed extent's content is flipped",
    inflict: async (scene) => {
      const { file } = take(scene);
      flip(file, headerBytes + 100_000);
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "the last page of a sealed extent's file is cut off",
    inflict: async (scene) => {
      const { file } = take(scene);
      truncateSync(file, statSync(file).size - 4096);
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "a sealed extent's file is deleted",
    inflict: async (scene) => {
      rmSync(take(scene).file);
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "both headers of a sealed extent's file are destroyed",
    inflict: async (scene) => {
      const { file } = take(scene);
      flip(file, 0, 64);
      flip(file, 4096, 64);
      return [];
    },
    expected: "replica",
  },
  {
    name: "a file that belongs to no extent lies among the others",
    inflict: async (scene) => {
      const { file } = take(scene);
      scene.stray = join(dirname(file), "00ffffffffff.extent.bak");
      writeFileSync(scene.stray, "left behind");
      return [];
    },
    // A person looked at it and moved it away.
    afterwards: (scene) => renameSync(scene.stray, join(scene.dataDir, "looked-at")),
    expected: "strayFile",
  },
  {
    name: "LevelDB of a node is deleted while it is down; fsck --rebuild makes the table anew",
    inflict: async (scene) =>
      heldDown(scene, "extent-node-1", async () => {
        rmSync(join(scene.dataDir, "extent-node-1", "stores"), { recursive: true });
        const before = await checkDisk(offline(scene, "extent-node-1"), false);
        const rebuilt = await rebuildDisk(offline(scene, "extent-node-1"));
        const after = await checkDisk(offline(scene, "extent-node-1"), true);
        const what = rebuilt.ok
          ? `rebuilt: ${rebuilt.value.extents} extents, ${rebuilt.value.damaged} damaged`
          : `not rebuilt: ${rebuilt.failure.message}`;
        return [...before.problems.map((each) => `${each.kind}: ${each.what}`), what, `afterwards: ${after.problems.length} problems`];
      }),
    expected: undefined,
  },
  {
    name: "LevelDB of a node is deleted while it is down; it starts like that",
    inflict: async (scene) =>
      heldDown(scene, "extent-node-2", async () => {
        rmSync(join(scene.dataDir, "extent-node-2", "stores"), { recursive: true });
        return ["the node rebuilds the table itself"];
      }),
    expected: undefined,
  },
  {
    name: "the newest journal segment of a node is deleted while it is down",
    inflict: async (scene) =>
      heldDown(scene, "extent-node-3", async () => {
        const folder = join(scene.dataDir, "extent-node-3", "files", "journal");
        const generation = (name: string): bigint => {
          const file = openSync(join(folder, name), "r");
          const bytes = Buffer.alloc(24);
          readSync(file, bytes, 0, 24, 0);
          closeSync(file);
          return bytes.readBigUInt64LE(16);
        };
        const [newest] = readdirSync(folder)
          .filter((name) => name.endsWith(".segment"))
          .sort((a, b) => Number(generation(b) - generation(a)));
        rmSync(join(folder, newest as string));
        const checked = await checkDisk(offline(scene, "extent-node-3"), false);
        return checked.problems.map((each) => `${each.kind}: ${each.what}`);
      }),
    expected: undefined,
  },
  {
    name: "a node's whole folder is deleted while it is down: a new, empty disk",
    inflict: async (scene) =>
      heldDown(scene, "extent-node-4", async () => {
        rmSync(join(scene.dataDir, "extent-node-4"), { recursive: true });
        return ["its replicas are made anew elsewhere or on it"];
      }),
    expected: undefined,
  },
  {
    name: "one bit of the metadata store is flipped while the lock service is down; it refuses, until the bit is put back",
    inflict: async (scene) => {
      await scene.target.ask({ do: "hold", name: lockService });
      const { said, flipBack } = await refusedWithFlippedBit(scene);
      await scene.target.ask({ do: "hold", name: lockService });
      flipBack();
      await scene.target.ask({ do: "start", name: lockService });
      await untilReady(scene.target);
      return [said];
    },
    expected: undefined,
  },
  {
    name: "one bit of the metadata store is flipped; it refuses, and is restored from the newest copy on a node",
    inflict: async (scene) => {
      const copy = await heldWithCopyOfAll(scene);
      const { said } = await refusedWithFlippedBit(scene);
      if (!said.includes("stamp metadata restore --replace FILE")) throw new Error(`the way back is not told: ${said}`);
      const names = (await scene.target.status()).processes.map(({ name }) => name);
      await Promise.all(names.map((name) => scene.target.ask({ do: "hold", name })));
      const { keys, version } = await restoreStore(join(scene.dataDir, lockService), copy, true);
      for (const name of names) await scene.target.ask({ do: "start", name });
      await untilReady(scene.target);
      return [said, `restored from ${copy}: ${keys} keys, as of transaction ${version}`];
    },
    expected: undefined,
  },
];

/** Flips a bit of the store of the lock service, which is held, and starts it. Gives what the status says, and what flips the bit back. */
async function refusedWithFlippedBit({ dataDir, target }: Scene): Promise<{ readonly said: string; readonly flipBack: () => void }> {
  const store = join(dataDir, lockService, "stores", "metadata");
  // The log is empty until the first transaction after a start: then all keys are in a table.
  const sizes = readdirSync(store)
    .filter((name) => /\.(log|ldb)$/.test(name))
    .map((name) => ({ path: join(store, name), bytes: statSync(join(store, name)).size }));
  const { path, bytes } = sizes.toSorted((a, b) => b.bytes - a.bytes)[0] as { path: string; bytes: number };
  const at = Math.floor(bytes / 2);
  flip(path, at);
  await target.ask({ do: "start", name: lockService });
  return { said: await untilRefused(target, `bit flipped at byte ${at} of ${path}`), flipBack: () => flip(path, at) };
}

/**
 * Holds the lock service at a moment when the newest copy on a node has every transaction: what is made after a copy is lost by a restore.
 * Gives the path of the copy.
 */
async function heldWithCopyOfAll({ dataDir, target }: Scene): Promise<string> {
  const metadata = new MetadataClient({ clock: new NodeClock(), transport: target.transport }, (await target.status()).lockService);
  const endMs = performance.now() + copyWithinMs;
  while (performance.now() < endMs) {
    const position = await metadata.position(1_000);
    const newest = newestCopy(dataDir);
    if (position.ok && newest !== undefined && newest.version >= position.value.version) {
      await target.ask({ do: "hold", name: lockService });
      return newest.path;
    }
    await pause(50);
  }
  throw new Error(`no copy of the metadata had every transaction within ${copyWithinMs / 1_000} s`);
}

/** The name of a copy is the number of its last transaction. */
function newestCopy(dataDir: string): { readonly path: string; readonly version: number } | undefined {
  const folders = readdirSync(dataDir).filter((name) => name.startsWith("extent-node-"));
  const copies = folders.flatMap((node) => {
    const folder = join(dataDir, node, "files", "metadata-copies");
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^\d+\.snapshot$/.test(name)) : [];
    return names.map((name) => ({ path: join(folder, name), version: Number.parseInt(name, 10) }));
  });
  return copies.toSorted((a, b) => b.version - a.version)[0];
}

/** What `stamp status` shows of a lock service that does not serve its store. */
async function untilRefused(target: DrillTarget, what: string): Promise<string> {
  for (let tries = 0; tries < 1_200; tries++) {
    const process = (await target.status()).processes.find((each) => each.name === lockService);
    if (process?.state === "damaged") return `${lockService} is ${process.state}: ${process.waitingFor.join(", ")}`;
    await pause(100);
  }
  throw new Error(`${lockService} did not say that its store is damaged (${what})`);
}

export async function runDamageDrill(target: DrillTarget, tell: (line: string) => void): Promise<DamageReport> {
  const { transport } = target;
  const client = BlobClient.fromConnectionString(target.connectionString, { timeoutMs: 30_000 });
  const broken: string[] = [];
  const steps: DamageStep[] = [];
  try {
    await client.createContainer("damage");
    for (let i = 0; i < blobs; i++) {
      const put = await client.put("damage", `blob-${i}`, contentOf(i));
      if (put.kind !== "answer" || put.status !== 201) throw new Error(`blob-${i} was not written`);
    }
    const { dataDir } = await target.status();
    const scene: Scene = { target, transport, dataDir, fresh: await sealedExtents(target), stray: "" };
    tell(`${blobs} blobs of ${blobBytes >> 20} MiB, ${scene.fresh.length} sealed extents with all their copies`);
    for (const damage of damages) {
      tell(`\n${damage.name}`);
      const said = [...(await damage.inflict(scene))];
      const report = await fsckRunning(target.inspector, transport, true);
      said.push(...report.problems.map((each) => `${each.kind} ${each.node ?? ""} ${each.extent ?? ""}: ${each.what}`));
      for (const line of said) tell(`  ${line}`);
      damage.afterwards?.(scene);
      const startMs = performance.now();
      const mended = await untilClean(target, transport);
      const mendedAfterMs = mended ? Math.round(performance.now() - startMs) : undefined;
      tell(mended ? `  nothing is wrong any more after ${(performance.now() - startMs) / 1_000} s` : "  NOT MENDED");
      steps.push({ damage: damage.name, said, mendedAfterMs });
      if (!mended) broken.push(`not mended: ${damage.name}`);
      if (damage.expected !== undefined && !report.problems.some((each) => each.kind === damage.expected))
        broken.push(`not found by fsck: ${damage.name}`);
    }
    let readBack = 0;
    for (let i = 0; i < blobs; i++) {
      const got = await client.get("damage", `blob-${i}`);
      if (got.kind === "answer" && got.status === 200 && got.body.equals(contentOf(i))) readBack += 1;
      else broken.push(`blob-${i} is not what was written`);
    }
    tell(`\n${readBack} of ${blobs} blobs read back and equal`);
    return { ok: broken.length === 0, steps, blobs, readBack, broken };
  } finally {
    client.close();
  }
}

function contentOf(blob: number): Buffer {
  const bytes = Buffer.alloc(blobBytes);
  for (let i = 0; i < blobBytes; i += 4) bytes.writeUInt32LE((i * 2_654_435_761 + blob * 97) >>> 0, i);
  return bytes;
}

async function sealedExtents(target: DrillTarget): Promise<ExtentInfo[]> {
  for (let tries = 0; tries < 300; tries++) {
    const sealed = (await target.inspector.extents()).filter((each) => each.state === ExtentState.SEALED);
    const whole = sealed.filter((each) => each.intactCopies === 3 && (each.location?.sealedLengthBytes ?? 0n) > 200_000n);
    if (whole.length >= 6) return whole;
    await pause(100);
  }
  throw new Error("not enough extents were sealed");
}

async function untilClean(target: DrillTarget, transport: Transport): Promise<boolean> {
  const endMs = performance.now() + mendWithinMs;
  while (performance.now() < endMs) {
    try {
      const report = await fsckRunning(target.inspector, transport, false);
      const copies = await target.inspector.extents();
      const missing = copies.some((each) => each.state === ExtentState.SEALED && each.intactCopies < 3);
      if (report.problems.length === 0 && !missing) return true;
    } catch {
      // A manager may be on its way.
    }
    await pause(500);
  }
  return false;
}
