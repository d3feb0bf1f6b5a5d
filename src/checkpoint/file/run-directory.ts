import { sealWith } from '../seal.ts';
import { commit } from './commit.ts';
import { LogState } from './log-state.ts';
import { checkName } from './names.ts';
import { NoteLog } from './note-log.ts';
import type { PrivateDirectory } from './private-directory.ts';
import type { Reply, Request, RequestHandlers, WriterThreadData } from './protocol.ts';
import { RunLog } from './run-log.ts';
import { SegmentLog } from './segment-log.ts';
import { Upkeep } from './upkeep.ts';

export interface RunDirectoryOptions extends Omit<WriterThreadData, 'dir'> {
  readonly directory: PrivateDirectory;
  /** See {@link Upkeep}. */
  readonly runs_max?: number | undefined;
  /**
   * Receives damage that leaves a run unidentified, one warning when there are more runs than can be kept, and errors of
   * the disk.
   */
  onError(error: Error): void;
}

/** One process's knowledge of a directory of runs and notes, and its operations on them. */
export class RunDirectory {
  readonly log: SegmentLog;
  readonly state: LogState;
  readonly runs: RunLog;
  readonly #upkeep: Upkeep;
  readonly #handlers: RequestHandlers;

  constructor(options: RunDirectoryOptions) {
    const { directory, replica, onError } = options;
    this.state = new LogState({
      onDamage: ({ segment, offset }) =>
        onError(
          new Error(`segment ${segment} of the log is damaged at byte ${offset}; of which run is not known`),
        ),
    });
    const { state } = this;
    this.log = new SegmentLog({ ...options, reader: state });
    const seal = options.seal && sealWith(options.seal);
    this.runs = new RunLog({ ...options, log: this.log, state, seal });
    this.#upkeep = new Upkeep({ ...options, log: this.log, state, runs: this.runs });
    const notes = new NoteLog({ log: this.log, state, replica });
    const { runs } = this;
    this.#handlers = {
      acquire: (request) => runs.acquire(request),
      append: (request) => runs.append(request),
      finish: (request) => runs.finish(request),
      release: (request) => runs.release(request),
      purge: (request) => runs.purge(request),
      read: (request) => runs.read(request),
      orphans: (request) => runs.orphans(request),
      indexed_runs: ({ owner }) => ({ answer: state.runs.listed(owner) }),
      forget_runs: (request) => runs.forget(request),
      put_note: (request) => notes.put(request),
      claim_note: (request) => notes.claim(request),
      get_note: (request) => notes.get(request),
      extend_note: (request) => notes.extend(request),
      take_note: (request) => notes.take(request),
      check: () => {
        directory.write(checkName(replica), 'ok');
        directory.remove(checkName(replica));
        return { answer: undefined };
      },
    };
  }

  /** Reads the whole log and completes purges that killed processes left unfinished. */
  open(): void {
    this.log.open();
    for (const run of this.state.runs.keys()) this.runs.blank(run);
  }

  perform(requests: readonly Request[]): readonly Reply[] {
    return commit(requests, this.log, this.#handlers);
  }

  /** Performs upkeep. Call it periodically. */
  keep(): void {
    this.#upkeep.pass();
  }

  close(): void {
    this.log.close();
  }
}
