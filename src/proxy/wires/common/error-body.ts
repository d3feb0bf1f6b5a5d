import type { Wire } from './wire.ts';

/** The body of an error of ours, `{"error": …}`, as it is told on this wire. */
export function errorBodyOn(wire: Pick<Wire, 'errorBody'> | undefined, body: string): string {
  if (!wire?.errorBody) return body;
  const { error } = JSON.parse(body) as { readonly error: object };
  return wire.errorBody(error);
}
