/** Ways to end an answer's connection early. */
export const CUTS = ['reset', 'close', 'truncate'] as const;
export type Cut = (typeof CUTS)[number];

/** Errors that a provider reports inside its stream. */
export const ERROR_NAMES = ['overloaded', 'rate_limit', 'server_error'] as const;
export type ErrorName = (typeof ERROR_NAMES)[number];

/** Statuses with which a provider rejects a request. */
export const STATUSES = [429, 500, 503, 529] as const;
export type Status = (typeof STATUSES)[number];

/**
 * Where in an answer a fault strikes. `start`: before the first content. `tool`: after the first piece of a tool call's
 * arguments. `end`: before the finish. The others count characters of content and strike at `end` at the latest.
 */
export type Place =
  | { readonly kind: 'start' | 'tool' | 'end' }
  | { readonly kind: 'percent'; readonly percent: number }
  | { readonly kind: 'characters'; readonly characters: number };

/** A fault in the middle of an answer. */
export type PlacedFault = { readonly place: Place } & (
  | { readonly kind: 'cut'; readonly cut: Cut }
  | { readonly kind: 'stall'; readonly duration_ms: number }
  | { readonly kind: 'error'; readonly error: ErrorName }
);

/** `status`: replaces the answer. */
export type Fault = PlacedFault | { readonly kind: 'status'; readonly status: Status };

/** The fault's name without its place: `reset`, `stall`, `overloaded`, `529`. */
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

/** The place as written on the command line; undefined for a status, which replaces the whole answer. */
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
