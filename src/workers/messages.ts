import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import type { ReloadCause, ReloadReport } from '../server/reload-report.ts';
import type { WorkerPlace } from '../server/server.ts';
import type { MetricPart } from './shared-metrics.ts';

/** What a worker is asked, by kind, and what it answers. */
export interface Questions {
  metrics: { readonly asked: object; readonly answer: MetricPart };
  reload: {
    readonly asked: { readonly cause: ReloadCause; readonly loaded: LoadedConfiguration };
    readonly answer: ReloadReport;
  };
}

export type QuestionKind = keyof Questions;

/** From the supervisor. */
export type ToWorker =
  /** The answer to `born`. */
  | { readonly kind: 'start'; readonly place: WorkerPlace; readonly configuration: Configuration }
  | {
      readonly [Kind in QuestionKind]: {
        readonly kind: Kind;
        readonly id: number;
      } & Questions[Kind]['asked'];
    }[QuestionKind]
  /** `isLeaving`: the other workers continue. */
  | { readonly kind: 'stop'; readonly isLeaving: boolean };

/** To the supervisor. */
export type FromWorker =
  | { readonly kind: 'born' }
  | { readonly kind: 'listening' }
  /** It could not begin, for an error of this name, and ends. */
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly reason: string }
  /** It has drained, and ends; its metrics are those of its last moment. */
  | { readonly kind: 'ended'; readonly metrics: MetricPart };
