// Preloaded into a Holdfast process, so that it counts calls from the first one on. Answers over IPC.
import { Session } from 'node:inspector';
import type { Call, HeapSnapshot, InstanceCounts, ProbeAnswer, ProbeQuestion } from './probe-messages.ts';

const SOURCE_URL = new URL('../../src/', import.meta.url).href;

const session = new Session();
session.connect();
/** The scripts below src/, by their ids in V8. */
const sources = new Map<string, string>();

session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true }, refuse);

process.on('message', (question: ProbeQuestion) => {
  if (question === 'calls') takeCalls((calls) => tell({ calls }));
  else takeCalls(() => takeInstances((instances) => tell({ instances })));
});

// The measured process must not outlive the measurement, however that ends.
process.on('disconnect', () => process.exit());

function tell(answer: ProbeAnswer): void {
  process.send?.(answer);
}

function refuse(error: Error | null): void {
  if (error) throw error;
}

/** The functions below src/ that were called since the last question, with the number of calls. */
function takeCalls(take: (calls: Call[]) => void): void {
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    refuse(error);
    const scripts = result.filter(({ url }) => url.startsWith(SOURCE_URL));
    for (const { scriptId, url } of scripts) sources.set(scriptId, url);
    const calls = scripts.flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName: name, ranges: [whole] }) =>
        whole && whole.count > 0
          ? [
              {
                file: `src/${url.slice(SOURCE_URL.length)}`,
                name,
                start: whole.startOffset,
                count: whole.count,
              },
            ]
          : [],
      ),
    );
    take(calls);
  });
}

/** The live objects by their class below src/, after the full garbage collection that a heap snapshot starts with. */
function takeInstances(take: (instances: InstanceCounts) => void): void {
  const chunks: string[] = [];
  const keep = ({ params }: { params: { chunk: string } }) => chunks.push(params.chunk);
  session.on('HeapProfiler.addHeapSnapshotChunk', keep);
  session.post('HeapProfiler.takeHeapSnapshot', (error) => {
    refuse(error);
    session.off('HeapProfiler.addHeapSnapshotChunk', keep);
    take(instancesIn(JSON.parse(chunks.join('')) as HeapSnapshot));
  });
}

/** Uses the source location of each object's constructor, because a library may have classes with the same names. */
function instancesIn({ snapshot: { meta }, nodes, locations, strings }: HeapSnapshot): InstanceCounts {
  const instances: Record<string, number> = {};
  const object = meta.node_types[0].indexOf('object');
  const type_at = meta.node_fields.indexOf('type');
  const name_at = meta.node_fields.indexOf('name');
  for (let at = 0; at < locations.length; at += meta.location_fields.length) {
    const [node = 0, script] = locations.slice(at, at + meta.location_fields.length);
    const url = sources.get(String(script));
    if (url === undefined || nodes[node + type_at] !== object) continue;
    const name = strings[nodes[node + name_at] ?? 0] ?? '';
    // V8's state of a suspended asynchronous function.
    if (name === 'Generator') continue;
    const key = `${name} in src/${url.slice(SOURCE_URL.length)}`;
    instances[key] = (instances[key] ?? 0) + 1;
  }
  return instances;
}
