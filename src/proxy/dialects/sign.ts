import { isObject } from '../../json.ts';

/** What a provider's stream shows of the server it comes from. */
export interface Traces {
  /** Parsed events: the first ones, and the one that finishes. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** Of the response, under lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const NO_TRACES: Traces = { events: [], headers: {} };

/** Something that only one server sends. */
export interface Sign {
  /** In words, for the documentation. */
  readonly says: string;
  isIn(traces: Traces): boolean;
}

/** A field at the top of an event, of which `isIts` says that it is the server's. */
export const eventSign = (
  says: string,
  isIts: (event: Readonly<Record<string, unknown>>) => boolean,
): Sign => ({ says, isIn: ({ events }) => events.some(isIts) });

/** A `system_fingerprint` of this form. */
export const fingerprintSign = (says: string, form: RegExp): Sign =>
  eventSign(
    `\`system_fingerprint\` ${says}`,
    ({ system_fingerprint }) => typeof system_fingerprint === 'string' && form.test(system_fingerprint),
  );

/** A field of `choices[0]`, whatever its value: servers that know it send it empty, too. */
export const hasChoiceField = ({ choices }: Readonly<Record<string, unknown>>, field: string): boolean => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && field in choice;
};
