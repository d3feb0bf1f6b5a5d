import { parseArgs } from 'node:util';
import { type CommandDescription, type Invocation, UsageError } from './command.ts';

/** Throws a {@link UsageError} for whatever the command does not take. */
export function parseInvocation(
  { name, operand, options }: CommandDescription,
  words: readonly string[],
): Invocation {
  const known = Object.fromEntries(
    options.map((option) => [
      option.name,
      { type: option.value === undefined ? 'boolean' : 'string' } as const,
    ]),
  );
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...words], options: known, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const { values, positionals } = parsed;
  const operands_max = operand?.many ? Number.POSITIVE_INFINITY : operand ? 1 : 0;
  if (positionals.length > operands_max)
    throw new UsageError(`unexpected argument "${positionals[operands_max]}".`);
  if (operand?.required && positionals.length === 0)
    throw new UsageError(
      operand.missing ?? `${name} needs ${operand.name}: holdfast ${name} ${operand.name}`,
    );
  const strings = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const switches = Object.entries(values).filter(([, value]) => value === true);
  return {
    operands: positionals,
    values: Object.fromEntries(strings),
    switches: new Set(switches.map(([option]) => option)),
  };
}
