import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import type { ReloadCause, ReloadReport } from '../server/reload-report.ts';
import type { WorkerPlace } from '../server/server.ts';
import type { MetricPart } from './shared-metrics.ts';

/** Questions to a worker and their answers, by kind. */
export interface Questions {
  metrics: { readonly asked: object; readonly answer: MetricPart };
  reload: {
    readonly asked: { readonly cause: ReloadCause; readonly loaded: LoadedConfiguration };
    readonly answer: ReloadReport;
  };
}

export type QuestionKind = keyof Questions;

/** Messages from the supervisor. */
export type ToWorker =
  /** The reply to `born`. */
  | { readonly kind: 'start'; readonly place: WorkerPlace; readonly configuration: Configuration }
  | {
      readonly [Kind in QuestionKind]: {
        readonly kind: Kind;
        readonly id: number;
      } & Questions[Kind]['asked'];
    }[QuestionKind]
  /** `isLeaving`: the other workers keep running. */
  | { readonly kind: 'stop'; readonly isLeaving: boolean };

/** Messages to the supervisor. */
export type FromWorker =
  | { readonly kind: 'born' }
  | { readonly kind: 'listening' }
  /** The worker couldn't start and ends. `name`: of the error. */
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly reason: string }
  /** The worker has drained and ends. `metrics`: their final values. */
  | { readonly kind: 'ended'; readonly metrics: MetricPart };
