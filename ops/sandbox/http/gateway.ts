import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../../shared/clock.ts';
import type { CertificateAuthority, KeyPairPem } from '../kit/certificates.ts';
import type { SeenCall } from './ledger.ts';
import type { Misbehaviour } from './misbehaviour.ts';

/** One request with its whole body, as the rules of a gateway get it. */
export interface SandboxCall {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** What a gateway answers. `body` is sent as JSON, a text as it is. */
export interface SandboxReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Devices whose message was taken. */
  accepted?: readonly string[];
  /** What the client did that it must never do, beside getting this answer: kept in `violations`. */
  violation?: string;
}

/** The wire facts of one gateway. Pure but for what the gateway itself remembers. */
export interface GatewayRules {
  /** Devices a request names, before anything of it is checked, and whether it is a call for an access token. */
  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean };
  /** The answer the original would give. */
  handle(call: SandboxCall): SandboxReply;
  /** Clears the recorded requests; settings stay. */
  forget?(): void;
}

/** What rules may know of the gateway they are part of. */
export interface GatewayState {
  deadTokens: ReadonlySet<string>;
  nowMs(): number;
}

export interface SandboxOptions {
  /** Signs the server's certificate; absent: a new one. */
  authority?: CertificateAuthority;
  /** The server's own certificate, when it is to outlive this process. */
  server?: KeyPairPem;
  host?: string;
  port?: number;
  /** Streams that an HTTP/2 connection may have open; default 100. */
  maxStreams?: number;
  /** How many of the last requests are remembered whole; default 1000. */
  keptRequests?: number;
  clock?: Clock;
}

/** A vendor's gateway on loopback, with TLS; HTTP/2 and HTTP/1.1. */
export interface SandboxGateway {
  /** Base URL, for a profile's `endpoint` and `authEndpoint`. */
  readonly url: string;
  /** PEM to trust, for a profile's `ca`. */
  readonly ca: string;
  /** Requests processed, whatever the answer; calls for access tokens are counted in `tokenCalls`. */
  readonly total: number;
  readonly tokenCalls: number;
  /** Devices that were accepted, each as often as it was. */
  readonly accepted: number;
  /** How many different devices were named. */
  readonly distinct: number;
  /** The last requests, oldest first. */
  readonly requests: SeenCall[];
  readonly connections: number;
  /** What clients did that they must never do. */
  readonly violations: string[];
  /** Devices that the gateway says are dead, in its own way. */
  readonly deadTokens: Set<string>;
  /** How often a device was named in a request that was processed, whatever the answer. */
  seen(token: string): number;
  /** How often a message to it was accepted. */
  delivered(token: string): number;
  misbehave(what: Misbehaviour): void;
  /** Ends every misbehaviour. */
  behave(): void;
  /** Resolves once so many requests were processed. */
  waitFor(total: number): Promise<void>;
  /** Resolves once so many devices were accepted. */
  waitForAccepted(devices: number): Promise<void>;
  /** Clears the recorded requests. */
  forget(): void;
  close(): Promise<void>;
}
