/** Formats and protocols that this release reads and writes, as a process announces and tells them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { featureLevel, formatVersions } from "@stamp/base";
import { busVersion, fieldLevel, type ProcessVersionsSchema } from "@stamp/wire";

/** `level`: the one under which the process writes; undefined while it has not heard it. */
export const processVersions = (level: number | undefined): MessageInitShape<typeof ProcessVersionsSchema> => ({
  featureLevel,
  ...(level === undefined ? {} : { levelInUse: level }),
  fieldLevel,
  busVersion,
  formats: { ...formatVersions },
});
