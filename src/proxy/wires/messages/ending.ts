import { isObject } from '../../../lib/json.ts';
import type { Usage } from '../../../plans/delta.ts';

const REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

const STOP_REASONS: ReadonlyMap<string, string> = new Map([
  ['stop', 'end_turn'],
  ['length', 'max_tokens'],
  ['tool_calls', 'tool_use'],
  ['content_filter', 'refusal'],
]);

/** A `stop_reason` as a finish reason; one of its own, such as `pause_turn`, stays as it is. */
export const finishReasonOf = (stop_reason: string): string => REASONS.get(stop_reason) ?? stop_reason;

/** A finish reason as a `stop_reason`. */
export const stopReasonOf = (finish: string): string => STOP_REASONS.get(finish) ?? finish;

const INPUT_FIELDS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

/** A report as it is on the wire. */
export type MessagesUsage = Readonly<Record<string, unknown>>;

/**
 * A cumulative report in the terms of chat, where the prompt counts whole, whether it was cached or not; the wire's own
 * fields are kept. `start`: that of `message_start`, which older reports leave the input to.
 */
export function usageOf(report: unknown, start: unknown): Usage | undefined {
  if (!isObject(report) || typeof report.output_tokens !== 'number') return undefined;
  const input = { ...inputOf(start), ...inputOf(report) };
  const prompt_tokens = Object.values(input).reduce((sum, tokens) => sum + tokens, 0);
  const completion_tokens = report.output_tokens;
  return {
    ...report,
    ...input,
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
}

/**
 * The report that goes with the end of an answer: what is `reported`, with the tokens of all of it, `usage`. The input is
 * that of the answer's own beginning, `start`, whichever attempt continued it.
 */
export function reportOf(usage: Usage | undefined, start: unknown, reported: unknown): MessagesUsage {
  const input = inputOf(start);
  // Some gateways begin with zeros, and say at the end what it was: of a continuation that is more than was asked.
  const isTold = Object.values(input).some((tokens) => tokens > 0);
  const output_tokens = usage?.completion_tokens ?? 0;
  if (usage && !isTold) {
    const {
      cache_creation_input_tokens: _,
      cache_read_input_tokens: __,
      ...rest
    } = isObject(reported) ? reported : {};
    return { ...rest, input_tokens: usage.prompt_tokens, output_tokens };
  }
  if (!isObject(reported)) return { ...input, output_tokens };
  const shared = Object.entries(input).filter(([field]) => isTold && typeof reported[field] === 'number');
  return { ...reported, ...Object.fromEntries(shared), output_tokens };
}

/** What a report says of the prompt, by its fields; nothing for what is no report. */
export function inputOf(usage: unknown): Record<string, number> {
  if (!isObject(usage)) return {};
  return Object.fromEntries(
    INPUT_FIELDS.flatMap((field) => {
      const tokens = usage[field];
      return typeof tokens === 'number' ? [[field, tokens]] : [];
    }),
  );
}
