/** Where the examples find their account: the connection string that `npm start` printed, in STAMP. */
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { type QueueClient, QueueServiceClient } from "@azure/storage-queue";

function connectionString(): string {
  const { STAMP } = process.env;
  if (STAMP !== undefined && STAMP !== "") return STAMP;
  console.error('Set STAMP to the connection string that `npm start` printed: export STAMP="DefaultEndpointsProtocol=…"');
  process.exit(2);
}

export const container = (name: string): ContainerClient =>
  BlobServiceClient.fromConnectionString(connectionString()).getContainerClient(name);

export const queue = (name: string): QueueClient => QueueServiceClient.fromConnectionString(connectionString()).getQueueClient(name);

export const table = (name: string): TableClient =>
  TableClient.fromConnectionString(connectionString(), name, { allowInsecureConnection: true });

export const accountName = (): string => /AccountName=([^;]+)/.exec(connectionString())?.[1] ?? "";
export const accountKey = (): string => /AccountKey=([^;]+)/.exec(connectionString())?.[1] ?? "";

/** The number after `name` on the command line, or `fallback`. */
export function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(name);
  const value = at < 0 ? fallback : Number(process.argv[at + 1]);
  if (Number.isFinite(value) && value >= 0) return value;
  console.error(`${name} must be followed by a number`);
  process.exit(2);
}
