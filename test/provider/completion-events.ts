import { event } from './events.ts';

interface Choice {
  readonly delta?: Readonly<Record<string, unknown>>;
  readonly finish_reason?: unknown;
  readonly [field: string]: unknown;
}

/**
 * Rewrites a server's chat event as the server words it on `/v1/completions`: the choices have their text at the top
 * level, and nothing else changes. Returns `undefined` for a chunk that contains only the role. Events that aren't
 * chunks stay as they are.
 */
export function asCompletion(told: string): string | undefined {
  const [, data = ''] = /^data: (\{.*\})$/m.exec(told) ?? [];
  const chunk = (data === '' ? {} : JSON.parse(data)) as { readonly choices?: readonly Choice[] };
  const { choices } = chunk;
  if (!choices) return told;
  if (choices.length > 0 && choices.every(isOpening) && !('error' in chunk)) return undefined;
  return event({
    ...chunk,
    object: 'text_completion',
    choices: choices.map(({ delta, ...choice }) => ({ ...choice, text: delta?.content ?? '' })),
  });
}

const isOpening = ({ delta = {}, finish_reason = null }: Choice): boolean =>
  delta.role !== undefined && !delta.content && finish_reason === null;
