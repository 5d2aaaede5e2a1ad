/** Connection error: a violation of the protocol or of a limit, which ends the connection (RFC 9113 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, text: string) {
    super(text);
    this.name = 'ConnectionError';
    this.code = code;
  }
}

export function throwConnectionError(code: number, text: string): never {
  throw new ConnectionError(code, text);
}
