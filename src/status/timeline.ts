import type { Evidence } from '../interrupts/interruption.ts';
import { CONTROLS } from '../lib/text.ts';
import type { TimelineEntry } from './snapshot.ts';

/** A run has a handful of entries; one that is tried a hundred times shows its first and its latest ones. */
const ENTRIES_MAX = 60;
const FIRST_KEPT = 12;

/** What happened to one run, in order and in bounded memory. */
export class Timeline {
  readonly #entries: TimelineEntry[] = [];
  #omitted = 0;

  get entries(): readonly TimelineEntry[] {
    return this.#entries;
  }

  get omitted(): number {
    return this.#omitted;
  }

  add(entry: TimelineEntry): void {
    this.#entries.push(entry);
    if (this.#entries.length <= ENTRIES_MAX) return;
    this.#entries.splice(FIRST_KEPT, 1);
    this.#omitted++;
  }
}

/** Codes are short; what is longer is none. */
const DETAIL_CHARACTERS_MAX = 60;

/** What there is to know of evidence besides its kind. Some of it is the provider's own choice of words. */
export function evidenceDetail(evidence: Evidence): string | undefined {
  const detail = detailOf(evidence);
  return detail === undefined ? undefined : shownText(detail, DETAIL_CHARACTERS_MAX);
}

function detailOf(evidence: Evidence): string | undefined {
  switch (evidence.kind) {
    case 'transport':
      return evidence.code;
    case 'goaway':
      return String(evidence.code);
    case 'clock':
      return evidence.clock;
    case 'status':
      return String(evidence.status);
    case 'not_a_stream':
      return evidence.content_type;
    case 'error_event':
      return evidence.type;
    case 'finish_reason':
    case 'seam_rejected':
      return evidence.reason;
    case 'limit':
      return evidence.limit;
    default:
      return undefined;
  }
}

/** Foreign text as it may be shown: on one line, and at most `characters_max` long. */
export function shownText(text: string, characters_max: number): string {
  const short = text.length > characters_max ? `${text.slice(0, characters_max - 1)}…` : text;
  return short.toWellFormed().replace(CONTROLS, '\ufffd');
}
