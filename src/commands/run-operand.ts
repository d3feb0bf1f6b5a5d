import { isRunId, type RunId } from '../checkpoint/store.ts';
import { type Invocation, UsageError } from './command.ts';

/** Throws a {@link UsageError} for what cannot be the id of a run. */
export function runOperand({ operands }: Invocation): RunId {
  const [id = ''] = operands;
  if (!isRunId(id))
    throw new UsageError('that is no id of a run: it begins with run_, as in `holdfast runs list`.');
  return id;
}
