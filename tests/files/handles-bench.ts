/** A stamp with a share, a gateway that holds a session, and the Files service by REST, for tests of handles. */
import { createHmac } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { ShareClient, type ShareFileClient } from "@azure/storage-file-share";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { type Outcome, type Rules, unwrap } from "@stamp/base";
import { firstRangeOf } from "@stamp/partition-map";
import { type HttpListener, serveHttp } from "@stamp/ports-node";
import { FileHandles, LockService, PartitionServer } from "@stamp/wire";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "../conformance/scripted-stamp.ts";
import { credential, options } from "./files-bench.ts";

const hmac = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();
const timeoutMs = 10_000;
/** Of services/front-end/src/trees/handles.ts. */
const askedEveryMs = 100;

/** Rights of handles. */
export const [read, write, remove, none, all] = [1, 2, 4, 0, 7];

export interface Opening {
  readonly access?: number;
  readonly shareMode?: number;
  readonly deleteOnClose?: boolean;
  readonly session?: Session;
}

export interface Session {
  readonly session: string;
  readonly sessionEpoch: bigint;
}

export class HandlesBench {
  readonly stamp: ScriptedStamp;
  readonly share: ShareClient;
  /** Endpoint of the Files service for clients that find no host below `localhost`. */
  readonly endpoint: string;
  readonly #http: HttpListener;

  private constructor(stamp: ScriptedStamp, http: HttpListener) {
    this.stamp = stamp;
    this.#http = http;
    const port = http.address.slice(http.address.lastIndexOf(":") + 1);
    this.endpoint = `http://127.0.0.1:${port}/${accountName}`;
    this.share = new ShareClient(`http://${accountName}.file.localhost:${port}/share`, credential, options);
  }

  static async start(rules?: Rules): Promise<HandlesBench> {
    const stamp = await startScriptedStamp(rules ? { rules } : {});
    // The level of the scripted front-end is not known, so it would make no share.
    const route = { rangeId: firstRangeOf("Blob").rangeId, rangeVersion: 1n };
    const operation = { kind: { case: "createContainer" as const, value: { account: accountName, container: "~share" } } };
    unwrap(await stamp.world.transport.client("ps-1", PartitionServer).execute({ ...route, operation }, { timeoutMs }));
    return new HandlesBench(stamp, await serveHttp(stamp.frontEnd.file, { listen: "127.0.0.1:0" }));
  }

  async stop(): Promise<void> {
    await this.#http.close(100);
    await this.stamp.stop();
  }

  async file(name: string, text = "0123456789"): Promise<ShareFileClient> {
    const client = this.share.rootDirectoryClient.getFileClient(name);
    await client.create(text.length);
    await client.uploadRange(text, 0, text.length);
    return client;
  }

  get locks() {
    return this.stamp.world.transport.client("lock-service", LockService);
  }

  async session(session: string, incarnation = 1n): Promise<Session> {
    const request = { name: `files/${session}`, holder: session, incarnation, address: "gateway", termMs: 300_000 };
    return { session, sessionEpoch: unwrap(await this.locks.acquireLease(request, { timeoutMs })).leaseEpoch };
  }

  async end({ session, sessionEpoch }: Session): Promise<void> {
    unwrap(await this.locks.releaseLease({ name: `files/${session}`, leaseEpoch: sessionEpoch }, { timeoutMs }));
    // A front-end that has just asked does not ask again at once.
    await setTimeout(askedEveryMs + 50);
  }

  get door() {
    return this.stamp.world.transport.client("front-end-1", FileHandles);
  }

  get options() {
    const token = makeToken({ account: accountName, expiresMs: Date.now() + 600_000 }, fromBase64(accountKey) as Uint8Array, hmac);
    return { timeoutMs, metadata: { authorization: `Bearer ${token}` } };
  }

  async open(path: string, { access = read, shareMode = all, deleteOnClose = false, session }: Opening = {}): Promise<string> {
    const holds = session ?? (await this.session(`g-${path}-${Math.random()}`));
    const request = { account: accountName, share: "share", path, ...holds, access, shareMode, deleteOnClose, client: "10.0.0.7" };
    return unwrap(await this.door.open(request, this.options)).handle;
  }

  /** Has the handles of a file tell another name of it, as if whoever renamed it had died before it told them. */
  async tellName(handle: string, entryName: string): Promise<void> {
    const [, incarnation = "", blob = ""] = handle.split("/");
    const name = { account: accountName, container: "~share", containerIncarnation: BigInt(incarnation), blob };
    const operation = { kind: { case: "handles" as const, value: { name, action: "named", directoryId: "root", entryName } } };
    const route = { rangeId: firstRangeOf("Blob").rangeId, rangeVersion: 1n };
    unwrap(await this.stamp.world.transport.client("ps-1", PartitionServer).execute({ ...route, operation }, { timeoutMs }));
  }

  /** Code of the refusal of a call; "ok" if there is none. */
  async code(work: Promise<unknown>): Promise<string> {
    const outcome = await work.then(
      (answer) => answer as Outcome<unknown>,
      (error) => ({ ok: false, failure: (error as { failure?: { details?: Record<string, string> } }).failure ?? {} }) as Outcome<unknown>,
    );
    if ((outcome as { ok?: boolean }).ok !== false) return "ok";
    return (outcome as { failure: { details?: Record<string, string>; message?: string } }).failure.details?.["x-ms-error-code"] ?? "none";
  }

  of(handle: string) {
    return { account: accountName, handle };
  }
}
