/** The peer broke the protocol, or asks for more than we give: the connection ends with this code (RFC 9113 5.4.1). */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, what: string) {
    super(what);
    this.name = 'ConnectionError';
    this.code = code;
  }
}

export function throwConnectionError(code: number, what: string): never {
  throw new ConnectionError(code, what);
}
