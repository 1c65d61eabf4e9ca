/** Handles of files, between the wire and @stamp/objects. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlesAnswer, OperationValue } from "@stamp/objects";
import * as wire from "@stamp/wire";
import { initOf, plainOf, toWire } from "@stamp/wire";
import { missing } from "./missing.ts";

/** Longest name of a session, and of a client that is shown, in UTF-16 units. */
const textMax = 256;

/** Throws FailureError `badRequest` for what nobody sends. */
export function handleStepFromWire(value: wire.HandleStep): OperationValue<"handles"> {
  if (!value.name) throw missing("a file's id");
  const { handle } = value;
  if (handle && (handle.session.length > textMax || handle.client.length > textMax))
    throw missing(`names of at most ${textMax} characters`);
  return { ...plainOf(value), name: plainOf(value.name) } as OperationValue<"handles">;
}

export function handlesToWire({ refused, file, lengthBytes }: HandlesAnswer): MessageInitShape<typeof wire.HandlesAnswerSchema> {
  const { pending, directoryId, entryName } = file;
  return {
    refused: refused ?? "",
    pending,
    directoryId,
    entryName,
    lengthBytes: toWire(lengthBytes),
    handles: file.handles.map((handle) => initOf(wire.FileHandleSchema, handle)),
  };
}
