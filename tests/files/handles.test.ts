/** Files that gateways hold open by gRPC, beside REST by the SDK (docs/design/files.md; the Files section of the article). */
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import type { ShareFileClient } from "@azure/storage-file-share";
import { rulesWithout, unwrap } from "@stamp/base";
import { accountName } from "../conformance/scripted-stamp.ts";
import { findHosts, refusal } from "./files-bench.ts";
import { all, HandlesBench, none, read, remove, write } from "./handles-bench.ts";

let bench: HandlesBench;
before(async () => {
  findHosts();
  bench = await HandlesBench.start();
});
after(async () => {
  await bench.stop();
  mock.restoreAll();
});

const text = async (client: { downloadToBuffer(): Promise<Buffer> }): Promise<string> => (await client.downloadToBuffer()).toString();
async function names(): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of bench.share.rootDirectoryClient.listFilesAndDirectories()) found.push(entry.name);
  return found;
}

test("handles: a file that a client has opened with write access and share mode none is 409 SharingViolation by REST until it is closed", async () => {
  const file = await bench.file("locked.txt");
  const handle = await bench.open("locked.txt", { access: read | write, shareMode: none });
  assert.equal(await refusal(file.uploadRange("x", 0, 1)), "409 SharingViolation");
  assert.equal(await refusal(file.clearRange(0, 5)), "409 SharingViolation");
  assert.equal(await refusal(file.download()), "409 SharingViolation");
  assert.equal(await refusal(file.create(3)), "409 SharingViolation");
  assert.equal(await refusal(file.setMetadata({ a: "b" })), "409 SharingViolation");
  assert.equal(await refusal(file.resize(3)), "409 SharingViolation");
  assert.equal(await refusal(file.delete()), "409 SharingViolation");
  assert.equal((await file.getProperties()).contentLength, 10);
  unwrap(await bench.door.write({ ...bench.of(handle), startBytes: 2n, payload: Buffer.from("ab") }, bench.options));
  const part = unwrap(await bench.door.read({ ...bench.of(handle), startBytes: 1n, lengthBytes: 100 }, bench.options));
  assert.equal(Buffer.from(part.payload).toString(), "1ab456789");
  unwrap(await bench.door.setLength({ ...bench.of(handle), lengthBytes: 4n }, bench.options));
  unwrap(await bench.door.close(bench.of(handle), bench.options));
  assert.equal(await text(file), "01ab");
  await file.delete();
});

test("handles: a locked range is 409 FileLockConflict for Put Range, Clear Range and Get File, and nothing beside it is", async () => {
  const file = await bench.file("ranges.txt");
  const handle = await bench.open("ranges.txt", { access: read | write });
  const lock = { startBytes: 2n, endBytes: 4n, exclusive: true };
  unwrap(await bench.door.lock({ ...bench.of(handle), lock }, bench.options));
  assert.equal(await refusal(file.uploadRange("xx", 1, 2)), "409 FileLockConflict");
  assert.equal(await refusal(file.clearRange(3, 2)), "409 FileLockConflict");
  assert.equal(await refusal(file.download(0, 3)), "409 FileLockConflict");
  await file.uploadRange("xx", 4, 2);
  unwrap(await bench.door.unlock({ ...bench.of(handle), lock }, bench.options));
  assert.equal(await text(file), "0123xx6789");
});

test("handles: a lock reaches as far as clients say, and numbers beyond every file are refused or read nothing", async () => {
  const file = await bench.file("far.txt");
  const handle = await bench.open("far.txt", { access: read | write });
  for (const endBytes of [2n ** 63n - 1n, 2n ** 64n - 1n]) {
    const lock = { startBytes: 4n, endBytes, exclusive: true };
    unwrap(await bench.door.lock({ ...bench.of(handle), lock }, bench.options));
    assert.equal(await refusal(file.uploadRange("x", 4, 1)), "409 FileLockConflict");
    await file.uploadRange("x", 3, 1);
    unwrap(await bench.door.unlock({ ...bench.of(handle), lock }, bench.options));
  }
  const far = { ...bench.of(handle), startBytes: 2n ** 63n };
  const lock = { startBytes: far.startBytes, endBytes: 2n ** 64n - 1n, exclusive: true };
  assert.equal(await bench.code(bench.door.lock({ ...bench.of(handle), lock }, bench.options)), "InvalidInput");
  assert.equal(await bench.code(bench.door.setLength({ ...bench.of(handle), lengthBytes: 2n ** 63n }, bench.options)), "InvalidInput");
  assert.equal(await bench.code(bench.door.write({ ...far, payload: Buffer.from("x") }, bench.options)), "InvalidRange");
  assert.equal(unwrap(await bench.door.read({ ...far, lengthBytes: 9 }, bench.options)).payload.length, 0);
});

