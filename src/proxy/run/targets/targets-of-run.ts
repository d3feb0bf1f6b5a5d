import type { UpstreamConfiguration } from '../../../config/configuration.ts';
import type { HealthRegistry } from '../../upstream/health-registry.ts';
import type { RunTarget, Target } from '../../upstream/target.ts';
import type { Run } from '../context/run.ts';

/** Where a run for `model` is sent, with the request headers as each of the targets is to have them. */
export function targetsOfRun(
  first: Target,
  all: readonly Target[],
  headersFor: (upstream: UpstreamConfiguration) => RunTarget['headers'],
  healths: HealthRegistry,
  model: string,
): Pick<Run, 'target' | 'headers' | 'targets'> {
  const alone = { target: first, headers: headersFor(first.upstream) };
  if (all.length < 2) return alone;
  const targets = all.map((target) => ({
    ...target,
    headers: headersFor(target.upstream),
    health: healths.of(target, model),
  }));
  return { ...alone, targets };
}
