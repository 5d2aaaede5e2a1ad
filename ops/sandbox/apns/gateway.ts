import type { Clock } from '../../../shared/clock.ts';
import type { CertificateAuthority, KeyPairPem } from '../kit/certificates.ts';
import type { SeenRequest } from './ledger.ts';
import type { Misbehaviour } from './misbehaviour.ts';
import type { ApnsKey } from './tokens.ts';

export interface ApnsGatewayOptions {
  /** Token keys it knows; `createApnsCredentials()` fits. */
  keys?: readonly ApnsKey[];
  /** Signs the server's certificate and trusts clients'; absent: a new one. */
  authority?: CertificateAuthority;
  /** The server's own certificate, when it is to outlive this process. */
  server?: KeyPairPem;
  host?: string;
  port?: number;
  /** Stream limit once a connection is trusted; default 1000. */
  maxStreams?: number;
  /** Lowers the limit to 1 after a refused device token, until the next success (protocol/apns.md#connections). */
  isStrictAfterRefusal?: boolean;
  /** Called for each request, which is then not recorded: for tests with very many devices. */
  onRequest?: (request: SeenRequest) => void;
  /** How many of the last requests are remembered whole; default 1000. */
  keptRequests?: number;
  clock?: Clock;
}

export interface ApnsGateway {
  /** Base URL, for a profile's `endpoint`. */
  url: string;
  /** PEM to trust, for a profile's `ca`. */
  ca: string;
  authority: CertificateAuthority;
  /** Requests processed, whatever the answer. */
  readonly total: number;
  /** Answered with 200. */
  readonly accepted: number;
  /** How many different device tokens were processed. */
  readonly distinct: number;
  /** How often this device token was processed. */
  seen(token: string): number;
  refusals(reason: string): number;
  /** The last requests, oldest first. */
  readonly requests: SeenRequest[];
  /** Connections made in all. */
  readonly connections: number;
  /** Most requests open at a time on one connection, before and after it was trusted. */
  readonly peakStreams: { untrusted: number; trusted: number };
  /** Connections that ended in a protocol error; a client that breaks the stream limit causes one. */
  readonly protocolErrors: string[];
  /** Device token → when it died (epoch milliseconds): answered with 410 Unregistered. */
  readonly deadTokens: Map<string, number>;
  /** Answered with 400 BadDeviceToken. */
  readonly badTokens: Set<string>;
  /** Device token → the only topic it belongs to; another one gets DeviceTokenNotForTopic. */
  readonly tokenTopics: Map<string, string>;
  misbehave(what: Misbehaviour): void;
  /** Ends every misbehaviour. */
  behave(): void;
  /** Sends GOAWAY on every connection; what is in flight is still answered. */
  goaway(reason?: string): void;
  /** Resolves once so many requests were processed. */
  waitFor(total: number): Promise<void>;
  /** Clears the recorded requests. */
  forget(): void;
  close(): Promise<void>;
}
