import { stringify } from 'yaml';
import { checkKeyFiles } from '../config/key-files.ts';
import { loadConfiguration, readConnections } from '../config/load.ts';
import { redacted } from '../config/redaction.ts';
import { readWebhooks } from '../config/webhook-endpoints.ts';
import { type Invocation, UsageError } from './command.ts';
import { orProblems, printJson } from './terminal.ts';

export async function run({ operands, switches }: Invocation): Promise<number> {
  const [file] = operands;
  if (file === undefined) throw new UsageError('there is no file to check.');
  const json = switches.has('json');
  const loaded = await orProblems(json, () => {
    const checks = [readConnections, checkKeyFiles, readWebhooks];
    const { configuration, warnings } = loadConfiguration({ file, environment: process.env }, checks);
    return { configuration: redacted(configuration), warnings };
  });
  if (!loaded) return 2;
  if (json) {
    printJson({ ok: true, ...loaded });
    return 0;
  }
  for (const warning of loaded.warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(stringify(loaded.configuration));
  return 0;
}
