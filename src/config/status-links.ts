import type { Configuration } from './configuration.ts';

/** The placeholders that a link may contain. */
const PLACEHOLDERS: readonly string[] = ['{run_id}', '{trace_id}'];

/**
 * Why a template such as `https://traces.example.com/trace/{trace_id}` is invalid; undefined if it is valid. Only
 * `http:` and `https:` links are allowed on the status page, and a placeholder in the host would let a trace choose the
 * host.
 */
export function linkFault(template: string | undefined): string | undefined {
  if (template === undefined) return undefined;
  const named = template.match(/\{[^{}]*\}/g) ?? [];
  const unknown = named.find((placeholder) => !PLACEHOLDERS.includes(placeholder));
  if (unknown !== undefined) return `has ${unknown}; it may have ${PLACEHOLDERS.join(' and ')}.`;
  if (named.length === 0) return `must have ${PLACEHOLDERS.join(' or ')}, or every run has the same link.`;
  const { protocol, host, username, password } = URL.parse(withoutPlaceholders(template)) ?? {};
  if ((protocol !== 'https:' && protocol !== 'http:') || !host)
    return 'must be an http: or https: URL, like https://traces.example.com/trace/{trace_id}.';
  if (username || password) return 'must not hold credentials; everyone who sees the page gets the link.';
  const origin = /^[^:]+:\/*[^/?#\\]*/.exec(template)?.[0] ?? '';
  return /[{}]/.test(origin) ? 'must have its placeholders after the host.' : undefined;
}

const withoutPlaceholders = (template: string): string => template.replaceAll(/[{}]/g, '_');

/** The configured link templates, by destination. */
export const statusLinks = ({ trace_url, log_url }: Configuration['status_page']) => ({
  ...(trace_url !== undefined && { trace_url }),
  ...(log_url !== undefined && { log_url }),
});
