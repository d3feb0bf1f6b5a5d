import { type Invocation, UsageError } from './command.ts';
import { askForRun } from './replica-documents.ts';
import { ReplicaPort } from './replica-port.ts';
import { KEY_VARIABLE, ownerHeaders, runOperand } from './run-access.ts';
import { printable, printJson } from './terminal.ts';

export async function run(invocation: Invocation): Promise<void> {
  const id = runOperand(invocation);
  const owner = ownerHeaders(invocation, process.env);
  if (!owner) {
    throw new UsageError(
      `only the owner of a run can cancel it: put the key in ${KEY_VARIABLE} or in a file named by --key-file, or say --anonymous if the run was begun without one.`,
    );
  }
  const status = await askForRun(new ReplicaPort('api', invocation, process.env, owner), id, 'DELETE');
  if (invocation.switches.has('json')) return printJson(status);
  process.stdout.write(
    printable(
      `${status.id} ${status.status}, ${status.cursor} events, ${status.text.length} characters of text`,
    ),
  );
  process.stdout.write('\n');
}
