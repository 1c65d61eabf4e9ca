/** Loaded before a program of developers: a wrong option ends with one line and exit code 2, as at every command. */
process.on("uncaughtExceptionMonitor", ({ code, message }: NodeJS.ErrnoException) => {
  if (code?.startsWith("ERR_PARSE_ARGS_") !== true) return;
  const [sentence] = message.split(". To specify a positional argument");
  console.error(`stamp ${process.env.STAMP_PROGRAM}: ${sentence} (see ./stamp ${process.env.STAMP_PROGRAM} --help)`);
  process.exit(2);
});
