import { parsedExactly } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Dialect } from '../../wires/common/dialect.ts';
import { FORMS, type Form, type Notice, type WireNotices } from '../../wires/common/notices.ts';

/** What became of the notices of a request: the model has read them, its provider will not have them, or neither. */
export type Fate = 'told' | 'refused' | 'unseen';

/** What servers answer whose chat template finds a message where it allows none: some take that for their own error. */
const REFUSALS: ReadonlySet<number> = new Set([400, 422, 500]);

/**
 * The form in which the notices of one request are put. They are the proxy's addition and must not cost the client
 * its answer: a request that is refused with them is made again with them in another form, and then without.
 */
export class NoticeForm {
  readonly #notices: readonly Notice[];
  readonly #wire: WireNotices;
  readonly #first: Form;
  #form: Form;
  #fate: Fate = 'unseen';
  /** Without the notices it was refused as well. */
  #blameless = false;

  /** `dialect`: of the provider, if it is known. */
  constructor(notices: readonly Notice[], wire: WireNotices, dialect: Dialect | undefined) {
    this.#notices = notices;
    this.#wire = wire;
    const joins = dialect?.answersToolResults && notices.some(({ place }) => place === 'tool_results');
    this.#first = joins ? 'joined' : 'added';
    this.#form = this.#first;
  }

  get fate(): Fate {
    return this.#fate;
  }

  /** The body of a request, which is JSON, with the notices. */
  bodyOf(body: string): string {
    const form = this.#form;
    if (form === 'left_out') return body;
    let request = parsedExactly(body) as Fields;
    for (const notice of this.#notices) request = this.#wire.withNotice(request, notice, form);
    return JSON.stringify(request);
  }

  /** Takes the status of the answer. True if the request is to be made again, its body asked for anew. */
  refused(status: number): boolean {
    if (status < 300) this.#fate = this.#form === 'left_out' ? 'refused' : 'told';
    if (!REFUSALS.has(status) || this.#fate !== 'unseen' || this.#blameless) return false;
    const next = FORMS[FORMS.indexOf(this.#form) + 1];
    this.#blameless = next === undefined;
    this.#form = next ?? this.#first;
    return next !== undefined;
  }
}
