/**
 * `node tests/tools/tree-figures.ts [--entries 10000] [--large 100000] [--seconds 2] [--share]`: directories and shares beside flat blobs, in
 * one run on a cluster of its own. Prints docs/measurements/trees.md's tables. What is compared is done one after the other, as requests of
 * account SAS over connections that stay open. With `--share` it makes, lists and deletes one directory of `--large` files in a share only.
 */
import { Agent, type IncomingMessage, request } from "node:http";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { accountKey } from "../conformance/scripted-stamp.ts";

const { values } = parseArgs({
  options: {
    entries: { type: "string", default: "10000" },
    large: { type: "string", default: "100000" },
    seconds: { type: "string", default: "2" },
    share: { type: "boolean", default: false },
  },
});
const [entries, large, seconds] = [Number(values.entries), Number(values.large), Number(values.seconds)];
const [flat, lake] = ["flat", "lake"];
const writers = 16;
const some = Math.min(entries, 2_000);
const mebibyte = 1_048_576;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const keys = [accountKey];
const accounts = [flat, lake].map((name) => ({ name, keys, hierarchicalNamespace: name === lake }));
const cluster = await startOwn({ accounts }, false);
const blobPort = Number(new URL(/BlobEndpoint=([^;]+)/.exec(cluster.connectionString)?.[1] ?? "").port);
const asked = {
  expiresOn: new Date(Date.now() + 7_200_000),
  permissions: AccountSASPermissions.parse("rwdlacup"),
  services: AccountSASServices.parse("bf").toString(),
  resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
};
const rightsOf = (account: string): string =>
  generateAccountSASQueryParameters(asked, new StorageSharedKeyCredential(account, accountKey)).toString();
const rights = { [flat]: rightsOf(flat), [lake]: rightsOf(lake) };

type Told = { readonly status: number; readonly text: string; readonly continuation: string };
type Headers = Readonly<Record<string, string>>;
/** Asks a door of an account. `path`: below the account, with its query. */
type Door = (method: string, path: string, headers?: Headers, body?: Buffer) => Promise<Told>;

const doorOf =
  (account: string, portOffset: number): Door =>
  (method, path, headers = {}, body = Buffer.alloc(0)) =>
    new Promise((done, failed) => {
      const target = `/${account}${path}${path.includes("?") ? "&" : "?"}${rights[account]}`;
      const length = method === "GET" || method === "HEAD" ? {} : { "content-length": body.length };
      const sent = { "x-ms-version": "2024-11-04", ...length, ...headers };
      const outgoing = request({ agent, host: "127.0.0.1", port: blobPort + portOffset, method, path: target, headers: sent });
      outgoing.on("error", failed).on("response", (answer: IncomingMessage) => {
        const pieces: Buffer[] = [];
        answer
          .on("data", (piece: Buffer) => pieces.push(piece))
          .on("end", () => {
            const status = answer.statusCode ?? 0;
            const isText = /json|xml/.test(answer.headers["content-type"] ?? "");
            const text = isText ? Buffer.concat(pieces).toString() : "";
            const continuation = String(answer.headers["x-ms-continuation"] ?? /<NextMarker>([^<]+)/.exec(text)?.[1] ?? "");
            if (status < 300 || status === 404) done({ status, text, continuation });
            else failed(new Error(`${status} ${method} ${path}: ${text || answer.headers["x-ms-error-code"]}`));
          });
      });
      outgoing.end(body);
    });
const [blob, dfs, file] = [doorOf(flat, 0), doorOf(lake, 4), doorOf(flat, 3)];

