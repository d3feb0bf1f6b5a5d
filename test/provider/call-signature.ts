/** The signature that a signing provider attaches to a call; it encodes which call was signed. */
export const callSignature = (id: string): string => Buffer.from(`signed: ${id}`).toString('base64');
