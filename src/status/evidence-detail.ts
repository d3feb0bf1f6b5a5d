import type { Evidence } from '../interrupts/interruption.ts';
import { shownText } from './shown-text.ts';

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