/** Does `work` for numbers below `count`, or for `seconds`, and returns how often it was done per second. */
async function rate(parallel: number, count: number | undefined, work: (number: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const startMs = performance.now();
  const goesOn = (): boolean => (count === undefined ? performance.now() < startMs + seconds * 1_000 : next < count);
  const worker = async (): Promise<void> => {
    while (goesOn()) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return (next * 1_000) / (performance.now() - startMs);
}

/** Names in a list, and in how many milliseconds all its pages came. */
async function listed(door: Door, path: string): Promise<{ names: number; ms: number }> {
  const startMs = performance.now();
  let names = 0;
  let continuation = "";
  const marker = door === dfs ? "continuation" : "marker";
  do {
    const page = await door("GET", `${path}${continuation === "" ? "" : `&${marker}=${encodeURIComponent(continuation)}`}`);
    if (page.status !== 200) throw new Error(`${page.status} ${path}`);
    names += (page.text.match(/"name":|<Name>/g) ?? []).length;
    continuation = page.continuation;
  } while (continuation !== "");
  return { names, ms: performance.now() - startMs };
}

interface Place {
  readonly name: string;
  readonly door: Door;
  readonly pathOf: (number: number) => string;
  readonly create: (path: string) => Promise<unknown>;
  readonly list: string;
  readonly rename?: (from: string, to: string) => Promise<unknown>;
}

const rounded = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1));
const row = (...cells: readonly (string | number)[]): void =>
  console.log(`| ${cells.map((cell) => (typeof cell === "number" ? rounded(cell) : cell)).join(" | ")} |`);
const table = (title: string, ...columns: readonly string[]): void => {
  console.log(`\n## ${title}\n\nLoad ${loadavg()[0]?.toFixed(1)}.\n`);
  row(...columns);
  console.log(`|${columns.map(() => "---").join("|")}|`);
};

const createPath = (path: string) => dfs("PUT", `${path}?resource=file`);
const movePath = (from: string, to: string) => dfs("PUT", to, { "x-ms-rename-source": from });
const directory = (path: string) => dfs("PUT", `${path}?resource=directory`);
const newFile = { "x-ms-type": "file", "x-ms-content-length": "0" };
const createFile = (path: string) => file("PUT", path, newFile);
const listOfDirectory = (path: string): string => `/lake?resource=filesystem&recursive=true&maxResults=5000&directory=${path}`;
const listOfShare = (path: string): string => `/share/${path}?restype=directory&comp=list&maxresults=5000`;

const lakePlace = (name: string, top: string, below: (number: number) => string): Place => ({
  name,
  door: dfs,
  pathOf: (number) => `/lake/${top}/${below(number)}f${number}`,
  create: createPath,
  list: listOfDirectory(top),
  rename: movePath,
});
const places: readonly Place[] = [
  {
    name: "Blob, flat",
    door: blob,
    pathOf: (number) => `/blobs/d/f${number}`,
    create: (path) => blob("PUT", path, { "x-ms-blob-type": "BlockBlob" }),
    list: "/blobs?restype=container&comp=list&prefix=d/",
  },
  lakePlace("dfs, one directory", "one", () => ""),
  lakePlace("dfs, 100 directories", "tree", (number) => `d${number % 100}/`),
  {
    name: "Files, one directory",
    door: file,
    pathOf: (number) => `/share/one/f${number}`,
    create: createFile,
    list: listOfShare("one"),
    rename: (from, to) =>
      file("PUT", `${to}?comp=rename`, { "x-ms-file-rename-source": `http://127.0.0.1:${blobPort + 3}/${flat}${from}?${rights[flat]}` }),
  },
];

async function entryFigures(): Promise<void> {
  table(`${entries.toLocaleString("en")} entries, ${writers} clients`, "where", "created/s", "renamed/s", "listed, entries/s", "deleted/s");
  for (const { name, door, pathOf, create, list, rename } of places) {
    const created = await rate(writers, entries, (number) => create(pathOf(number)));
    const { names, ms } = await listed(door, list);
    if (names < entries) throw new Error(`${name}: ${names} of ${entries} are listed`);
    const moved = rename ? some : 0;
    const renamed = rename ? await rate(writers, moved, (n) => rename(pathOf(n), `${pathOf(n)}x`)) : "–";
    // The first `moved` have another name now.
    const deleted = await rate(writers, entries, (n) => door("DELETE", n < moved ? `${pathOf(n)}x` : pathOf(n)));
    row(name, created, renamed, (names * 1_000) / ms, deleted);
  }
}

