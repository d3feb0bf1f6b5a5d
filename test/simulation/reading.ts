/** What a client that knows only the standard wire has in the end, and every rule of that wire that was broken. */
export interface StreamReading {
  text: string;
  refusal: string;
  reasoning: string;
  /** What of it the end of the answer has, where that is said once more: thoughts that were cut are left out. */
  kept_reasoning?: string;
  toolCalls: { id: string; name: string; arguments: string }[];
  /** Ids of calls that came with a signature of their own. */
  signed: string[];
  finish: string | undefined;
  usage: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
  done: boolean;
  /** `data:` events, `[DONE]` and errors included: the client's cursor. */
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
 * What is left of the calls when the stream is over, and what is wrong with it. `live`: fragments of calls are shown, and
 * of an answer that was not finished some may be open.
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