test("handles: a file that is marked for deletion is 409 DeletePending, never 404, in no list, and there again when the mark is taken back", async () => {
  const file = await bench.file("pending.txt");
  const handle = await bench.open("pending.txt", { access: remove });
  const other = await bench.open("pending.txt");
  unwrap(await bench.door.setDisposition({ ...bench.of(handle), deletePending: true }, bench.options));
  assert.equal(await refusal(file.download()), "409 DeletePending");
  assert.equal(await refusal(file.uploadRange("x", 0, 1)), "409 DeletePending");
  assert.equal(await refusal(file.create(3)), "409 DeletePending");
  assert.equal(await refusal(file.delete()), "409 DeletePending");
  assert.ok(!(await names()).includes("pending.txt"));
  unwrap(await bench.door.setDisposition({ ...bench.of(handle), deletePending: false }, bench.options));
  assert.equal(await text(file), "0123456789");
  assert.ok((await names()).includes("pending.txt"));
  unwrap(await bench.door.setDisposition({ ...bench.of(handle), deletePending: true }, bench.options));
  unwrap(await bench.door.close(bench.of(handle), bench.options));
  assert.equal(await refusal(file.download()), "409 DeletePending");
  unwrap(await bench.door.close(bench.of(other), bench.options));
  assert.equal(await refusal(file.download()), "404 ResourceNotFound");
  await bench.file("pending.txt", "new");
  assert.equal(await text(file), "new");
});

test("handles: a file that was renamed under its handles goes with the last of them, also where their row tells another name", async () => {
  const file = await bench.file("before.txt");
  const handle = await bench.open("before.txt", { access: remove, deleteOnClose: true });
  await file.rename("after.txt");
  unwrap(await bench.door.close(bench.of(handle), bench.options));
  assert.equal(await refusal(bench.share.rootDirectoryClient.getFileClient("after.txt").download()), "404 ResourceNotFound");
  for (const [name, meets] of [
    ["read.txt", (met: ShareFileClient) => refusal(met.download())],
    ["made.txt", (met: ShareFileClient) => met.create(3).then(() => "404 ResourceNotFound")],
  ] as const) {
    const lost = await bench.file(name);
    const last = await bench.open(name, { access: remove, deleteOnClose: true });
    await bench.tellName(last, "ELSEWHERE");
    unwrap(await bench.door.close(bench.of(last), bench.options));
    assert.equal(await meets(lost), "404 ResourceNotFound");
  }
});

test("handles: a handle that only writes, and shares writing only, writes a chunk of many pieces", async () => {
  const bytes = 2_200;
  const file = bench.share.rootDirectoryClient.getFileClient("pieces.txt");
  await file.create(bytes);
  const handle = await bench.open("pieces.txt", { access: write, shareMode: write });
  for (let at = 0; at < bytes; at += 2) {
    unwrap(await bench.door.write({ ...bench.of(handle), startBytes: BigInt(at), payload: Buffer.from("x") }, bench.options));
  }
  unwrap(await bench.door.close(bench.of(handle), bench.options));
  assert.equal(await text(file), "x\0".repeat(bytes / 2));
});

test("handles: a rename under a handle that shares deleting only is answered as done", async () => {
  const file = await bench.file("old.txt");
  await bench.open("old.txt", { access: read, shareMode: remove });
  await file.rename("new.txt");
  assert.equal((await bench.share.rootDirectoryClient.getFileClient("new.txt").getProperties()).contentLength, 10);
});

