/** What each operation of the Queue service asks of a SAS or a bearer ("Create an account SAS", "Create a service SAS"). Nothing is public. */
import type { OperationAuthorization, PermissionGroups } from "../auth/authorization.ts";
import type { QueueOperationName } from "./operations.ts";

const onService = (accountSas: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType: "s",
  accountSas,
  serviceSas: "never",
  role,
});
const onQueue = (
  accountSas: PermissionGroups,
  role: OperationAuthorization["role"],
  serviceSas: PermissionGroups = "never",
): OperationAuthorization => ({ resourceType: "c", accountSas, serviceSas, role });
const onMessages = (
  accountSas: PermissionGroups,
  serviceSas: PermissionGroups,
  role: OperationAuthorization["role"],
): OperationAuthorization => ({
  resourceType: "o",
  accountSas,
  serviceSas,
  role,
});

export const queueAuthorization: Readonly<Record<QueueOperationName, OperationAuthorization>> = {
  ListQueues: onService(["l"], "read"),
  GetQueueServiceProperties: onService(["r"], "read"),
  SetQueueServiceProperties: onService(["w"], "own"),
  GetUserDelegationKey: onService("never", "read"),
  CreateQueue: onQueue(["cw"], "contribute"),
  DeleteQueue: onQueue(["d"], "contribute"),
  GetQueueMetadata: onQueue(["r"], "read", ["r"]),
  SetQueueMetadata: onQueue(["w"], "contribute"),
  GetQueueAcl: onQueue("never", "own"),
  SetQueueAcl: onQueue("never", "own"),
  PutMessage: onMessages(["a"], ["a"], "contribute"),
  GetMessages: onMessages(["p"], ["p"], "contribute"),
  PeekMessages: onMessages(["r"], ["r"], "read"),
  ClearMessages: onMessages(["d"], "never", "contribute"),
  UpdateMessage: onMessages(["u"], ["u"], "contribute"),
  DeleteMessage: onMessages(["p"], ["p"], "contribute"),
};