async function depthFigures(): Promise<void> {
  table(`Depth, ${writers} clients`, "directories above the file", "created/s", "properties read/s", "renamed/s");
  for (const depth of [1, 10]) {
    const above = `/lake/depth${depth}${"/l".repeat(depth - 1)}`;
    for (let level = 0; level < depth; level++) await directory(`/lake/depth${depth}${"/l".repeat(level)}`);
    const created = await rate(writers, some, (number) => createPath(`${above}/f${number}`));
    const read = await rate(writers, some, (number) => dfs("HEAD", `${above}/f${number}`));
    row(depth, created, read, await rate(writers, some, (number) => movePath(`${above}/f${number}`, `${above}/g${number}`)));
  }
}

async function streamFigures(): Promise<void> {
  table("256 MiB in pieces of 4 MiB, one client, in turns", "how", "MiB/s", "again");
  const pieces = 64;
  const body = Buffer.alloc(4 * mebibyte, "x");
  const blockId = (number: number): string => Buffer.from(String(number).padStart(6, "0")).toString("base64");
  const blocks = async (): Promise<void> => {
    for (let n = 0; n < pieces; n++) await blob("PUT", `/blobs/big?comp=block&blockid=${encodeURIComponent(blockId(n))}`, {}, body);
    const list = Array.from({ length: pieces }, (_, n) => `<Latest>${blockId(n)}</Latest>`).join("");
    await blob("PUT", "/blobs/big?comp=blocklist", {}, Buffer.from(`<BlockList>${list}</BlockList>`));
  };
  const appends = async (): Promise<void> => {
    await createPath("/lake/big");
    for (let n = 0; n < pieces; n++) await dfs("PATCH", `/lake/big?action=append&position=${n * body.length}`, {}, body);
    await dfs("PATCH", `/lake/big?action=flush&position=${pieces * body.length}`);
  };
  const speed = async (work: () => Promise<void>): Promise<number> => (await rate(1, 1, work)) * pieces * 4;
  const [block, append] = [await speed(blocks), await speed(appends)];
  row("Blob: Put Block, Put Block List", block, await speed(blocks));
  row("dfs: append, flush", append, await speed(appends));
}

