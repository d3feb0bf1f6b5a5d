/** What a client that knows only the standard wire has in the end, and the rules of the wire that were broken. */
export interface StreamReading {
  text: string;
  refusal: string;
  reasoning: string;
  /** The reasoning that the final event repeats, which leaves out interrupted reasoning. */
  kept_reasoning?: string;
  toolCalls: { id: string; name: string; arguments: string }[];
  /** The ids of calls with their own signature. */
  signed: string[];
  finish: string | undefined;
  usage: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
  done: boolean;
  /** The number of `data:` events, including `[DONE]` and errors: the client's cursor. */
  events: number;
  advisories: Record<string, unknown>[];
  violations: string[];
}

export const emptyReading = (): StreamReading => ({
  text: '',
  refusal: '',
  reasoning: '',
  toolCalls: [],
  signed: [],
  finish: undefined,
  usage: undefined,
  error: undefined,
  done: false,
  events: 0,
  advisories: [],
  violations: [],
});

/**
 * Removes cancelled calls and reports defective ones. `live`: fragments of calls are visible, so an unfinished answer
 * may have open calls.
 */
export function settleCalls(reading: StreamReading, cancelled: ReadonlySet<object>, live: boolean): void {
  const { violations } = reading;
  reading.toolCalls = reading.toolCalls.filter((call) => !cancelled.has(call));
  const mayBeOpen = live && reading.finish === undefined;
  for (const { id, arguments: text } of mayBeOpen ? [] : reading.toolCalls)
    if (!parses(text)) violations.push(`the arguments of ${id} do not parse: ${text}`);
  if (new Set(reading.toolCalls.map(({ id }) => id)).size !== reading.toolCalls.length)
    violations.push('a call came twice');
  if (!live && reading.advisories.length > 0) violations.push('an advisory that nobody asked for');
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
