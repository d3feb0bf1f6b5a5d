import { readFileSync } from 'node:fs';
import { type Invocation, UsageError } from './command.ts';

const STANDARD_INPUT = 0;
export const KEY_VARIABLE = 'HOLDFAST_API_KEY';

/** The key in `--key-file`, else in the environment; `undefined` when there is none. Throws a {@link UsageError}. */
export function givenKey(
  { values }: Pick<Invocation, 'values'>,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const file = values['key-file'];
  if (file === undefined) return environment[KEY_VARIABLE] || undefined;
  let key: string;
  try {
    key = readFileSync(file === '-' ? STANDARD_INPUT : file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`--key-file: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (!/^[!-~]+$/.test(key)) throw new UsageError(`--key-file: ${file} does not hold one key.`);
  return key;
}

/**
 * Headers that show whose run it is; `undefined` when nobody has said, and when only the admin port was named: a key in
 * the environment is there for other commands, too.
 */
export function ownerHeaders(
  invocation: Invocation,
  environment: NodeJS.ProcessEnv,
): Readonly<Record<string, string>> | undefined {
  const { values, switches } = invocation;
  if (switches.has('anonymous')) return {};
  const isAdminMeant =
    values.admin !== undefined && values.api === undefined && values['key-file'] === undefined;
  if (isAdminMeant) return undefined;
  const key = givenKey(invocation, environment);
  return key === undefined ? undefined : { authorization: `Bearer ${key}` };
}
