import type { Connector } from '../../../connectors/contract/connector.ts';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';

/** Description of a vendor for the contract tests. Each vendor has one small file. */
export interface ContractFixture {
  connector: Connector;
  /** The connector with a response timeout of 300 ms. */
  shortTimeout: Connector;
  /** Device type that the gateway serves. */
  deviceType: string;
  /** Valid credentials with the endpoint of a closed port. */
  credentials: JsonObject;
  /** Members of `credentials` that must not appear in a report. */
  secrets: string[];
  /** Returns the token of device number `n` in the gateway's format. */
  deviceToken(n: number): string;
  /**
   * True if a status without a body is an answer of the gateway, as in RFC 8030. Only a web page
   * then comes from a proxy.
   */
  isBareStatus?: true;
  /** Starts the sandbox gateway. */
  start(): Promise<GatewayInstance>;
}

/** Reply that the gateway itself did not write. */
export interface ProxyReply {
  status: number;
  body?: string;
  retryAfter?: string;
  count?: number;
  isTokenCall?: true;
}

/** Sandbox gateway with controls for the replies that all gateways have. */
export interface GatewayInstance {
  credentials: JsonObject;
  /**
   * `seen` returns the number of requests that named a device, `total` the number of all requests.
   */
  seen(deviceToken: string): number;
  readonly total: number;
  readonly violations: readonly string[];
  /** Makes the gateway report this device as invalid. */
  kill(deviceToken: string): void;
  /** Makes the gateway answer the next requests with its rate limit. */
  throttle(): void;
  /** Makes the gateway refuse the credentials. */
  refuseCredentials(): void;
  /** Expires all issued access tokens. Undefined if the gateway has none. */
  expireTokens?(): void;
  tokenCalls?(): number;
  /** Makes the gateway process requests without replying. */
  hang(): void;
  /** Makes the gateway answer with 5xx. */
  breakDown(): void;
  /** Makes a proxy in front of the gateway answer the next requests, or calls for access tokens. */
  answerFor(answer: ProxyReply): void;
  /** Uses up the daily quota. Undefined if the gateway has none. */
  useUpDay?(): void;
  /**
   * Makes the gateway refuse whole requests because of this device without naming it. Undefined if
   * the gateway never does this.
   */
  makeAmbiguous?(deviceToken: string): void;
  /** Ends all misbehaviour. */
  behave(): void;
  forget(): void;
  close(): Promise<void>;
}

/** Controls of a vendor's gateway. The other controls are the same for all gateways. */
export interface GatewayControls
  extends Pick<GatewayInstance, 'credentials' | 'throttle' | 'refuseCredentials'>,
    Partial<
      Pick<GatewayInstance, 'expireTokens' | 'hang' | 'breakDown' | 'useUpDay' | 'makeAmbiguous'>
    > {
  /** Clears the device states that only this gateway has. */
  behave?(): void;
}

/** Wraps a sandbox gateway and adds its URL to the credentials. */
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
