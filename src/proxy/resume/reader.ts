import type { EpochName } from '../../checkpoint/epoch.ts';
import type { RunHeader } from '../../checkpoint/journal.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { Run } from '../run/context/run.ts';

/** What a client says it has of a run. */
export interface Position {
  readonly run: RunId;
  /** How many events of the run the client has. */
  readonly cursor: number;
  /** The epoch in the id of the client's last event, where it was told: events of a lost log are told by it. */
  readonly epoch?: EpochName;
  /** Payloads of the last events the client has, oldest first, the last one being event `cursor`. May be empty. */
  readonly tail: readonly string[];
  /** How the run was asked for, where the client brings its request: of a log without a header nobody else can tell. */
  readonly asked?: Pick<RunHeader, 'wire' | 'events'>;
}

/** A client that comes back to a run. */
export interface Reader extends Position {
  readonly owner: Owner;
  /** Aborts when the client has gone, or with `HAND_OVER` as its reason. */
  readonly signal: AbortSignal;
  /** `id:` lines were asked for. */
  readonly resumable: boolean;
  /**
   * The run to relay if it is taken over; undefined when its request is not known. There is no header when the
   * replica died before it stored anything: then only the request that comes now can say what the run is. Must have
   * no effect, for another replica may be the one that takes it over.
   */
  revive(header: RunHeader | undefined): Run | undefined;
  /** From now on the run is this replica's to deliver. */
  onTakenOver(): void;
}
