/** How the connection of an answer ends too early. */
export const CUTS = ['reset', 'close', 'truncate'] as const;
export type Cut = (typeof CUTS)[number];

/** Errors that a provider reports within its stream. */
export const ERROR_NAMES = ['overloaded', 'rate_limit', 'server_error'] as const;
export type ErrorName = (typeof ERROR_NAMES)[number];

/** Statuses with which a provider refuses a request. */
export const STATUSES = [429, 500, 503, 529] as const;
export type Status = (typeof STATUSES)[number];

/**
 * Where in an answer a fault strikes. `start`: before the first content. `tool`: after the first piece of the arguments of a
 * tool call. `end`: before the finish. The others count characters of content, and are at the latest where `end` is.
 */
export type Place =
  | { readonly kind: 'start' | 'tool' | 'end' }
  | { readonly kind: 'percent'; readonly percent: number }
  | { readonly kind: 'characters'; readonly characters: number };

/** What happens in the midst of an answer. */
export type PlacedFault = { readonly place: Place } & (
  | { readonly kind: 'cut'; readonly cut: Cut }
  | { readonly kind: 'stall'; readonly duration_ms: number }
  | { readonly kind: 'error'; readonly error: ErrorName }
);

/** `status`: in place of an answer. */
export type Fault = PlacedFault | { readonly kind: 'status'; readonly status: Status };

/** What the fault is called where its place is said elsewhere: `reset`, `stall`, `overloaded`, `529`. */
export function faultName(fault: Fault): string {
  switch (fault.kind) {
    case 'cut':
      return fault.cut;
    case 'stall':
      return 'stall';
    case 'error':
      return fault.error;
    case 'status':
      return String(fault.status);
  }
}

/** The place as it is written on the command line; a status comes before everything else. */
export function placeText(fault: Fault): string | undefined {
  if (fault.kind === 'status') return undefined;
  const { place } = fault;
  switch (place.kind) {
    case 'percent':
      return `${place.percent}%`;
    case 'characters':
      return String(place.characters);
    default:
      return place.kind;
  }
}
