import { type JsonBody, withFields } from '../../lib/json-body.ts';

/** Where Azure has what is under `/v1` elsewhere. Its SDKs name a deployment where it is the deployment that is asked. */
const AZURE = /^\/openai(?:\/v1|\/deployments\/([^/?]+))?(?=\/)/;

/** The address under `/v1` that is meant by one of Azure's. Others stay as they are. */
export const underV1 = (url: string): string => url.replace(AZURE, '/v1');

/** The deployment that the path of a request names, which is the model that it is for. `url`: as the client wrote it. */
export function deploymentIn(url: string): string | undefined {
  const [, written] = AZURE.exec(url) ?? [];
  if (written === undefined) return undefined;
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

/** The body with the deployment as its model. As at Azure, it need not name one, and what it names is not asked. */
export function forDeployment(body: JsonBody, deployment: string | undefined): JsonBody {
  const isNamed = deployment === undefined || body.fields.model === deployment;
  return isNamed ? body : withFields(body, { model: deployment });
}
