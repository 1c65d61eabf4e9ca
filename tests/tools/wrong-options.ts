/** Loaded before a program of developers: a wrong option ends with one line and exit code 2, as at every command. */
const program = process.env.STAMP_PROGRAM;
// Processes that the program starts would name it as a setting that there is none of.
delete process.env.STAMP_PROGRAM;
process.on("uncaughtExceptionMonitor", ({ code, message }: NodeJS.ErrnoException) => {
  if (code?.startsWith("ERR_PARSE_ARGS_") !== true) return;
  const [sentence] = message.split(". To specify a positional argument");
  console.error(`stamp ${program}: ${sentence} (see ./stamp ${program} --help)`);
  process.exit(2);
});
