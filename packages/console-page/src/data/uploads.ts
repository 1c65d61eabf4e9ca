/**
 * Uploads of files in blocks. They go on while the reader looks at other views. A cut connection is waited for; blocks that arrived are not
 * sent again, also after the page was closed and the same file is chosen once more.
 */
import { type Signal, signal } from "@preact/signals";
import type { BlobPath, DataSource } from "./data-model.ts";

const mebibyte = 1_024 * 1_024;
const blockBytesLeast = 4 * mebibyte;
/** The service puts no more together. */
const blocksMax = 50_000;
const blockTimeoutMs = 120_000;
const againMs = 1_000;
/** Attempts to send one block before a person is asked. */
const attemptsMax = 30;

export type UploadState = "sending" | "waiting" | "done" | "exists" | "failed";

export interface Upload {
  readonly id: number;
  readonly path: BlobPath;
  readonly file: File;
  readonly bytesDone: number;
  readonly state: UploadState;
  /** Why it waits or has failed; empty otherwise. */
  readonly problem: string;
  readonly stop: AbortController;
}

/** The newest last. */
export const uploads: Signal<readonly Upload[]> = signal([]);
let lastId = 0;

function update(id: number, some: Partial<Upload>): void {
  uploads.value = uploads.value.map((each) => (each.id === id ? { ...each, ...some } : each));
}

/** Begins to send a file. `onDone` is called when the blob is there. */
export function begin(source: DataSource, path: BlobPath, file: File, onDone: () => void): void {
  const id = ++lastId;
  uploads.value = [...uploads.value, { id, path, file, bytesDone: 0, state: "sending", problem: "", stop: new AbortController() }];
  void run(source, id, false, onDone);
}

/** Goes on with an upload that failed, or puts its blob in the place of one that is there. */
export function goOn(source: DataSource, id: number, replace: boolean, onDone: () => void): void {
  update(id, { state: "sending", problem: "" });
  void run(source, id, replace, onDone);
}

/** Takes an upload out of the list, and ends it if it goes on. */
export function remove(id: number): void {
  uploads.value.find((each) => each.id === id)?.stop.abort();
  uploads.value = uploads.value.filter((each) => each.id !== id);
}

async function run(source: DataSource, id: number, replace: boolean, onDone: () => void): Promise<void> {
  const found = uploads.value.find((each) => each.id === id);
  if (found === undefined) return;
  const { path, file, stop } = found;
  try {
    const count = await send(source, found);
    await source.change("commit-blob", { ...path, upload: await nameOf(file), count, contentType: file.type, replace });
    update(id, { state: "done", bytesDone: file.size });
    onDone();
  } catch (error) {
    if (stop.signal.aborted) return;
    const { message } = error as Error;
    const exists = message.startsWith("BlobAlreadyExists");
    update(id, { state: exists ? "exists" : "failed", problem: exists ? "a blob of this name is there" : message });
  }
}

/** Size of the blocks of a file, in bytes. */
export const blockBytesOf = (fileBytes: number): number =>
  Math.max(blockBytesLeast, Math.ceil(fileBytes / blocksMax / mebibyte) * mebibyte);

/** Sends the blocks that have not arrived. Returns how many the file has. */
async function send(source: DataSource, { id, path, file, stop }: Upload): Promise<number> {
  const name = await nameOf(file);
  const blockBytes = blockBytesOf(file.size);
  const count = Math.ceil(file.size / blockBytes);
  const there = new Set(count === 0 ? [] : await source.blocks(path, name));
  for (let number = 0; number < count; number++) {
    const block = file.slice(number * blockBytes, (number + 1) * blockBytes);
    if (!there.has(number)) await sendBlock(source, id, path, name, number, block, stop.signal);
    update(id, { bytesDone: number * blockBytes + block.size });
  }
  return count;
}

async function sendBlock(source: DataSource, id: number, path: BlobPath, name: string, number: number, block: Blob, signal: AbortSignal) {
  for (let attempt = 1; ; attempt++) {
    try {
      await source.putBlock(path, name, number, block, AbortSignal.any([signal, AbortSignal.timeout(blockTimeoutMs)]));
      update(id, { state: "sending", problem: "" });
      return;
    } catch (error) {
      if (signal.aborted || attempt === attemptsMax) throw error;
      update(id, { state: "waiting", problem: (error as Error).message });
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }
}

/** Name of a file's upload: the same for the same file, another after the file was changed. */
async function nameOf({ name, size, lastModified }: File): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify([name, size, lastModified])));
  return [...new Uint8Array(digest).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
