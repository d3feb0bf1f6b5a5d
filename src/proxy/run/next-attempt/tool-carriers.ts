import type { ProviderTool } from '../../../plans/provider-tools.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { Run } from '../context/run.ts';

/**
 * Whether this target takes back what the tools of a provider have done: only the provider that ran them does, by
 * whichever of its models and keys it is asked. Another one would refuse the items, or pass over them and run the tools.
 */
export function takesBack(
  target: RunTarget,
  tools: readonly ProviderTool[],
  { targets = [target] }: Pick<Run, 'targets'>,
): boolean {
  const host = hostOf(target);
  return tools.every(({ upstream }) => {
    const authors = targets.filter(({ name }) => upstream === undefined || name === upstream);
    return authors.length > 0 && authors.every((author) => hostOf(author) === host);
  });
}

const hostOf = ({ upstream: { base_url } }: RunTarget): string => new URL(base_url).host;
