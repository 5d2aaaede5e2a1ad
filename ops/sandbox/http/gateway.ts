import type { IncomingHttpHeaders } from 'node:http';
import type { Success } from '../kit/unchecked.ts';

/** One request with its whole body, for the rules of a gateway. */
export interface SandboxCall {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Response of a gateway. `body` is sent as JSON, a string unchanged. */
export interface SandboxReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Devices whose message was accepted. */
  accepted?: readonly string[];
  /** Description of a request that a client must never send; recorded in `violations`. */
  violation?: string;
}

/** Protocol of one gateway. Pure except for the gateway's own state. */
export interface GatewayRules {
  /**
   * Returns the devices that a request names, unchecked, and whether it is a call for an access
   * token.
   */
  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean };
  /** Returns the response of the original. */
  handle(call: SandboxCall): SandboxReply;
  /** Replies of a gateway without checks. */
  readonly successes?: readonly Success[];
  /** Clears the recorded requests; settings stay. */
  forget?(): void;
}

/** State of the gateway that its rules can read. */
export interface GatewayState {
  deadTokens: ReadonlySet<string>;
  nowMs(): number;
}

/** One processed request. */
export interface SeenCall {
  method: string;
  /** With its query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Devices that it names. */
  tokens: readonly string[];
  status: number;
  /** Number of its connection, from 1. */
  connection: number;
}
