import type { DestinationStream } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import { standardOutput } from '../lib/log.ts';
import { logLineText } from './log-line.ts';
import { painter } from './terminal.ts';

/** Takes the log's JSON lines and writes them to standard output in the configured format. */
export function logOutput({ format, level }: Configuration['log']): DestinationStream {
  const { stdout, env } = process;
  const output = standardOutput();
  const isPretty = format === 'pretty' || (format === 'auto' && stdout.isTTY);
  if (!isPretty) return output;
  const options = { paint: painter(stdout, env), stacks: level === 'debug' || level === 'trace' };
  return { write: (line) => void output.write(`${logLineText(line, options)}\n`) };
}
