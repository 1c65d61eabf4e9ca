/** Scenarios of the Blob service. */
import { BlobClient, contentOf } from "@stamp/drills";
import { oneBlobScenarios } from "./one-blob.ts";
import { allAtOnce, answered, kib, mib, mustAnswer, type NameSpace, type Scenario, type Scenarios } from "./scenario.ts";

const blockBytes = 8 * mib;
const blocks = 8;
const listed = 10_000;
const pageRows = 1_000;

/** Returns blobs that are read in turns. */
const readable = (bytes: number): number => (bytes > mib ? 32 : 500);

export function blobScenarios(connectionString: string, space: NameSpace): Scenarios {
  const client = BlobClient.fromConnectionString(connectionString, { connectionsMax: 64, timeoutMs: 120_000 });
  const container = space.shared;
  const list = `${space.shared}-list`;
  const made = async (name: string): Promise<boolean> => mustAnswer(answered(await client.createContainer(name)), 201, 409);
  const put = async (where: string, name: string, body: Buffer): Promise<boolean> =>
    mustAnswer(answered(await client.put(where, name, body)), 201);
  const isThere = async (where: string, name: string): Promise<boolean> =>
    answered(await client.call("HEAD", `/${where}/${name}`, {})).status === 200;

  const putOf = (name: string, bytes: number): Scenario => {
    const body = contentOf("bench", bytes);
    return {
      name,
      contentBytes: bytes,
      like: { method: "PUT", bytes },
      prepare: async () => void (await made(container)),
      operation: (number) => put(container, `put-${bytes}-${space.own}-${number}`, body),
    };
  };
  const getOf = (name: string, bytes: number): Scenario => {
    const nameOf = (number: number): string => `read-${bytes}-${(number * 7_919) % readable(bytes)}`;
    return {
      name,
      contentBytes: bytes,
      like: { method: "GET", bytes },
      prepare: async () => {
        await made(container);
        const body = contentOf("bench", bytes);
        await allAtOnce(
          readable(bytes),
          8,
          async (number) => (await isThere(container, nameOf(number))) || put(container, nameOf(number), body),
        );
      },
      operation: async (number) => {
        const answer = answered(await client.get(container, nameOf(number)));
        mustAnswer(answer, 200);
        if (answer.body?.length !== bytes) throw new Error(`${answer.body?.length} bytes instead of ${bytes}`);
        return true;
      },
    };
  };

  const scenarios: readonly Scenario[] = [
    putOf("put 1 KiB", kib),
    getOf("get 1 KiB", kib),
    putOf("put 4 MiB", 4 * mib),
    getOf("get 4 MiB", 4 * mib),
    {
      name: "upload 64 MiB, blocks of 8 MiB",
      contentBytes: blocks * blockBytes,
      like: { method: "PUT", bytes: blockBytes },
      prepare: async () => void (await made(container)),
      operation: (number) => uploadInBlocks(client, `/${container}/blocks-${space.own}-${number}`),
    },
    {
      name: "list 1,000 of 10,000",
      contentBytes: 0,
      like: { method: "GET", bytes: kib },
      prepare: async () => {
        await made(list);
        const nameOf = (number: number): string => `blob-${String(number).padStart(6, "0")}`;
        if (await isThere(list, nameOf(listed - 1))) return;
        const body = contentOf("bench", kib);
        await allAtOnce(listed, 32, (number) => put(list, nameOf(number), body));
      },
      operation: async () => {
        const answer = answered(await client.call("GET", `/${list}?restype=container&comp=list&maxresults=${pageRows}`, {}));
        mustAnswer(answer, 200);
        const rows = (answer.body?.toString("latin1").split("<Blob>").length ?? 1) - 1;
        if (rows !== pageRows) throw new Error(`a page has ${rows} blobs`);
        return true;
      },
    },
    ...oneBlobScenarios(client, space),
  ];
  return { all: scenarios, close: () => client.close() };
}

const block = contentOf("bench", blockBytes);

async function uploadInBlocks(client: BlobClient, path: string): Promise<boolean> {
  const ids = Array.from({ length: blocks }, (_, at) => Buffer.from(`block-${at}`).toString("base64"));
  for (const id of ids)
    mustAnswer(answered(await client.call("PUT", `${path}?comp=block&blockid=${encodeURIComponent(id)}`, {}, block)), 201);
  const xml = `<BlockList>${ids.map((id) => `<Latest>${id}</Latest>`).join("")}</BlockList>`;
  return mustAnswer(
    answered(await client.call("PUT", `${path}?comp=blocklist`, { "content-type": "application/xml" }, Buffer.from(xml))),
    201,
  );
}
