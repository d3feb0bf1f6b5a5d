import type { RunTree } from './collector.ts';
import type { AttributeMap, ReceivedSpan } from './otlp.ts';

/** Draws a trace as `docs/tracing.md` does: without times, identifiers and anything else that varies between runs. */
export const drawn = ({ span, attempts }: RunTree): string =>
  [
    line(0, span, ['outcome']),
    ...eventsOf(span),
    ...attempts.flatMap((attempt) => [
      line(1, attempt, ['attempt', 'mode', 'upstream', 'outcome']),
      ...eventsOf(attempt, 1),
    ]),
  ].join('\n');

function line(
  depth: number,
  { name, kind, isError, attributes }: ReceivedSpan,
  told: readonly string[],
): string {
  const details = told.flatMap((key) => detail(key, attributes));
  const error = isError ? [`error.type=${attributes['error.type']}`] : [];
  return `${'    '.repeat(depth)}${[name, kind.toUpperCase(), ...details, ...error].join('  ')}`;
}

const eventsOf = ({ events }: ReceivedSpan, depth = 0): string[] =>
  events.map(({ name, attributes }) => {
    const told = ['cause', 'phase', 'evidence', 'plan', 'give_up', 'mode', 'seam'];
    return `${'    '.repeat(depth)}  · ${[name, ...told.flatMap((key) => detail(key, attributes))].join('  ')}`;
  });

function detail(key: string, attributes: AttributeMap): string[] {
  const value = attributes[`holdfast.${key}`];
  return value === undefined ? [] : [`${key}=${value}`];
}
