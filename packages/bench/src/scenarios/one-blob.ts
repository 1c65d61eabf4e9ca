/** Scenarios in which all clients write to one blob: other blocks, other pages, or at its end. */
import type { BlobClient } from "@stamp/drills";
import { answered, kib, mustAnswer, type NameSpace, type Scenario } from "./scenario.ts";

const pageBytes = 512;
const pages = 4_096;
/** A blob has at most 100,000 uncommitted blocks; later ones replace earlier ones. */
const blockIds = 50_000;
/** An append blob takes 50,000 appends. */
const appendsOfBlob = 40_000;
const appendBlobs = 5;
const appendBytes = 100;

export function oneBlobScenarios(client: BlobClient, { shared, own }: NameSpace): readonly Scenario[] {
  const path = (blob: string): string => `/${shared}/${blob}-${own}`;
  const make = async (blob: string, type: "PageBlob" | "AppendBlob"): Promise<void> => {
    mustAnswer(answered(await client.createContainer(shared)), 201, 409);
    const size: Record<string, string> = type === "PageBlob" ? { "x-ms-blob-content-length": String(pages * pageBytes) } : {};
    mustAnswer(answered(await client.call("PUT", path(blob), { "x-ms-blob-type": type, ...size })), 201);
  };
  const write = async (to: string, headers: Record<string, string>, body: Buffer): Promise<boolean> =>
    mustAnswer(answered(await client.call("PUT", to, headers, body)), 201);
  const [block, page, record] = [kib, pageBytes, appendBytes].map((bytes) => Buffer.alloc(bytes, 7)) as [Buffer, Buffer, Buffer];

  return [
    {
      name: "put block of 1 KiB, one blob",
      contentBytes: kib,
      like: { method: "PUT", bytes: kib },
      prepare: async () => void mustAnswer(answered(await client.createContainer(shared)), 201, 409),
      operation: (number) => {
        const id = Buffer.from(String(number % blockIds).padStart(6, "0")).toString("base64");
        return write(`${path("blocks")}?comp=block&blockid=${encodeURIComponent(id)}`, {}, block);
      },
    },
    {
      name: "put page of 512 bytes, one blob",
      contentBytes: pageBytes,
      like: { method: "PUT", bytes: kib },
      prepare: () => make("pages", "PageBlob"),
      operation: (number) => {
        const start = ((number * 7_919) % pages) * pageBytes;
        const range = `bytes=${start}-${start + pageBytes - 1}`;
        return write(`${path("pages")}?comp=page`, { "x-ms-range": range, "x-ms-page-write": "update" }, page);
      },
    },
    {
      name: "append 100 bytes, one blob",
      contentBytes: appendBytes,
      like: { method: "PUT", bytes: kib },
      prepare: async () => {
        for (let blob = 0; blob < appendBlobs; blob++) await make(`append-${blob}`, "AppendBlob");
      },
      operation: (number) => write(`${path(`append-${Math.floor(number / appendsOfBlob)}`)}?comp=appendblock`, {}, record),
    },
  ];
}
