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

/** Converts a `stop_reason` to a finish reason; unknown ones, such as `pause_turn`, stay unchanged. */
export const finishReasonOf = (stop_reason: string): string => REASONS.get(stop_reason) ?? stop_reason;

/** Converts a finish reason to a `stop_reason`. */
export const stopReasonOf = (finish: string): string => STOP_REASONS.get(finish) ?? finish;

const INPUT_FIELDS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

/** A usage report in the wire's format. */
export type MessagesUsage = Readonly<Record<string, unknown>>;

/**
 * Converts a cumulative report to the format of chat completions, in which the prompt includes cached tokens; the
 * wire's own fields are kept. `start`: the report in `message_start`, which older reports rely on for the input.
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
 * The report at the end of an answer: `reported`, with the total `usage`. Its input is that of the answer's beginning,
 * `start`, regardless of the attempts that continued it.
 */
export function reportOf(usage: Usage | undefined, start: unknown, reported: unknown): MessagesUsage {
  const input = inputOf(start);
  // Some gateways start with zeros and report the input at the end; for a continuation, that exceeds the client's
  // prompt.
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

/** A report's fields about the prompt; empty if it isn't a report. */
export function inputOf(usage: unknown): Record<string, number> {
  if (!isObject(usage)) return {};
  return Object.fromEntries(
    INPUT_FIELDS.flatMap((field) => {
      const tokens = usage[field];
      return typeof tokens === 'number' ? [[field, tokens]] : [];
    }),
  );
}
