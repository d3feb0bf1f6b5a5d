const root = '/work/main';
const { Deployment, modelOf } = await import(root + '/test/e2e/deployment.ts');
const { rawAnswer, streamRequest } = await import(root + '/test/e2e/raw-client.ts');
const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const seen: Record<string, number> = {};
const until = Date.now() + 200_000;
while (Date.now() < until) {
  const d = await Deployment.start();
  d.plan('a', { parts: [{ text: TEXT }], faults: [{ kind: 'reset', at: { event: 6 } }] });
  d.plan('b', { parts: [{ text: TEXT }], faults: [{ kind: 'reset', at: { event: 6 } }] });
  await rawAnswer(d.holdfast.url, streamRequest(modelOf('h1'), 'b'));
  const a = await rawAnswer(d.holdfast.url, streamRequest(modelOf('h2'), 'a'));
  await d.holdfast.logged((l: any) => l.msg === 'run ended' && l.upstream === 'h2');
  const l = d.holdfast.log.filter((l: any) => l.msg === 'interrupted' && l.upstream === 'h2').map(({ cause, phase, evidence }: any) => JSON.stringify({ cause, phase, evidence })).join('|') + (a.text === TEXT);
  seen[l] = (seen[l] ?? 0) + 1;
  await d.close().catch(() => {});
}
console.log(seen); process.exit(0);
