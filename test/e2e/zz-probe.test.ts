import { test } from 'vitest';
import { Deployment, modelOf } from '/work/main/test/e2e/deployment.ts';
import { rawAnswer, streamRequest } from '/work/main/test/e2e/raw-client.ts';
const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it has gone out again.';
const at = { event: 6 } as const;
const list: [string, 'h1'|'h2'|'impatient', any][] = [
 ...['reset','fin_in_chunk','clean_eof','done_without_finish','malformed_event','error_openai','error_openrouter','error_vllm','error_tgi','error_ollama','error_gemini','error_anthropic','error_string','error_rate_limited','error_quota','finish_insufficient_system_resource','finish_abort','finish_overloaded_error'].map(kind=>[kind,'h1',{kind,at}] as any),
 ...['reset','h2_rst','goaway_0_close','goaway_error','goaway_graceful','tls_cut','clean_eof'].map(kind=>[kind,'h2',{kind,at}] as any),
 ['reset before','h1',{kind:'reset',at:{before_headers:true}}],
 ['h2 before','h2',{kind:'h2_rst',at:{before_headers:true}}],
 ['goaway before','h2',{kind:'goaway_error',at:{before_headers:true}}],
 ['goaway 0 before','h2',{kind:'goaway_0_close',at:{before_headers:true}}],
 ['silence before','impatient',{kind:'silence',at:{before_headers:true}}],
 ['silence 0','impatient',{kind:'silence',at:{event:0}}],
 ['silence','impatient',{kind:'silence',at}],
 ['comments','impatient',{kind:'comments',at, every_ms: 50}],
 ['pings','impatient',{kind:'pings',at, every_ms: 50}],
 ['ping events','impatient',{kind:'pings',at, every_ms: 50, shape:'event'}],
 ['comments 0','impatient',{kind:'comments',at:{event:1}, every_ms: 50}],
 ['503','h1',{kind:'status',status:503}],
 ['json','h1',{kind:'json_200'}],['html','h1',{kind:'html_200'}],
 ['reset after','h1',{kind:'reset',at:{after_finish:true}}],
 ...[400,401,403,404,408,409,422,429,500,502,504,529].map(s=>[String(s),'h1',{kind:'status',status:s, body:{error:{message:'x',type:null,code:null}}}] as any),
];
test('probe', { timeout: 60000 }, async () => {
  const d = await Deployment.start();
  for (const [name, up, fault] of list) {
    const q = `probe ${up} ${name}`;
    d.plan(q, { parts: [{ text: TEXT }], faults: [fault] });
    const from = d.holdfast.log.length;
    const t = performance.now();
    const a = await rawAnswer(d.holdfast.url, streamRequest(modelOf(up), q));
    await d.holdfast.logged(l => l.msg === 'run ended', from);
    const lines = d.holdfast.log.slice(from).filter(l => l.msg === 'interrupted').map(({cause,phase,evidence,status,plan,mode,retry_after_ms}) => JSON.stringify({cause,phase,evidence,status,plan,mode,retry_after_ms}));
    console.log(name, up, a.status, a.text === TEXT, a.finish, a.done, d.requests(q).length, Math.round(performance.now()-t), lines.join(' | '), a.text === TEXT ? '' : a.body.slice(-600), JSON.stringify(a.chunks.at(-1)?.usage));
  }
  await d.close();
});
