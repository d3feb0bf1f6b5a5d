import type { Wire } from '../../../src/proxy/wires/common/wire.ts';

/** The document that these events add up to. */
export function documentOf({ document }: Pick<Wire, 'document'>, payloads: readonly (string | object)[]) {
  const fold = document.fold();
  for (const payload of payloads) fold.add(typeof payload === 'string' ? payload : JSON.stringify(payload));
  const whole = fold.document();
  return whole && (JSON.parse(JSON.stringify(whole)) as Record<string, unknown>);
}
