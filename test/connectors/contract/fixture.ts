import type { Connector } from '../../../connectors/contract/connector.ts';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';

/** Description of a vendor for the contract suite, one small file per vendor. */
export interface ContractFixture {
  connector: Connector;
  /** The same connector with a response timeout of 300 ms. */
  shortTimeout: Connector;
  /** Device type that this gateway serves. */
  deviceType: string;
  /** Valid credentials with the endpoint of a closed port. */
  credentials: JsonObject;
  /** Members of `credentials` that a report must not show. */
  secrets: string[];
  /** Returns the token of device number `n` in the gateway's format. */
  deviceToken(n: number): string;
  /** Starts the sandbox gateway. */
  start(): Promise<GatewayInstance>;
}

/** Answer that the gateway did not write. */
export interface ForeignAnswer {
  status: number;
  body?: string;
  retryAfter?: string;
  count?: number;
  isTokenCall?: true;
}

/** Sandbox gateway with controls for the responses that all gateways share. */
export interface GatewayInstance {
  credentials: JsonObject;
  /** Requests that named a device, and requests in all. */
  seen(deviceToken: string): number;
  readonly total: number;
  readonly violations: readonly string[];
  /** Makes the gateway report this device as invalid from now on. */
  kill(deviceToken: string): void;
  /** Makes the gateway answer the next requests with its rate limit. */
  throttle(): void;
  /** Makes the gateway refuse the credentials from now on. */
  refuseCredentials(): void;
  /** Expires the access tokens issued so far; absent if the gateway has none. */
  expireTokens?(): void;
  tokenCalls?(): number;
  /** Makes the gateway process requests without a response. */
  hang(): void;
  /** Makes the gateway answer 5xx. */
  breakDown(): void;
  /**
   * Makes something in front of the gateway answer so many requests, or calls for access tokens, in
   * its place.
   */
  answerFor(answer: ForeignAnswer): void;
  /** Uses up the day's quota; absent if the gateway has none. */
  useUpDay?(): void;
  /**
   * Makes the gateway refuse whole requests because of this device, unnamed; absent if it never
   * does.
   */
  makeAmbiguous?(deviceToken: string): void;
  /** Ends every misbehaviour. */
  behave(): void;
  forget(): void;
  close(): Promise<void>;
}

/** Controls of one vendor's gateway; the others are the same for all. */
export interface GatewayControls
  extends Pick<GatewayInstance, 'credentials' | 'throttle' | 'refuseCredentials'>,
    Partial<
      Pick<GatewayInstance, 'expireTokens' | 'hang' | 'breakDown' | 'useUpDay' | 'makeAmbiguous'>
    > {
  /** Clears the states of devices that only this gateway has. */
  behave?(): void;
}

/** Wraps a sandbox gateway; adds its URL to the credentials. */
export function gatewayInstance(
  gateway: SandboxGateway,
  { credentials, behave, ...own }: GatewayControls,
): GatewayInstance {
  return {
    hang: () => gateway.misbehave({ kind: 'hang' }),
    breakDown: () => gateway.misbehave({ kind: 'answer', status: 503 }),
    answerFor: (answer) => gateway.misbehave({ kind: 'answer', ...answer }),
    ...(own.expireTokens ? { tokenCalls: () => gateway.tokenCalls } : {}),
    ...own,
    credentials: { ...credentials, endpoint: gateway.url, ca: gateway.ca },
    seen: (deviceToken) => gateway.seen(deviceToken),
    get total() {
      return gateway.total;
    },
    get violations() {
      return gateway.violations;
    },
    kill: (deviceToken) => gateway.deadTokens.add(deviceToken),
    behave: () => {
      gateway.behave();
      gateway.deadTokens.clear();
      behave?.();
    },
    forget: () => gateway.forget(),
    close: () => gateway.close(),
  };
}
