/** `StampContainer`: a whole stamp in a container of the image, for tests with testcontainers. */
export { StampContainer, StartedStampContainer } from "./stamp-container.ts";
