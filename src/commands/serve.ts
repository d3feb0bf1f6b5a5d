import { tolerateClosedTerminal } from '../lib/log.ts';
import { type OperatorView, serve } from '../server/serve.ts';
import { banner, listeningLine } from './banner.ts';
import type { Invocation } from './command.ts';
import { logOutput } from './log-output.ts';
import { assignmentsOf } from './options.ts';
import { summaryText } from './replica-summary.ts';
import { painter } from './terminal.ts';

export const run = ({ values }: Invocation): Promise<void> =>
  serve(
    { file: values.config, flags: assignmentsOf(values), environment: process.env },
    viewOf(process),
    async () => (await import('../workers/supervisor.ts')).openSupervisor,
  );

/** Terminals get text for people. Otherwise one line says that the replica listens, and the log is JSON. */
function viewOf({ stderr, env }: NodeJS.Process): OperatorView {
  stderr.on('error', tolerateClosedTerminal);
  const write = (text: string) => void stderr.write(text);
  return {
    log: logOutput,
    listening(urls, configuration) {
      write(stderr.isTTY ? banner(urls, configuration, painter(stderr, env)) : listeningLine(urls));
    },
    stopped({ runs, gaps }) {
      if (stderr.isTTY) write(`holdfast: ${summaryText(runs, gaps)}\n`);
    },
  };
}
