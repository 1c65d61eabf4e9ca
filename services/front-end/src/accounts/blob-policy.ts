/** Features that an account's service properties switch on for blobs and containers. They go with every operation. */
import type { ServiceProperties } from "@stamp/azure-rest";
import type { BlobPolicy } from "@stamp/objects";

export const blobPolicyOf = ({
  versioning,
  deleteRetention,
  containerDeleteRetention,
  hierarchicalNamespace,
}: ServiceProperties): BlobPolicy => ({
  versioning,
  deleteRetentionDays: deleteRetention.enabled ? (deleteRetention.days ?? 0) : 0,
  containerDeleteRetentionDays: containerDeleteRetention.enabled ? (containerDeleteRetention.days ?? 0) : 0,
  permanentDelete: deleteRetention.allowPermanentDelete ?? false,
  ...(hierarchicalNamespace && { hierarchical: true }),
});
