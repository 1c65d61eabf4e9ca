/**
 * The archive of an image without the times of its build: engines without an exporter of their own (that of Docker) can't leave them out.
 *
 * Invariant: two builds whose files have the same names, content, modes and owners give the same bytes.
 */
import { createHash } from "node:crypto";
import { archiveEnd, blockBytes, entriesOf, entryOf, withTime } from "./tar.ts";

interface ImageConfig {
  created: string;
  readonly history?: { created?: string }[];
  readonly rootfs: { diff_ids: string[] };
}

interface ImageManifest {
  readonly Config: string;
  readonly RepoTags: readonly string[];
  readonly Layers: readonly string[];
}

const digestOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/**
 * Returns the pieces of an archive for `docker load` from what `docker save` has written of one image, whose bytes it changes: each file of each
 * layer, and the image itself, has the given time, in seconds since 1970.
 */
export function timelessImage(saved: Buffer, seconds: number): Buffer[] {
  const files = new Map([...entriesOf(saved)].map(({ name, content }) => [name, content]));
  const file = (name: string): Buffer => {
    const found = files.get(name);
    if (found === undefined) throw new Error(`the engine's archive of the image has no ${name}`);
    return found;
  };
  const [manifest] = JSON.parse(file("manifest.json").toString()) as readonly ImageManifest[];
  if (manifest === undefined) throw new Error("the engine's archive has no image");
  const layers = manifest.Layers.map((name) => timelessLayer(file(name), seconds));
  const digests = layers.map(digestOf);
  const config = JSON.parse(file(manifest.Config).toString()) as ImageConfig;
  const created = new Date(seconds * 1_000).toISOString();
  config.created = created;
  for (const each of config.history ?? []) each.created = created;
  config.rootfs.diff_ids = digests.map((digest) => `sha256:${digest}`);
  const configBytes = Buffer.from(JSON.stringify(config));
  const configName = `${digestOf(configBytes)}.json`;
  const names = digests.map((digest) => `${digest}.tar`);
  const described = Buffer.from(JSON.stringify([{ Config: configName, RepoTags: manifest.RepoTags, Layers: names }]));
  // Two layers without files are the same.
  const layerEntries = new Map(names.map((name, at) => [name, layers[at] as Buffer]));
  return [
    ...entryOf("manifest.json", described),
    ...entryOf(configName, configBytes),
    ...[...layerEntries].flatMap(([name, layer]) => entryOf(name, layer)),
    archiveEnd,
  ];
}

function timelessLayer(layer: Buffer, seconds: number): Buffer {
  let end = 0;
  for (const { name, kind, header, content } of entriesOf(layer)) {
    if ((kind === "x" || kind === "g") && /^\d+ [acm]time=/m.test(content.toString()))
      throw new Error(`${name}: the layer tells a time beside its headers`);
    withTime(header, seconds);
    end = content.byteOffset - layer.byteOffset + Math.ceil(content.length / blockBytes) * blockBytes;
  }
  // Engines differ in the number of empty blocks.
  return Buffer.concat([layer.subarray(0, end), archiveEnd]);
}
