/** The result that stands for a tool that its provider was running when the connection was lost. */
export const UNKNOWN_RESULT =
  'The connection was lost while this tool ran. It may have had its effect, and its result is not known.';
