import { sleep } from '../../../lib/time.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { Splice } from '../../../plans/splice.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { type Dialect, mannerOf } from '../../wires/common/dialect.ts';
import { PrefillDoubt } from '../../wires/dialects/prefill-evidence.ts';
import type { PlannedAttempt } from '../context/planned-attempt.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { dialectOf, modelOf } from './asked-conversation.ts';
import { PROBE_MAX_MS, probePrefill } from './prefill-probe.ts';

/** What is known of what a target makes of a prefix, and what the attempts of one run teach about it. */
export class PrefillKnowledge {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  /** A prefill was rejected for what it left in doubt. */
  #doubt: PrefillDoubt | undefined;

  constructor(target: RunTarget, run: Run, context: RunContext) {
    this.#target = target;
    this.#run = run;
    this.#context = context;
  }

  get model(): string {
    return modelOf(this.#target, this.#run);
  }

  get dialect(): Dialect {
    return dialectOf(this.#target, this.#run, this.#context);
  }

  /** What was learnt about this model comes before what its dialect says about all. */
  get manner(): PrefillManner | undefined {
    return this.#learnt ?? mannerOf(this.dialect, this.model);
  }

  /**
   * Where nothing is known, finds out what other replicas know; a slow store delays no client for long. Then, if it may, asks
   * the target itself, which has `first` as the first event of an answer; `signal` aborts when no client waits any more.
   */
  async seek(mayProbe: boolean, first: object, signal: AbortSignal): Promise<void> {
    const { capabilities, configuration, time } = this.#context;
    if (this.manner !== undefined) return;
    await capabilities.consult(this.#target.name, this.model);
    if (!mayProbe || configuration.recovery.probe === 'off' || this.#run.wire.name !== 'chat_completions')
      return;
    if (this.manner !== undefined || signal.aborted) return;
    const settled = capabilities.probe(this.#target.name, this.model, () =>
      probePrefill(this.#target, this.model, this.dialect, first, this.#context),
    );
    await Promise.race([settled, sleep(time, PROBE_MAX_MS, signal)]);
  }

  /** A prefill was rejected: by the target, as one, or for what it was continued with. */
  reject(splice: Splice | undefined, by: 'target' | 'request' | 'seam'): void {
    const isBroken = this.manner === 'echo' && by === 'seam';
    const manner = by === 'target' || isBroken ? 'new_turn' : splice?.manner;
    if (manner) this.#remember(manner);
    else if (splice?.rejection === 'ambiguous')
      this.#doubt = new PrefillDoubt(splice.rejectedHead, splice.delivered);
  }

  /** The answer continued, and is now `text`: the result of a trial is known. */
  confirm({ mode, splice }: PlannedAttempt, text: string): void {
    if (this.manner !== undefined) return;
    const isProven = mode === 'nudge' && splice?.seam === 'anchored';
    const manner = mode === 'prefill' ? splice?.manner : isProven ? this.#doubt?.resolve(text) : undefined;
    if (manner) this.#remember(manner);
  }

  /** What the target makes of a prefix, as far as it was tried. */
  get #learnt(): PrefillManner | undefined {
    if (this.#run.wire.dialect) return undefined;
    return this.#context.capabilities.prefill(this.#target.name, this.model);
  }

  #remember(prefill: PrefillManner): void {
    if (this.#run.wire.dialect) return;
    this.#context.capabilities.rememberPrefill(this.#target.name, this.model, prefill);
  }
}
