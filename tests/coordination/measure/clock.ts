/** Time and account of the measuring programs. */
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";

/** Monotonic time that all processes of a Linux machine share, in milliseconds. */
export const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The container of the account in STAMP, through `port` if one is given: a Relay listens there. */
export function container(name: string, port?: number): ContainerClient {
  const given = process.env.STAMP ?? "";
  const through = port === undefined ? given : given.replace(/(BlobEndpoint=http:\/\/[^:;/]+):\d+/, `$1:${port}`);
  return BlobServiceClient.fromConnectionString(through).getContainerClient(name);
}

/** The value of `name` in the connection string in STAMP. */
export const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(process.env.STAMP ?? "")?.[1] ?? "";

/** Quantiles of a list of times, in the unit of the list. */
export function spread(values: readonly number[], digits = 1): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]?.toFixed(digits) ?? "-";
  return `${sorted.length} | ${at(0)} | ${at(0.5)} | ${at(0.9)} | ${at(1)}`;
}
