import { type ScenarioResult, summarise } from './results.ts';

/** Client and provider are single-threaded: close to one full core, they become the bottleneck. */
const LIMIT_PERCENT = 90;

/** A sentence saying whether the load itself could keep up, for figures that depend on its speed. */
export function headroom({ rounds }: ScenarioResult): string {
  const proxied = Object.keys(rounds).filter((name) => name !== 'direct');
  const busy = (name: string) => summarise(rounds, name).busy_percent;
  const limited = proxied.filter((name) => {
    const { client, provider } = busy(name);
    return Math.max(client, provider) >= LIMIT_PERCENT;
  });
  const most = (of: 'client' | 'provider') => Math.max(...proxied.map((name) => busy(name)[of])).toFixed(0);
  const used = `behind a proxy the client used at most ${most('client')} % of a core, the provider ${most('provider')} %`;
  return limited.length === 0
    ? `${used}: neither was the limit`
    : `${used}: the rates of ${limited.join(', ')} are those of the load, the CPU figures stand`;
}
