/** Loaded into each process of tests: ends one that goes on for ever, as a test may leave work that its time limit does not stop. */
const minutes = Number(process.env.TEST_FILE_MINUTES);
if (minutes > 0 && /\.(test|slow)\.ts$/.test(process.argv[1] ?? "")) {
  const end = (): void => {
    console.error(`${process.argv[1]} has not ended within ${minutes} minutes: a test goes on after its time, or has left something open`);
    process.exit(1);
  };
  setTimeout(end, minutes * 60_000).unref();
}