test("handles, the source of a copy is held: the copy is refused before its target is touched, and done when the session has ended", async () => {
  const [source, target] = [await bench.file("source.txt"), await bench.file("target.txt", "as it was")];
  const session = await bench.session("copied");
  await bench.open("source.txt", { access: read, shareMode: none, session });
  assert.equal(await refusal(target.startCopyFromURL(source.url)), "409 SharingViolation");
  assert.equal(await text(target), "as it was");
  await bench.end(session);
  await target.startCopyFromURL(source.url);
  assert.equal(await text(target), "0123456789");
  const handle = await bench.open("source.txt");
  unwrap(await bench.door.lock({ ...bench.of(handle), lock: { startBytes: 3n, endBytes: 4n, exclusive: true } }, bench.options));
  assert.equal(await refusal(target.startCopyFromURL(source.url)), "409 FileLockConflict");
});

test("handles: REST Delete File is atomic, also under handles that share it: they find nothing any more", async () => {
  const file = await bench.file("shared.txt");
  const handle = await bench.open("shared.txt", { access: read, shareMode: all });
  await file.delete();
  assert.equal(await refusal(file.download()), "404 ResourceNotFound");
  assert.equal(
    await bench.code(bench.door.setDisposition({ ...bench.of(handle), deletePending: true }, bench.options)),
    "ResourceNotFound",
  );
  const payload = Buffer.from("x");
  assert.equal(await bench.code(bench.door.write({ ...bench.of(handle), startBytes: 0n, payload }, bench.options)), "ResourceNotFound");
  unwrap(await bench.door.close(bench.of(handle), bench.options));
});

test("handles of a session whose end is recorded count for nothing: REST goes on, and what they should delete is gone", async () => {
  const session = await bench.session("gateway-1");
  const [file, doomed] = [await bench.file("left.txt"), await bench.file("left-doomed.txt")];
  const handle = await bench.open("left.txt", { access: write, shareMode: none, session });
  await bench.open("left-doomed.txt", { access: remove, deleteOnClose: true, session });
  assert.equal(await refusal(file.uploadRange("x", 0, 1)), "409 SharingViolation");
  await bench.end(session);
  await file.uploadRange("x", 0, 1);
  assert.equal(
    await bench.code(bench.door.write({ ...bench.of(handle), startBytes: 0n, payload: Buffer.from("y") }, bench.options)),
    "ResourceNotFound",
  );
  assert.equal(await text(file), "x123456789");
  // Nobody has met the handle that deletes on close: the next one does.
  const next = await bench.session("gateway-1", 2n);
  const late = { account: accountName, share: "share", path: "left.txt", access: read, shareMode: all, client: "" };
  assert.equal(await bench.code(bench.door.open({ ...late, ...session }, bench.options)), "InvalidInput");
  unwrap(await bench.door.open({ ...late, ...next }, bench.options));
  const open = { ...late, ...next, path: "left-doomed.txt", access: write, shareMode: none };
  assert.equal(await bench.code(bench.door.open(open, bench.options)), "ResourceNotFound");
  assert.equal(await refusal(doomed.download()), "404 ResourceNotFound");
});

test("handles: two gateways exclude each other by access and share mode", async () => {
  await bench.file("two.txt");
  const first = await bench.open("two.txt", { access: write, shareMode: read });
  assert.equal(await bench.code(bench.open("two.txt", { access: write, shareMode: all })), "SharingViolation");
  assert.equal(await bench.code(bench.open("two.txt", { access: read, shareMode: read })), "SharingViolation");
  const second = await bench.open("two.txt", { access: read, shareMode: read | write });
  assert.equal(
    await bench.code(bench.door.write({ ...bench.of(second), startBytes: 0n, payload: Buffer.from("y") }, bench.options)),
    "InvalidOperation",
  );
  const listed = unwrap(await bench.door.list({ account: accountName, share: "share", path: "two.txt" }, bench.options));
  assert.deepEqual(listed.handles.map(({ handle }) => handle).sort(), [first, second].sort());
});

