import type { Clock } from '../../../shared/clock.ts';
import type { CertificateAuthority, KeyPairPem } from '../kit/certificates.ts';
import type { SeenRequest } from './ledger.ts';
import type { Misbehaviour } from './misbehaviour.ts';
import type { ApnsKey } from './tokens.ts';

export interface ApnsGatewayOptions {
  /** Provider keys that it accepts, such as those of `createApnsCredentials()`. */
  keys?: readonly ApnsKey[];
  /** Signs the server's certificate and verifies clients' certificates; absent: a new one. */
  authority?: CertificateAuthority;
  /** The server's certificate, if it must stay the same across restarts. */
  server?: KeyPairPem;
  host?: string;
  port?: number;
  /** Stream limit once a connection is trusted; default 1000. */
  maxStreams?: number;
  /** Lowers the limit to 1 after a refused device token, until the next success (protocol/apns.md#connections). */
  isStrictAfterRefusal?: boolean;
  /** Receives each request, which is then not recorded: for tests with very many devices. */
  onRequest?: (request: SeenRequest) => void;
  /** Number of recent requests that are kept with their bodies; default 1000. */
  keptRequests?: number;
  clock?: Clock;
}

export interface ApnsGateway {
  /** Base URL, for a profile's `endpoint`. */
  url: string;
  /** PEM to trust, for a profile's `ca`. */
  ca: string;
  authority: CertificateAuthority;
  /** Requests processed, whatever the response. */
  readonly total: number;
  /** Requests with response 200. */
  readonly accepted: number;
  /** Number of different device tokens in processed requests. */
  readonly distinct: number;
  /** Returns the number of processed requests to this device token. */
  seen(token: string): number;
  refusals(reason: string): number;
  /** The last requests, oldest first. */
  readonly requests: SeenRequest[];
  /** Connections accepted so far. */
  readonly connections: number;
  /** Maximum number of open requests on one connection, before and after it was trusted. */
  readonly peakStreams: { untrusted: number; trusted: number };
  /** Protocol errors that ended connections; a client that exceeds the stream limit causes one. */
  readonly protocolErrors: string[];
  /** Device token → since when it is invalid (epoch milliseconds). The response is 410 Unregistered. */
  readonly deadTokens: Map<string, number>;
  /** Device tokens with the response 400 BadDeviceToken. */
  readonly badTokens: Set<string>;
  /** Device token → its only topic; for other topics the response is DeviceTokenNotForTopic. */
  readonly tokenTopics: Map<string, string>;
  misbehave(what: Misbehaviour): void;
  /** Ends every misbehaviour. */
  behave(): void;
  /** Sends GOAWAY on every connection; requests in flight still get a response. */
  goaway(reason?: string): void;
  /** Resolves when `total` requests were processed. */
  waitFor(total: number): Promise<void>;
  /** Clears the recorded requests. */
  forget(): void;
  close(): Promise<void>;
}
