/** What a client that knows only the standard wire has in the end, and every rule of that wire that was broken. */
export interface StreamReading {
  text: string;
  refusal: string;
  reasoning: string;
  toolCalls: { id: string; name: string; arguments: string }[];
  finish: string | undefined;
  usage: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
  done: boolean;
  /** `data:` events, `[DONE]` and errors included: the client's cursor. */
  events: number;
  advisories: Record<string, unknown>[];
  violations: string[];
}

interface Chunk {
  id?: string;
  created?: number;
  model?: string;
  object?: string;
  choices?: {
    index: number;
    delta: Record<string, unknown>;
    /** On `/v1/completions`, in place of a delta. */
    text?: string;
    finish_reason: string | null;
  }[];
  usage?: Record<string, unknown> | null;
  error?: Record<string, unknown>;
  holdfast?: Record<string, unknown>;
}

/** Reads a body as strictly as the strictest SDK does. `live`: fragments of tool calls may be cancelled. */
export function readStream(body: string, { live = false } = {}): StreamReading {
  const reading: StreamReading = {
    text: '',
    refusal: '',
    reasoning: '',
    toolCalls: [],
    finish: undefined,
    usage: undefined,
    error: undefined,
    done: false,
    events: 0,
    advisories: [],
    violations: [],
  };
  const identity: { id?: string | undefined; created?: number | undefined; model?: string | undefined } = {};
  let roles = 0;
  const complain = (what: string) => reading.violations.push(what);
  const cancelled = new Set<object>();
  const advise = (advisory: Record<string, unknown>) => {
    reading.advisories.push(advisory);
    const call = reading.toolCalls.findLast(
      ({ id }) => advisory.type === 'ToolCallCancel' && id === advisory.id,
    );
    if (call) cancelled.add(call);
  };

  for (const line of body.split('\n')) {
    if (line === '') continue;
    if (line.startsWith(': ')) {
      if (line.startsWith(': holdfast ')) advise(JSON.parse(line.slice(': holdfast '.length)));
      continue;
    }
    if (!line.startsWith('data: ')) {
      complain(`a line that is neither data nor comment: ${line}`);
      continue;
    }
    reading.events++;
    if (reading.done) complain('an event after [DONE]');
    if (reading.error) complain('an event after the error');
    const data = line.slice('data: '.length);
    if (data === '[DONE]') {
      reading.done = true;
      continue;
    }
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) {
      reading.error = chunk.error;
      continue;
    }
    if (!Array.isArray(chunk.choices)) {
      complain('an event without choices');
      continue;
    }
    if (reading.events === 1)
      Object.assign(identity, { id: chunk.id, created: chunk.created, model: chunk.model });
    for (const field of ['id', 'created', 'model'] as const) {
      if (chunk[field] !== identity[field])
        complain(`${field} changed from ${identity[field]} to ${chunk[field]}`);
    }
    if (chunk.usage) {
      if (reading.usage) complain('a second usage report');
      reading.usage = chunk.usage;
    }
    if (chunk.holdfast) advise(chunk.holdfast);
    const choice = chunk.choices[0];
    if (!choice) continue;
    const isText = chunk.object === 'text_completion';
    if (isText && choice.delta !== undefined) complain('a delta in a completion');
    const delta = isText ? { content: choice.text } : choice.delta;
    if (isText) roles = 1;
    const says = Object.entries(delta).some(
      ([field, value]) => field !== 'role' && value !== '' && value !== null,
    );
    if (reading.finish !== undefined && says) complain('content after the finish reason');
    // A field with nothing in it is what some servers have in every delta.
    if (delta.role) {
      roles++;
      if (reading.events !== 1) complain('a role after the first chunk');
    }
    if (typeof delta.content === 'string') reading.text += delta.content;
    if (typeof delta.refusal === 'string') reading.refusal += delta.refusal;
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === 'string') reading.reasoning += reasoning;
    for (const fragment of (delta.tool_calls ?? []) as {
      index: number;
      id?: string;
      type?: string;
      function?: { name?: string; arguments?: string };
    }[]) {
      const known = reading.toolCalls[fragment.index];
      if (!known) {
        if (fragment.index !== reading.toolCalls.length)
          complain(`tool index ${fragment.index} is not the next one`);
        if (!fragment.id || !fragment.function?.name || fragment.type !== 'function')
          complain('a call without identity');
        reading.toolCalls.push({
          id: fragment.id ?? '',
          name: fragment.function?.name ?? '',
          arguments: fragment.function?.arguments ?? '',
        });
      } else {
        if (fragment.id !== undefined || fragment.function?.name !== undefined)
          complain('a tool index was used again');
        known.arguments += fragment.function?.arguments ?? '';
      }
    }
    if (choice.finish_reason) {
      if (reading.finish !== undefined) complain('a second finish reason');
      reading.finish = choice.finish_reason;
    }
  }

  if (!live && reading.advisories.length > 0) complain('an advisory event that nobody asked for');
  reading.toolCalls = reading.toolCalls.filter((call) => !cancelled.has(call));
  const parsesNot = reading.toolCalls.filter((call) => !parses(call.arguments));
  if (reading.finish !== undefined || !live) {
    for (const call of parsesNot) complain(`the arguments of ${call.id} do not parse: ${call.arguments}`);
  }
  if (new Set(reading.toolCalls.map(({ id }) => id)).size !== reading.toolCalls.length)
    complain('a call came twice');
  if (reading.events > 0 && roles !== 1 && !(reading.error && reading.events === 1))
    complain(`${roles} roles`);
  if (reading.error && (reading.done || reading.finish !== undefined))
    complain('an error beside a finish or [DONE]');
  if (reading.done && reading.finish === undefined) complain('[DONE] without a finish reason');
  return reading;
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
