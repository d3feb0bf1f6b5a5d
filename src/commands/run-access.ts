import { readFileSync } from 'node:fs';
import { isRunId, type RunId } from '../checkpoint/store.ts';
import { type Invocation, UsageError } from './command.ts';

const STANDARD_INPUT = 0;
export const KEY_VARIABLE = 'HOLDFAST_API_KEY';

/** Throws a {@link UsageError} for what cannot be the id of a run. */
export function runOperand({ operands }: Invocation): RunId {
  const [id = ''] = operands;
  if (!isRunId(id))
    throw new UsageError('that is no id of a run: it begins with run_, as in `holdfast runs list`.');
  return id;
}

/**
 * Headers that show whose run it is; `undefined` when no key is given, and when only the admin port was named: a key in
 * the environment is there for other commands, too. Throws a {@link UsageError}.
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
