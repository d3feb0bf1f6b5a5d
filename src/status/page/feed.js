/** Delay before reconnecting to a feed that was refused. A broken connection is restored by the browser. */
const RETRY_MS = 5000;

/** Follows the replica while the page is open. */
export function followReplica({ onSnapshot, onUpdate, onState }) {
  const source = new EventSource('runs/events');
  source.addEventListener('snapshot', ({ data }) => {
    onState('live');
    onSnapshot(JSON.parse(data));
  });
  source.addEventListener('update', ({ data }) => onUpdate(JSON.parse(data)));
  source.addEventListener('error', () => {
    onState('lost');
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => followReplica({ onSnapshot, onUpdate, onState }), RETRY_MS);
  });
}
