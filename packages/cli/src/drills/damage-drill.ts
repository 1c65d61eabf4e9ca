/**
 * The drill `damage`: a cluster is hurt by hand, in one way after another, each on an extent or node of its own. After each, what fsck says,
 * and how long until nothing is wrong any more. In the end every blob is read back.
 */
import { dirname } from "node:path";
import { type ActOutcome, BlobClient, type DamageAct, type DrillTarget, untilReady } from "@stamp/drills";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { fsckRunning } from "../fsck/fsck-command.ts";

export interface DamageStep {
  readonly damage: string;
  /** Lines that fsck printed. */
  readonly said: readonly string[];
  /** Time from the end of fsck until it finds nothing, in milliseconds. */
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
  /** Sealed extents with all their copies that no damage was done to yet. */
  readonly fresh: ExtentInfo[];
  /** File that belongs to no extent, and the node where it lies. */
  stray: { readonly node: string; readonly path: string };
}

interface Damage {
  readonly name: string;
  /** Hurts something; gives what the node itself or an offline check said, when that is not fsck of the running cluster. */
  readonly inflict: (scene: Scene) => Promise<readonly string[]>;
  /** fsck of the running cluster must name this (`kind`); undefined: it was mended before, or is only told offline. */
  readonly expected: string | undefined;
  /** Acts of a person after fsck has told him. */
  readonly afterwards?: (scene: Scene) => Promise<unknown>;
}

const mebibyte = 1024 * 1024;
/** Settings of the cluster: small extents, so that many are sealed; small journal segments, so that a node that loses one has others. */
export const damageRoles = {
  "partition-server": { extentTargetBytes: 8 * mebibyte },
  "extent-node": { journalSegmentBytes: 9 * mebibyte, journalBatchBytesMax: 4 * mebibyte },
} as const;
const headerBytes = 8192;
const blobBytes = 4 * mebibyte;
const blobs = 30;
const mendWithinMs = 90_000;
const lockService = "lock-service-1";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the path of an extent's file in the folder of a node. */
function extentPath(id: bigint): string {
  const name = id.toString(16).padStart(14, "0");
  return `files/extents/${name.slice(-2)}/${name}.extent`;
}

/** Takes a sealed extent that nothing was done to, and hurts the file of one of its replicas. Returns the node and the file. */
async function hurtReplica(scene: Scene, ...acts: readonly ((path: string) => DamageAct)[]): Promise<Scene["stray"]> {
  const extent = scene.fresh.shift();
  const node = extent?.nodeIds[scene.fresh.length % extent.nodeIds.length];
  if (extent === undefined || node === undefined) throw new Error("not enough sealed extents");
  const path = extentPath(extent.location?.extentId ?? 0n);
  for (const act of acts) await scene.target.hand(node, act(path));
  return { node, path };
}

/** Works on the folder of a node while the node is down. */
async function heldDown(
  { target }: Scene,
  node: string,
  work: (hand: (act: DamageAct) => Promise<ActOutcome>) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  await target.ask({ do: "hold", name: node });
  try {
    return await work((act) => target.hand(node, act));
  } finally {
    await target.ask({ do: "start", name: node });
    await untilReady(target);
  }
}

const strayName = "00ffffffffff.extent.bak";