async function rangeFigures(): Promise<void> {
  const columns = ["size, clients", "ranges written/s", "pages written/s", "ranges read/s", "pages read/s"];
  table("Ranges of one file, and of one page blob", ...columns);
  const length = 256 * mebibyte;
  await file("PUT", "/share/ranges", { ...newFile, "x-ms-content-length": String(length) });
  await blob("PUT", "/blobs/pages", { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": String(length) });
  for (const size of [4_096, 4 * mebibyte]) {
    const body = Buffer.alloc(size, "y");
    const rangeOf = (number: number): Headers => {
      const at = ((number * 7) % (length / size)) * size;
      return { "x-ms-range": `bytes=${at}-${at + size - 1}` };
    };
    for (const clients of [1, 16, 64]) {
      const written = (door: Door, path: string, header: string) =>
        rate(clients, undefined, (number) => door("PUT", path, { [header]: "update", ...rangeOf(number) }, body));
      const read = (door: Door, path: string) => rate(clients, undefined, (number) => door("GET", path, rangeOf(number)));
      const writes = [
        await written(file, "/share/ranges?comp=range", "x-ms-write"),
        await written(blob, "/blobs/pages?comp=page", "x-ms-page-write"),
      ];
      row(`${size / 1_024} KiB, ${clients}`, ...writes, await read(file, "/share/ranges"), await read(blob, "/blobs/pages"));
    }
  }
}

/** Makes a directory of a share, lists it and deletes some of its files. */
async function shareFigures(): Promise<void> {
  table(`A directory of ${large.toLocaleString("en")} files in a share`, "what", "result");
  const path = (number: number): string => `/share/large/f${number}`;
  row("created/s, 64 clients", await rate(64, large, (number) => createFile(path(number))));
  for (const turn of ["first", "second"]) {
    const { names, ms } = await listed(file, listOfShare("large"));
    if (names !== large) throw new Error(`${names} of ${large} are listed`);
    row(`all listed, ${turn} time`, `${rounded(ms)} ms`);
  }
  row(`${some} deleted/s, ${writers} clients`, await rate(writers, some, (number) => file("DELETE", path(number))));
}

const rootNames = async (): Promise<string[]> => {
  const { text } = await dfs("GET", "/lake?resource=filesystem&recursive=false&maxResults=5000");
  return (JSON.parse(text) as { paths: { name: string }[] }).paths.map(({ name }) => name).filter((name) => name.startsWith("large"));
};

/** Renames a large directory to and fro, beside one file, while a reader looks at the names and walks what it sees. */
async function largeFigures(): Promise<void> {
  await directory("/lake/large-a");
  await rate(writers, large, (number) => createPath(`/lake/large-a/f${number}`));
  await rate(writers, large, (number) => createFile(`/share/large/f${number}`));
  const paths = await listed(dfs, listOfDirectory("large-a"));
  const files = await listed(file, listOfShare("large"));
  table(`A directory of ${large.toLocaleString("en")} files`, "what", "result");
  row("all listed, dfs", `${paths.names} entries in ${rounded(paths.ms)} ms`);
  row("all listed, Files", `${files.names} entries in ${rounded(files.ms)} ms`);
  const seen = { looks: 0, walked: 0, both: 0, none: 0 };
  let isDone = false;
  const reader = (async () => {
    while (!isDone) {
      const names = await rootNames();
      seen.looks++;
      if (names.length > 1) seen.both++;
      if (names.length === 0) seen.none++;
      // 404: it was renamed since.
      const walked = await dfs("GET", listOfDirectory(names[0] ?? "large-a"));
      if (walked.status === 200) seen.walked += (walked.text.match(/"name":/g) ?? []).length;
    }
  })();
  const times: { readonly large: number[]; readonly single: number[] } = { large: [], single: [] };
  await createPath("/lake/single-a");
  for (let turn = 0; turn < 40; turn++) {
    const [from, to] = turn % 2 === 0 ? ["a", "b"] : ["b", "a"];
    for (const kind of ["large", "single"] as const) {
      const startMs = performance.now();
      await movePath(`/lake/${kind}-${from}`, `/lake/${kind}-${to}`);
      times[kind].push(performance.now() - startMs);
    }
  }
  isDone = true;
  await reader;
  for (const kind of ["large", "single"] as const) {
    const sorted = times[kind].toSorted((one, other) => one - other);
    const what = kind === "large" ? "the directory" : "one file";
    row(`40 renames of ${what}, p50 and longest`, `${sorted[20]?.toFixed(1)} and ${sorted[39]?.toFixed(1)} ms`);
  }
  row("a reader meanwhile", `${seen.looks} looks, ${seen.walked} entries walked; both names ${seen.both} times, none ${seen.none} times`);
  const startMs = performance.now();
  await dfs("DELETE", "/lake/large-a?recursive=true");
  row("removed with all below", `${rounded(performance.now() - startMs)} ms`);
}

async function compared(): Promise<void> {
  await directory("/lake/tree");
  for (const path of ["/lake/one", ...Array.from({ length: 100 }, (_, number) => `/lake/tree/d${number}`)]) await directory(path);
  await entryFigures();
  await largeFigures();
  await streamFigures();
  await rangeFigures();
  await depthFigures();
}

try {
  console.log(`${cpus().length} cores. Load is the mean of the minute before each table.`);
  await blob("PUT", "/blobs?restype=container");
  await dfs("PUT", "/lake?resource=filesystem");
  await file("PUT", "/share?restype=share");
  for (const path of ["/share/one", "/share/large"]) await file("PUT", `${path}?restype=directory`);
  if (values.share) await shareFigures();
  else await compared();
} finally {
  agent.destroy();
  await cluster.close();
}
