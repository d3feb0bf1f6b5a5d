import type { UpstreamConfiguration } from '../../config/configuration.ts';
import type { Run, RunTarget, Target } from '../run.ts';
import type { HealthRegistry } from './health-registry.ts';

/** Where a run is sent, with the request headers as each of the targets is to have them. */
export function targetsOfRun(
  first: Target,
  all: readonly Target[],
  headersFor: (upstream: UpstreamConfiguration) => RunTarget['headers'],
  healths: HealthRegistry,
): Pick<Run, 'target' | 'headers' | 'targets'> {
  const alone = { target: first, headers: headersFor(first.upstream) };
  if (all.length < 2) return alone;
  const targets = all.map((target) => ({
    ...target,
    headers: headersFor(target.upstream),
    health: healths.of(target),
  }));
  return { ...alone, targets };
}
