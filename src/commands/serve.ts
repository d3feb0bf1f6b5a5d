import { standardOutput, tolerateClosedTerminal } from '../lib/log.ts';
import { type OperatorView, serve } from '../server/serve.ts';
import { banner, listeningLine } from './banner.ts';
import type { Invocation } from './command.ts';
import { logLineText } from './log-line.ts';
import { assignmentsOf } from './options.ts';
import { summaryText } from './replica-summary.ts';
import { painter } from './terminal.ts';

export const run = ({ values }: Invocation): Promise<void> =>
  serve({ file: values.config, flags: assignmentsOf(values), environment: process.env }, viewOf(process));

/** What is written to terminals is for people; programs get a line when it listens, and the log as JSON. */
function viewOf({ stdout, stderr, env }: NodeJS.Process): OperatorView {
  stderr.on('error', tolerateClosedTerminal);
  const write = (text: string) => void stderr.write(text);
  return {
    log({ format, level }) {
      const output = standardOutput();
      const isPretty = format === 'pretty' || (format === 'auto' && stdout.isTTY);
      if (!isPretty) return output;
      const options = { paint: painter(stdout, env), stacks: level === 'debug' || level === 'trace' };
      return { write: (line) => void output.write(`${logLineText(line, options)}\n`) };
    },
    listening(urls, configuration) {
      write(stderr.isTTY ? banner(urls, configuration, painter(stderr, env)) : listeningLine(urls));
    },
    async stopped({ runs, recoveryGap }) {
      if (!stderr.isTTY) return;
      const [ended, gaps] = await Promise.all([runs.get(), recoveryGap.get()]);
      write(`holdfast: ${summaryText(ended.values, gaps.values)}\n`);
    },
  };
}
