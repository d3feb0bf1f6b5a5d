import { argumentPieces, textPieces } from './pieces.ts';
import type { Part, Script, ToolCall, ToolShape } from './script.ts';

/** `choices[0].delta` of one chunk. Each counts as one completion token. */
export interface ChunkDelta {
  readonly content?: string;
  readonly refusal?: string;
  readonly reasoning_content?: string;
  readonly reasoning?: string;
  readonly tool_calls?: readonly [ToolCallDelta];
}

export interface ToolCallDelta {
  readonly index?: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name?: string; readonly arguments: string };
}

export function deltasOf(parts: readonly Part[], style: Pick<Script, 'chunk' | 'tool_shape'>): ChunkDelta[] {
  let calls = 0;
  return parts.flatMap((part): ChunkDelta[] => {
    if ('text' in part) return textPieces(part.text, style.chunk).map((content) => ({ content }));
    if ('refusal' in part) return textPieces(part.refusal, style.chunk).map((refusal) => ({ refusal }));
    if ('reasoning' in part) {
      const field = part.field ?? 'reasoning_content';
      return textPieces(part.reasoning, style.chunk).map((text) => ({ [field]: text }));
    }
    const parallel = 'tool' in part ? [part.tool] : part.tools;
    const deltas = toolDeltas(parallel, calls, style.tool_shape ?? 'openai');
    calls += parallel.length;
    return deltas.map((delta) => ({ tool_calls: [delta] }));
  });
}

function toolDeltas(calls: readonly ToolCall[], first: number, shape: ToolShape): ToolCallDelta[] {
  switch (shape) {
    case 'no_index':
      return calls.map(whole);
    case 'whole':
      return calls.map((call, position) => ({ index: first + position, ...whole(call) }));
    case 'repeated_index':
      // Interleaved fragments with the same index would be impossible to tell apart, so the calls come one after
      // another.
      return calls.flatMap((call) => [start(call, 0), ...fragments(call, { index: 0 })]);
    case 'openai':
      return interleaved(calls, (call, position) => fragments(call, { index: first + position }), first);
    case 'id_repeated':
      return interleaved(
        calls,
        (call, position) => fragments(call, { index: first + position, id: call.id }, { name: '' }),
        first,
      );
  }
}

const whole = ({ id, name, arguments: json }: ToolCall): ToolCallDelta => ({
  id,
  type: 'function',
  function: { name, arguments: json },
});

const start = ({ id, name }: ToolCall, index: number): ToolCallDelta => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: '' },
});

const fragments = (call: ToolCall, key: { index: number; id?: string }, extra: { name?: string } = {}) =>
  argumentPieces(call.arguments).map((json) => ({ ...key, function: { ...extra, arguments: json } }));

function interleaved(
  calls: readonly ToolCall[],
  fragmentsOf: (call: ToolCall, position: number) => ToolCallDelta[],
  first: number,
): ToolCallDelta[] {
  const queues = calls.map(fragmentsOf);
  const rounds = Math.max(...queues.map((queue) => queue.length));
  const deltas = calls.map((call, position) => start(call, first + position));
  for (let round = 0; round < rounds; round++) {
    deltas.push(...queues.flatMap((queue) => queue.slice(round, round + 1)));
  }
  return deltas;
}
