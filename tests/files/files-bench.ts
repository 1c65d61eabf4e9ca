/** A stamp in this process with its Files service, for the tests of one file. */
import dns from "node:dns";
import { after, before, mock } from "node:test";
import { ShareServiceClient, StorageSharedKeyCredential } from "@azure/storage-file-share";
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { failure } from "../conformance/target.ts";

/** Clients that repeat no request. */
export const options = { retryOptions: { maxTries: 1 } };
export const credential = new StorageSharedKeyCredential(accountName, accountKey);

export interface FilesBench {
  stamp: Awaited<ReturnType<typeof startStamp>>;
  service: ShareServiceClient;
}

/** The SDK renames at a host of the account only, and not every system resolves such a name. */
export function findHosts(): void {
  const { lookup } = dns;
  const here = (host: string) => (host.endsWith(".localhost") ? "127.0.0.1" : host);
  mock.method(dns, "lookup", (host: string, ...rest: []) => (lookup as (...all: unknown[]) => void)(here(host), ...rest));
}

/** Returns what is there from the first test of the file on. */
export function filesBench(): FilesBench {
  const bench = {} as FilesBench;
  before(async () => {
    findHosts();
    bench.stamp = await startStamp({});
    const endpoint = `http://${accountName}.file.localhost:${new URL(bench.stamp.endpoints.file).port}`;
    bench.service = new ShareServiceClient(endpoint, credential, options);
  });
  after(async () => {
    await bench.stamp.stop();
    mock.restoreAll();
  });
  return bench;
}

/** Status and code of the failure of a request. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await failure(work);
  return `${error.statusCode} ${(error as { code?: string }).code ?? ""}`;
}
