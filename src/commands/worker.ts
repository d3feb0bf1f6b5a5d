// What the supervisor of `serve --workers` starts; not a command of its own.
import { runWorker } from '../workers/worker.ts';
import { logOutput } from './log-output.ts';

process.exit(await runWorker(logOutput));
