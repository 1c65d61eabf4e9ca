/** The codecs' numbers and readers; they live in base since the row, checkpoint and commit formats share them. */
export { ByteReader, ByteWriter, DecodeError } from "@stamp/base";
