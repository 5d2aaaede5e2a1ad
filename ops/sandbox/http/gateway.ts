import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../../shared/clock.ts';
import type { CertificateAuthority, KeyPairPem } from '../kit/certificates.ts';
import type { SeenCall } from './ledger.ts';
import type { Misbehaviour } from './misbehaviour.ts';

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
  /** Returns the devices that a request names, unchecked, and whether it is a call for an access token. */
  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean };
  /** Returns the response of the original. */
  handle(call: SandboxCall): SandboxReply;
  /** Clears the recorded requests; settings stay. */
  forget?(): void;
}

/** State of the gateway that its rules can read. */
export interface GatewayState {
  deadTokens: ReadonlySet<string>;
  nowMs(): number;
}

export interface SandboxOptions {
  /** Signs the server's certificate; absent: a new one. */
  authority?: CertificateAuthority;
  /** The server's certificate, if it must stay the same across restarts. */
  server?: KeyPairPem;
  host?: string;
  port?: number;
  /** Streams that an HTTP/2 connection may have open; default 100. */
  maxStreams?: number;
  /** Number of recent requests that are kept with their bodies; default 1000. */
  keptRequests?: number;
  clock?: Clock;
}

/** A vendor's gateway on loopback, with TLS; HTTP/2 and HTTP/1.1. */
export interface SandboxGateway {
  /** Base URL, for a profile's `endpoint` and `authEndpoint`. */
  readonly url: string;
  /** PEM to trust, for a profile's `ca`. */
  readonly ca: string;
  /** Requests processed, whatever the response; calls for access tokens are counted in `tokenCalls`. */
  readonly total: number;
  readonly tokenCalls: number;
  /** Accepted messages: one per device and request. */
  readonly accepted: number;
  /** Number of different devices in requests. */
  readonly distinct: number;
  /** The last requests, oldest first. */
  readonly requests: SeenCall[];
  readonly connections: number;
  /** Requests that clients must never send, described. */
  readonly violations: string[];
  /** Devices that the gateway reports as invalid, in its own way. */
  readonly deadTokens: Set<string>;
  /** Returns the number of processed requests that named a device, whatever the response. */
  seen(token: string): number;
  /** Returns the number of accepted messages to a device. */
  delivered(token: string): number;
  misbehave(what: Misbehaviour): void;
  /** Ends every misbehaviour. */
  behave(): void;
  /** Resolves when `total` requests were processed. */
  waitFor(total: number): Promise<void>;
  /** Resolves when messages to `devices` devices were accepted. */
  waitForAccepted(devices: number): Promise<void>;
  /** Clears the recorded requests. */
  forget(): void;
  close(): Promise<void>;
}
