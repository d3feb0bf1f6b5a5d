import { readFileSync } from 'node:fs';
import type { Configuration } from '../config/configuration.ts';
import { type Finding, Findings } from './finding.ts';

/** As package.json has it. */
const NODE_MIN = [22, 19] as const;
/** The ports, the store, the log, the threads of Node. */
const OWN_DESCRIPTORS = 64;

/** What serve runs on. */
export function examineMachine({ limits }: Configuration, node_version = process.versions.node): Finding[] {
  const findings = new Findings('machine');
  examineNode(findings, node_version);
  examineDescriptors(findings, limits.connections);
  return findings.all;
}

function examineNode(findings: Findings, version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [major_min, minor_min] = NODE_MIN;
  if (major > major_min || (major === major_min && minor >= minor_min))
    return findings.ok('node', `Node ${version}`);
  return findings.fail(
    'node',
    `Node ${version}, which Holdfast is not made for`,
    `use Node ${major_min}.${minor_min} or later.`,
  );
}

/** Every stream has a connection of its client, and one upstream where HTTP/2 does not share it. */
function examineDescriptors(findings: Findings, connections: number): Finding {
  const limit = descriptorLimit();
  if (limit === undefined) return findings.skip('descriptors', 'this system does not tell its limit');
  const wanted = 2 * connections + OWN_DESCRIPTORS;
  const figures = { limit, wanted, connections };
  if (limit >= wanted)
    return findings.ok('descriptors', `${limit} files may be open, ${wanted} may be needed`, figures);
  return findings.warn(
    'descriptors',
    `${limit} files may be open, and limits.connections (${connections}) may need ${wanted}`,
    `raise the limit (ulimit -n, LimitNOFILE=), or set limits.connections to ${Math.max(1, Math.floor((limit - OWN_DESCRIPTORS) / 2))}.`,
    figures,
  );
}

/** Node has raised it as far as it may by itself. */
function descriptorLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