test("handles: List Handles and Force Close Handles of REST see one, all, and all below a directory", async () => {
  await bench.share.createDirectory("dir");
  const below = bench.share.getDirectoryClient("dir").getFileClient("below.txt");
  await below.create(5);
  const file = await bench.file("listed.txt");
  const [one] = [await bench.open("listed.txt", { access: read | write }), await bench.open("listed.txt", { access: remove })];
  await bench.open("dir/below.txt", { access: write, shareMode: none });
  const ids: string[] = [];
  for await (const handle of file.listHandles()) {
    ids.push(handle.handleId);
    assert.deepEqual([handle.path, handle.clientIp], ["listed.txt", "10.0.0.7"]);
  }
  assert.equal(ids.length, 2);
  const oneId = one.slice(one.lastIndexOf("/") + 1);
  assert.ok(ids.includes(oneId));
  assert.equal((await file.forceCloseHandle(oneId)).closedHandlesCount, 1);
  assert.equal((await file.forceCloseHandle(oneId)).closedHandlesCount, 0);
  assert.equal((await file.forceCloseAllHandles()).closedHandlesCount, 1);
  const { rootDirectoryClient: root } = bench.share;
  const paths: string[] = [];
  for await (const handle of root.listHandles({ recursive: true })) paths.push(handle.path);
  assert.ok(paths.includes("dir/below.txt") && !paths.includes("listed.txt"), paths.join());
  for await (const _ of root.listHandles()) assert.fail("a directory has no handles of its own");
  assert.equal(await refusal(below.uploadRange("x", 0, 1)), "409 SharingViolation");
  assert.ok(((await root.forceCloseAllHandles({ recursive: true })).closedHandlesCount ?? 0) >= 1);
  await below.uploadRange("x", 0, 1);
});

test("handles: a list of those below a directory ends its page when there are many, and goes on behind it", async () => {
  await bench.share.createDirectory("many");
  const many = bench.share.getDirectoryClient("many");
  const session = await bench.session("many");
  const [filesOf, handlesOf] = [65, 16];
  for (let at = 0; at < filesOf; at++) {
    await many.getFileClient(String(at)).create(1);
    await Promise.all(Array.from({ length: handlesOf }, () => bench.open(`many/${at}`, { session })));
  }
  const pages: number[] = [];
  for await (const page of many.listHandles({ recursive: true }).byPage()) pages.push(page.handleList?.length ?? 0);
  assert.ok(pages.length > 1 && (pages[0] ?? 0) < filesOf * handlesOf, pages.join());
  assert.equal(
    pages.reduce((sum, one) => sum + one, 0),
    filesOf * handlesOf,
  );
  assert.equal((await many.forceCloseAllHandles({ recursive: true })).closedHandlesCount, filesOf * handlesOf);
});

test("handles: a handle of another share, of a deleted share, or of no form is refused", async () => {
  for (const handle of ["", "x", "share/1/zz/1", "absent/1/00/1"]) {
    const code = await bench.code(bench.door.close(bench.of(handle), bench.options));
    assert.ok(code === "InvalidInput" || code === "ShareNotFound" || code === "ContainerNotFound", `${handle}: ${code}`);
  }
});

test("handles, a rule of their ends is off: a handle goes while its session lives, or the file goes under another one", async () => {
  const careless = await HandlesBench.start(rulesWithout("handlesEndRecorded"));
  try {
    const file = await careless.file("f");
    await careless.open("f", { access: write, shareMode: none });
    await file.uploadRange("x", 0, 1);
  } finally {
    await careless.stop();
  }
  const early = await HandlesBench.start(rulesWithout("handlesLastRemoves"));
  try {
    const file = await early.file("f");
    await early.open("f");
    const handle = await early.open("f", { access: remove, deleteOnClose: true });
    unwrap(await early.door.close(early.of(handle), early.options));
    assert.equal(await refusal(file.download()), "404 ResourceNotFound");
  } finally {
    await early.stop();
  }
});
