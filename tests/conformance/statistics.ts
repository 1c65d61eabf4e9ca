/** Get Service Stats at the secondary location of an account, by the SDK of each service. */
import { AzureNamedKeyCredential, TableServiceClient } from "@azure/data-tables";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { StorageSharedKeyCredential as QueueCredential, QueueServiceClient } from "@azure/storage-queue";
import { type AccountRole, encodeRole } from "@stamp/geo";
import { accountKey, accountName, type ScriptedStamp } from "./scripted-stamp.ts";

export const services = ["blob", "queue", "table"] as const;
export type Service = (typeof services)[number];

export const secondaryAccount = `${accountName}-secondary`;

/** Row of an account that has a second stamp, south-1. */
export const roleRow = (role: AccountRole["role"]): string =>
  encodeRole({ role, epoch: 2, obeyed: { operation: 3, phase: 1 }, peer: "south-1" });

export interface Statistics {
  readonly status: string | undefined;
  /** Undefined: the element is empty, which two of the SDKs make an invalid date of. */
  readonly lastSync: Date | undefined;
}

/**
 * What the SDK of a service makes of the statistics. `account`: name in the path. The SDK of queues (12.32) expects another
 * root element than the reference and the SDKs of other languages, and so gives nothing: its answer is read as text.
 */
export async function statisticsOf(service: Service, stamp: ScriptedStamp, account: string = secondaryAccount): Promise<Statistics> {
  let text = "";
  const onResponse = ({ bodyAsText }: { bodyAsText?: string | null }): void => {
    text = bodyAsText ?? "";
  };
  const told = (await clientOf(service, stamp, account).getStatistics({ onResponse })).geoReplication;
  if (service === "queue") {
    const at = new Date(/<LastSyncTime>(.+)<.LastSyncTime>/.exec(text)?.[1] ?? "");
    return { status: /<Status>(.*)<.Status>/.exec(text)?.[1], lastSync: Number.isNaN(at.getTime()) ? undefined : at };
  }
  const at =
    told === undefined ? undefined : "lastSyncOn" in told ? told.lastSyncOn : "lastSyncTime" in told ? told.lastSyncTime : undefined;
  return { status: told?.status, lastSync: at instanceof Date && !Number.isNaN(at.getTime()) ? at : undefined };
}

function clientOf(service: Service, stamp: ScriptedStamp, account: string) {
  const retryOptions = { maxTries: 1 };
  switch (service) {
    case "blob":
      return new BlobServiceClient(`${stamp.endpoint}/${account}`, new StorageSharedKeyCredential(accountName, accountKey), {
        retryOptions,
      });
    case "queue":
      return new QueueServiceClient(`${stamp.queueEndpoint}/${account}`, new QueueCredential(accountName, accountKey), { retryOptions });
    case "table":
      return new TableServiceClient(`${stamp.tableEndpoint}/${account}`, new AzureNamedKeyCredential(accountName, accountKey), {
        allowInsecureConnection: true,
        retryOptions: { maxRetries: 0 },
      });
  }
}
