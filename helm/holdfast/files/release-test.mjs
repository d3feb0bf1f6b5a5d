// `helm test` runs this in a pod of the image: is a replica alive and ready, and does the API answer through the Service?
// Arguments: the base URLs of the admin port and of the API, and how long to try, in seconds.
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPT_MS = 5000;
const PAUSE_MS = 500;

const [admin, api, limit_s] = process.argv.slice(1);
const deadline = Date.now() + Number(limit_s) * 1000;

// Holdfast answers the last one itself: it requires no key and asks no provider.
const urls = [`${admin}/livez`, `${admin}/readyz`, `${api}/holdfast/v1/openapi.json`];

/** What's wrong with the answer; undefined if it's good. */
async function problemWith(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ATTEMPT_MS) });
    const body = await answer.text();
    return answer.ok ? undefined : `${answer.status} ${body}`;
  } catch (error) {
    return error.cause?.message ?? error.message;
  }
}

for (const url of urls) {
  // This test's names and policies are as new as its pod, and take a moment to reach every node.
  let problem = await problemWith(url);
  while (problem !== undefined && Date.now() < deadline) {
    await sleep(PAUSE_MS);
    problem = await problemWith(url);
  }
  console.log(problem === undefined ? `ok    ${url}` : `FAIL  ${url}: ${problem}`);
  if (problem !== undefined) process.exit(1);
}
