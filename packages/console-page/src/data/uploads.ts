/**
 * Uploads of files in blocks. They go on while the reader looks at other views. A cut connection is waited for; blocks that arrived are not
 * sent again, also after the page was closed and the same file is chosen once more.
 *
 * Invariants:
 * - A blob is made of the bytes of one file: a block that arrived counts only if its digest is that of the file's bytes.
 * - Three uploads run at once. The others wait, or they would take all connections that the browser has, and the views would stand still.
 */
import { type Signal, signal } from "@preact/signals";
import type { BlobPath, Block, DataSource } from "./data-model.ts";

const mebibyte = 1_024 * 1_024;
const blockBytesLeast = 4 * mebibyte;
/** The service puts no more together. */
const blocksMax = 50_000;
/** The console gives a block 120 s, and says so. */
const blockTimeoutMs = 130_000;
const againMs = 1_000;
/** Attempts to send one block before a person is asked. */
const attemptsMax = 30;
const atOnceMax = 3;

export type UploadState = "queued" | "sending" | "waiting" | "done" | "exists" | "failed";

export interface Upload {
  readonly id: number;
  readonly path: BlobPath;
  readonly file: File;
  readonly bytesDone: number;
  readonly state: UploadState;
  /** Why it waits or has failed; empty otherwise. */
  readonly problem: string;
  /** ETag of the blob that is there, if the upload waits for a word on it; empty otherwise. */
  readonly etag: string;
  readonly stop: AbortController;
}

/** The newest last. */
export const uploads: Signal<readonly Upload[]> = signal([]);
let lastId = 0;
let running = 0;
const turns: (() => void)[] = [];

function update(id: number, some: Partial<Upload>): void {
  uploads.value = uploads.value.map((each) => (each.id === id ? { ...each, ...some } : each));
}

/** Begins to send a file. `onDone` is called when the blob is there. */
export function begin(source: DataSource, path: BlobPath, file: File, onDone: () => void): void {
  const id = ++lastId;
  uploads.value = [...uploads.value, { id, path, file, bytesDone: 0, state: "queued", problem: "", etag: "", stop: new AbortController() }];
  void run(source, id, "", onDone);
}

/** Goes on with an upload that failed, or puts its blob in the place of the one that was there when the person was asked. */
export function goOn(source: DataSource, id: number, onDone: () => void): void {
  const { etag = "" } = uploads.value.find((each) => each.id === id) ?? {};
  update(id, { state: "queued", problem: "", etag: "" });
  void run(source, id, etag, onDone);
}

/** Takes an upload out of the list, and ends it if it goes on. */
export function remove(id: number): void {
  uploads.value.find((each) => each.id === id)?.stop.abort();
  uploads.value = uploads.value.filter((each) => each.id !== id);
}

async function run(source: DataSource, id: number, etag: string, onDone: () => void): Promise<void> {
  if (running >= atOnceMax) await new Promise<void>((resolve) => turns.push(resolve));
  else running++;
  try {
    const found = uploads.value.find((each) => each.id === id);
    if (found !== undefined) await sendAll(source, found, etag, onDone);
  } finally {
    const next = turns.shift();
    if (next === undefined) running--;
    else next();
  }
}

async function sendAll(source: DataSource, upload: Upload, etag: string, onDone: () => void): Promise<void> {
  const { id, path, file, stop } = upload;
  update(id, { state: "sending" });
  try {
    const digests = await send(source, upload);
    if (stop.signal.aborted) return;
    const replaced = etag === "" ? {} : { etag };
    await source.change("commit-blob", { ...path, upload: await nameOf(file), digests, contentType: file.type, ...replaced });
    update(id, { state: "done", bytesDone: file.size });
    onDone();
  } catch (error) {
    if (stop.signal.aborted) return;
    const { message } = error as Error;
    update(
      id,
      /^(BlobAlreadyExists|ConditionNotMet)\b/.test(message) ? await thereNow(source, path) : { state: "failed", problem: message },
    );
  }
}

/** The person is asked about the blob as it is now: another one is not replaced. */
async function thereNow(source: DataSource, path: BlobPath): Promise<Partial<Upload>> {
  try {
    const { etag } = await source.blob(path);
    return { state: "exists", problem: "a blob of this name is there", etag };
  } catch (error) {
    return { state: "failed", problem: (error as Error).message };
  }
}

/** Size of the blocks of a file, in bytes. */
export const blockBytesOf = (fileBytes: number): number =>
  Math.max(blockBytesLeast, Math.ceil(fileBytes / blocksMax / mebibyte) * mebibyte);

/** Sends the blocks that have not arrived. Returns the digests of all, in their order. */
async function send(source: DataSource, { id, path, file, stop }: Upload): Promise<string[]> {
  const name = await nameOf(file);
  const blockBytes = blockBytesOf(file.size);
  const count = Math.ceil(file.size / blockBytes);
  const there = new Set((count === 0 ? [] : await source.blocks(path, name)).map(({ number, digest }) => `${number} ${digest}`));
  // Some browsers say that a folder has no bytes.
  if (count === 0) await bytesOf(file);
  const digests: string[] = [];
  for (let number = 0; number < count; number++) {
    const bytes = await bytesOf(file.slice(number * blockBytes, (number + 1) * blockBytes));
    const digest = (await digestOf(bytes)).slice(0, 24);
    digests.push(digest);
    if (!there.has(`${number} ${digest}`)) await sendBlock(source, id, path, name, { number, digest }, new Blob([bytes]), stop.signal);
    if (stop.signal.aborted) break;
    update(id, { bytesDone: number * blockBytes + bytes.byteLength });
  }
  return digests;
}

/** Throws if the file was changed, moved or taken away after it was chosen, or is a folder. */
async function bytesOf(block: Blob): Promise<ArrayBuffer> {
  try {
    return await block.arrayBuffer();
  } catch (error) {
    throw new Error(
      `the file can't be read: ${(error as Error).message}. Take it out of the list, and choose it again; a folder can't be sent`,
    );
  }
}

async function sendBlock(source: DataSource, id: number, path: BlobPath, name: string, block: Block, bytes: Blob, signal: AbortSignal) {
  for (let attempt = 1; ; attempt++) {
    try {
      await source.putBlock(path, name, block, bytes, AbortSignal.any([signal, AbortSignal.timeout(blockTimeoutMs)]));
      update(id, { state: "sending", problem: "" });
      return;
    } catch (error) {
      if (signal.aborted || attempt === attemptsMax) throw error;
      update(id, { state: "waiting", problem: (error as Error).message });
      await pause(signal);
      signal.throwIfAborted();
    }
  }
}

/** Resolves after a second, or at once when the signal is aborted: a stopped upload gives its place to the next. */
const pause = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, againMs);
    signal.addEventListener("abort", done);
  });

/** Name of a file's upload: the same for the same file, another after the file was changed. */
async function nameOf({ name, size, lastModified }: File): Promise<string> {
  return (await digestOf(new TextEncoder().encode(JSON.stringify([name, size, lastModified])))).slice(0, 32);
}

/** SHA-256 in hexadecimal digits. */
async function digestOf(bytes: BufferSource): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
