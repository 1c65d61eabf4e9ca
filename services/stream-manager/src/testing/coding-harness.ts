/** Shared by the tests of this folder (no test itself): a stamp of eight extent nodes, and one sealed extent on it. */
import { concatBytes, type RuleName, unwrap } from "@stamp/base";
import { fragmentBytesOf } from "@stamp/extent";
import { ExtentFragments, type ExtentInfo } from "@stamp/wire";
import type { StreamManagerConfig } from "../config.ts";
import { Cluster, first } from "./cluster.ts";

export const timeoutMs = 5_000;
export const names = ["en1", "en2", "en3", "en4", "en5", "en6", "en7", "en8"];
export const config = { erasureCoding: "off" as const, deletionGraceMs: 3_000, repairAfterMs: 4_000 };
export const clusterOf = (
  seed: number,
  managers: string[] = ["sm1"],
  without: RuleName[] = [],
  more: Partial<StreamManagerConfig> = {},
): Cluster => new Cluster({ seed, nodes: names, managers, config: { ...config, ...more }, without });

export interface Sealed {
  readonly id: bigint;
  readonly content: Uint8Array;
}

/** One sealed extent, whole on three nodes. */
export async function sealed(cluster: Cluster, stream = "/s"): Promise<Sealed> {
  await cluster.open(stream, 1);
  await cluster.sim.sleep(3_500);
  const extent = first(await cluster.next(stream, 1, 0n));
  let end = 0n;
  for (let i = 0; i < 3; i++) {
    const text = `${i} of three `.repeat(25_000);
    end = unwrap(await cluster.append(extent, 1, end, text, timeoutMs)).endBytes;
  }
  await cluster.open(stream, 2);
  await cluster.until("whole", async () => {
    const one = await infoOf(cluster, extent.extentId);
    return one?.intactCopies === 3 && one.checksum !== undefined;
  });
  const parts: Uint8Array[] = [];
  for (let at = 0n; at < end; ) {
    const request = { extentId: extent.extentId, offsetBytes: at, lengthBytes: 1 << 20 };
    const { payload } = unwrap(await cluster.en(extent.addresses[0] ?? "").readRaw(request, { timeoutMs }));
    parts.push(payload);
    at += BigInt(payload.length);
  }
  return { id: extent.extentId, content: concatBytes(parts) };
}

export const infoOf = async (cluster: Cluster, id: bigint): Promise<ExtentInfo | undefined> =>
  (await cluster.extents()).find((one) => one.location?.extentId === id);

export const code = (cluster: Cluster, id: bigint, profile = "rs-4-2") =>
  cluster.sm((sm, left) => sm.codeExtent({ extentId: id, profile }, { timeoutMs: left }));

export const fragments = (cluster: Cluster, name: string) => cluster.sim.world("owner").transport.client(name, ExtentFragments);

/** Every data fragment, read from where the record says. A node that has just started, or was just left by a repair, is asked again. */
export async function contentOf(cluster: Cluster, extent: Sealed): Promise<Uint8Array> {
  let content: Uint8Array | undefined;
  await cluster.until("every data fragment is read", async () => {
    content = await readOnce(cluster, extent);
    return content !== undefined;
  });
  return content as Uint8Array;
}

async function readOnce(cluster: Cluster, { id, content }: Sealed): Promise<Uint8Array | undefined> {
  const info = await infoOf(cluster, id);
  const lengthBytes = fragmentBytesOf(content.length, 4);
  const parts: Uint8Array[] = [];
  for (const [index, { version, address }] of (info?.coded?.fragments.slice(0, 4) ?? []).entries()) {
    const request = { extentId: id, version, index, offsetBytes: 0n, lengthBytes };
    const answer = await fragments(cluster, address).readFragment(request, { timeoutMs });
    if (!answer.ok) return undefined;
    parts.push(answer.value.payload);
  }
  return concatBytes(parts).subarray(0, content.length);
}

/** Files of the extent on nodes that are up, as `node: kind`. */
export function filesOf(cluster: Cluster): string[] {
  return [...cluster.nodes].flatMap((name) =>
    cluster.sim
      .disk(name)
      .paths()
      .filter((path) => /\.(fragment|making|extent)$/.test(path))
      .map((path) => `${name}: ${path.slice(path.lastIndexOf("."))}`),
  );
}

export const isCoded = async (cluster: Cluster, id: bigint): Promise<boolean> => {
  const info = await infoOf(cluster, id);
  return info?.coded !== undefined && info.attempt === "";
};
