import { utterance } from './continuation.ts';
import type { ChunkDelta } from './deltas.ts';
import { type Envelope, type TokenUsage, usageOf } from './events.ts';
import { limited } from './limits.ts';
import type { CompletionRequest } from './request.ts';
import type { Script, ToolCall } from './script.ts';

/** What the client of an uncut run has in the end. Text that was never said is the empty string. */
export interface ExpectedAnswer {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: string;
  /** As the provider counts it; whether it is sent depends on the request. */
  readonly usage: TokenUsage;
}

export function expectedAnswer(script: Script, request: CompletionRequest): ExpectedAnswer {
  const { deltas, finish } = limited(utterance(script, { kind: 'original' }), request);
  const join = (said: (delta: ChunkDelta) => string | undefined) =>
    deltas.map((delta) => said(delta) ?? '').join('');
  return {
    text: join((delta) => delta.content),
    refusal: join((delta) => delta.refusal),
    reasoning: join((delta) => delta.reasoning_content ?? delta.reasoning),
    toolCalls: callsBegun(script, deltas),
    finish,
    usage: usageOf(request, deltas),
  };
}

/** The scripted calls that the deltas start; a limit may cut the arguments of the open ones. */
function callsBegun(script: Script, deltas: readonly ChunkDelta[]): ToolCall[] {
  const calls = script.parts.flatMap((part) =>
    'tool' in part ? [part.tool] : 'tools' in part ? part.tools : [],
  );
  const ids = new Set(deltas.flatMap((delta) => delta.tool_calls?.[0].id ?? []));
  return calls.filter((call) => ids.has(call.id));
}

const FINGERPRINT = { system_fingerprint: 'fp_script' };

/** The answer to a request that doesn't ask for a stream. */
export function completion(expected: ExpectedAnswer, { id, model, created, wire }: Envelope): object {
  if (wire === 'completions') {
    const choices = [{ text: expected.text, index: 0, logprobs: null, finish_reason: expected.finish }];
    const object = 'text_completion';
    return { id, object, created, model, choices, usage: expected.usage, ...FINGERPRINT };
  }
  const calls = expected.toolCalls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
  const message = {
    role: 'assistant',
    content: expected.text === '' && (calls.length > 0 || expected.refusal !== '') ? null : expected.text,
    refusal: expected.refusal === '' ? null : expected.refusal,
    ...(expected.reasoning === '' ? {} : { reasoning_content: expected.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: expected.finish }];
  return { id, object: 'chat.completion', created, model, choices, usage: expected.usage, ...FINGERPRINT };
}
