/** Features that an account's service properties switch on for blobs and containers. They go with every operation. */
import type { ServiceName, ServiceProperties } from "@stamp/azure-rest";
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

/** Files of shares have neither versions nor deleted states. A deleted share is kept as long as a deleted container. */
const filePolicyOf = (ofBlobs: ServiceProperties): BlobPolicy => ({
  ...blobPolicyOf({ ...ofBlobs, versioning: false, deleteRetention: { enabled: false } }),
  hierarchical: true,
});

/** Returns the policy that goes with operations of a service's requests. */
export function policyOf(
  service: ServiceName,
  { blob }: Readonly<Record<ServiceName, ServiceProperties>>,
): { readonly policy?: BlobPolicy } {
  if (service === "blob") return { policy: blobPolicyOf(blob) };
  return service === "file" ? { policy: filePolicyOf(blob) } : {};
}
