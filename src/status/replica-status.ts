import type { Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import type { RunBoard } from './run-board.ts';
import { StatusFeed } from './status-feed.ts';
import type { StatusReport } from './status-report.ts';
import type { StatusSource } from './status-routes.ts';

interface ReplicaStatusParts {
  readonly board: RunBoard;
  readonly report: StatusReport;
  readonly time: Time;
  /** The content of `GET /` besides name, version and uptime. */
  brief(): object;
}

/** The data of one process's status page. */
export const replicaStatus = ({ board, report, time, brief }: ReplicaStatusParts): StatusSource => ({
  brief: async () => ({
    name: 'holdfast',
    version: VERSION,
    uptime_s: Math.round(process.uptime()),
    ...brief(),
  }),
  status: () => report.read(),
  runs: async () => board.runs(),
  run: async (id) => board.detail(id),
  tasks: async () => board.tasks.read(),
  task: async (id) => board.tasks.detail(id),
  feed: new StatusFeed({ board, report, time }),
});
