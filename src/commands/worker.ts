// Entry point of the processes that the supervisor of `serve --workers` starts; not a command.
import { runWorker } from '../workers/worker.ts';
import { logOutput } from './log-output.ts';

process.exit(await runWorker(logOutput));
