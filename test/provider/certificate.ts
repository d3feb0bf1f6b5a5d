import { generate } from 'selfsigned';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

let generated: Promise<Certificate> | undefined;

/** A self-signed certificate for 127.0.0.1 and localhost; one per process, since generating keys takes time. */
export function certificate(): Promise<Certificate> {
  generated ??= generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  }).then(({ private: key, cert }) => ({ key, cert }));
  return generated;
}
