/** A stamp with an account of directories, and Data Lake Storage's SDK for it. */
import dns from "node:dns";
import { mock } from "node:test";
import { type DataLakeFileSystemClient, DataLakeServiceClient, StorageSharedKeyCredential } from "@azure/storage-file-datalake";
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { failure } from "../conformance/target.ts";

/** The SDK renames at a host of the account only, and not every system resolves such a name. */
function resolveLocalhost(): void {
  const { lookup } = dns;
  const here = (host: string) => (host.endsWith(".localhost") ? "127.0.0.1" : host);
  mock.method(dns, "lookup", (host: string, ...rest: []) => (lookup as (...all: unknown[]) => void)(here(host), ...rest));
}

export const sharedKey = new StorageSharedKeyCredential(accountName, accountKey);

export interface Lake {
  /** Endpoint of the account at the dfs door. */
  readonly url: string;
  readonly service: DataLakeServiceClient;
  readonly connectionString: string;
  filesystem(): Promise<DataLakeFileSystemClient>;
  stop(): Promise<void>;
}

export async function startLake(more: Parameters<typeof startStamp>[0] = {}): Promise<Lake> {
  resolveLocalhost();
  const stamp = await startStamp({ hierarchicalNamespace: true, ...more });
  const { port } = new URL(stamp.endpoints.dfs);
  const url = `http://${accountName}.dfs.localhost:${port}`;
  const service = new DataLakeServiceClient(url, sharedKey, { retryOptions: { maxTries: 1 } });
  let made = 0;
  return {
    url,
    service,
    connectionString: stamp.connectionString,
    async filesystem() {
      const client = service.getFileSystemClient(`lake-${++made}`);
      await client.create();
      return client;
    },
    async stop() {
      await stamp.stop();
      mock.restoreAll();
    },
  };
}

export const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error = await failure(work);
  return `${error.statusCode} ${(error as { code?: string }).code ?? ""}`;
};

/** Makes a file, or empties one, and gives it this content of ASCII. */
export async function write(client: DataLakeFileSystemClient, path: string, text: string): Promise<void> {
  const file = client.getFileClient(path);
  await file.create();
  await file.append(text, 0, text.length);
  await file.flush(text.length);
}
