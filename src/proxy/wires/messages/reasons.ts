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