const damages: readonly Damage[] = [
  {
    name: "one bit of a sealed extent's content is flipped",
    inflict: async (scene) => {
      await hurtReplica(scene, (path) => ({ do: "flip", path, offset: headerBytes + 100_000, length: 1 }));
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "the last page of a sealed extent's file is cut off",
    inflict: async (scene) => {
      await hurtReplica(scene, (path) => ({ do: "cut", path, bytes: 4096 }));
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "a sealed extent's file is deleted",
    inflict: async (scene) => {
      await hurtReplica(scene, (path) => ({ do: "remove", path }));
      return [];
    },
    expected: "damagedReplica",
  },
  {
    name: "both headers of a sealed extent's file are destroyed",
    inflict: async (scene) => {
      const header = (offset: number) => (path: string) => ({ do: "flip", path, offset, length: 64 }) as const;
      await hurtReplica(scene, header(0), header(4096));
      return [];
    },
    expected: "replica",
  },
  {
    name: "a file that belongs to no extent lies among the others",
    inflict: async (scene) => {
      const at = (path: string): string => `${dirname(path)}/${strayName}`;
      scene.stray = await hurtReplica(scene, (path) => ({ do: "write", path: at(path), text: "left behind" }));
      scene.stray = { ...scene.stray, path: at(scene.stray.path) };
      return [];
    },
    // A person looked at it and moved it away.
    afterwards: ({ target, stray: { node, path } }) => target.hand(node, { do: "move", path, to: "looked-at" }),
    expected: "strayFile",
  },
  {
    name: "LevelDB of a node is deleted while it is down; fsck --rebuild makes the table anew",
    inflict: (scene) =>
      heldDown(scene, "extent-node-1", async (hand) => {
        await hand({ do: "remove", path: "stores" });
        const before = await hand({ do: "check", deep: false });
        const rebuilt = await hand({ do: "rebuild" });
        const after = await hand({ do: "check", deep: true });
        return [...before.said, ...rebuilt.said, `afterwards: ${after.said.length} problems`];
      }),
    expected: undefined,
  },
  {
    name: "LevelDB of a node is deleted while it is down; it starts like that",
    inflict: (scene) =>
      heldDown(scene, "extent-node-2", async (hand) => {
        await hand({ do: "remove", path: "stores" });
        return ["the node rebuilds the table itself"];
      }),
    expected: undefined,
  },
  {
    name: "the newest journal segment of a node is deleted while it is down",
    inflict: (scene) =>
      heldDown(scene, "extent-node-3", async (hand) => {
        await hand({ do: "remove-newest-segment" });
        return (await hand({ do: "check", deep: false })).said;
      }),
    expected: undefined,
  },
  {
    name: "a node's whole folder is emptied while it is down: a new, empty disk",
    inflict: (scene) =>
      heldDown(scene, "extent-node-4", async (hand) => {
        await hand({ do: "empty" });
        return ["its replicas are made anew elsewhere or on it"];
      }),
    expected: undefined,
  },
  {
    name: "one bit of a lock service's store is flipped while it is down; it takes everything from the others",
    inflict: async (scene) => {
      const said = await heldDown(scene, lockService, async (hand) => {
        const { file } = await hand({ do: "largest-of-store" });
        if (file === undefined) throw new Error("the metadata store has no file");
        const offset = Math.floor(file.bytes / 2);
        await hand({ do: "flip", path: file.path, offset, length: 1 });
        return [`bit flipped at byte ${offset} of ${file.path}`];
      });
      const { file } = await scene.target.hand(lockService, { do: "largest-of-store" });
      return [...said, `${lockService} serves from ${file?.path}`];
    },
    expected: undefined,
  },
  {
    name: "a lock service's whole folder is emptied while it is down; it takes everything from the others",
    inflict: (scene) =>
      heldDown(scene, lockService, async (hand) => {
        await hand({ do: "empty" });
        return ["nobody types a command"];
      }),
    expected: undefined,
  },
];

/** `chosen`: kinds of damage to do (default: all). */
export async function runDamageDrill(
  target: DrillTarget,
  tell: (line: string) => void,
  chosen: (name: string) => boolean = () => true,
): Promise<DamageReport> {
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
    const scene: Scene = { target, fresh: await sealedExtents(target), stray: { node: "", path: "" } };
    tell(`${blobs} blobs of ${blobBytes >> 20} MiB, ${scene.fresh.length} sealed extents with all their copies`);
    for (const damage of damages.filter(({ name }) => chosen(name))) {
      tell(`\n${damage.name}`);
      const said = [...(await damage.inflict(scene))];
      const report = await fsckRunning(target.inspector, transport, true);
      said.push(...report.problems.map((each) => `${each.kind} ${each.node ?? ""} ${each.extent ?? ""}: ${each.what}`));
      for (const line of said) tell(`  ${line}`);
      await damage.afterwards?.(scene);
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
      const wrong = await wrongWith(client, i);
      if (wrong === undefined) readBack += 1;
      else broken.push(`blob-${i} ${wrong}`);
    }
    tell(`\n${readBack} of ${blobs} blobs read back and equal`);
    return { ok: broken.length === 0, steps, blobs, readBack, broken };
  } finally {
    client.close();
  }
}

/** Reads a blob back, again while no answer comes; undefined: it is what was written. */
async function wrongWith(client: BlobClient, blob: number): Promise<string | undefined> {
  const endMs = performance.now() + mendWithinMs;
  for (;;) {
    const startMs = performance.now();
    const got = await client.get("damage", `blob-${blob}`);
    const isAnswered = got.kind === "answer" && got.status < 500;
    if (isAnswered && got.status === 200) return got.body.equals(contentOf(blob)) ? undefined : "is not what was written";
    const why = got.kind === "answer" ? `${got.status} ${got.body.toString("utf8").slice(0, 200)}` : got.why;
    if (isAnswered || performance.now() > endMs) {
      return `can't be read: ${why}, after ${Math.round(performance.now() - startMs)} ms`;
    }
    await pause(500);
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

async function untilClean(target: DrillTarget, transport: DrillTarget["transport"]): Promise<boolean> {
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
