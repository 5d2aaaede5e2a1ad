import type { Connector } from '../../../connectors/contract/connector.ts';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';

/** What the contract suite needs to know of a vendor: one small file each. */
export interface ContractFixture {
  connector: Connector;
  /** The same connector, which waits 300 ms for an answer. */
  impatient: Connector;
  /** A device type whose content this gateway takes. */
  deviceType: string;
  /** Credentials of the right form; nothing listens at their endpoint. */
  credentials: JsonObject;
  /** Members of `credentials` that a report must not show. */
  secrets: string[];
  /** Address of device number `n`, in the form the gateway gives them out. */
  deviceToken(n: number): string;
  /** Starts the sandbox gateway. */
  start(): Promise<GatewayInstance>;
}

/** A sandbox gateway, and how to have it produce what every gateway can answer. */
export interface GatewayInstance {
  credentials: JsonObject;
  /** How often a device was named in a request, and how many requests there were. */
  seen(deviceToken: string): number;
  readonly total: number;
  readonly violations: readonly string[];
  /** From now on the gateway says of this device that it is dead. */
  kill(deviceToken: string): void;
  /** The next requests are told that they come too fast. */
  throttle(): void;
  /** The credentials are refused, as often as they come. */
  refuseCredentials(): void;
  /** Access tokens given out so far are expired; absent where the gateway has none. */
  expireTokens?(): void;
  tokenCalls?(): number;
  /** Requests are processed and not answered. */
  hang(): void;
  /** The gateway breaks down: 5xx. */
  breakDown(): void;
  /** The day's quota is used up; absent where the gateway has none. */
  useUpDay?(): void;
  /** Whole requests are refused because of this device, without naming it; absent where that cannot be. */
  makeAmbiguous?(deviceToken: string): void;
  /** Ends every misbehaviour. */
  behave(): void;
  forget(): void;
  close(): Promise<void>;
}

/** Controls of one vendor's gateway; the others are the same for all. */
export interface GatewayControls
  extends Pick<GatewayInstance, 'credentials' | 'throttle' | 'refuseCredentials'>,
    Partial<Pick<GatewayInstance, 'expireTokens' | 'hang' | 'breakDown' | 'useUpDay' | 'makeAmbiguous'>> {
  /** Ends what only this gateway can be told of devices. */
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
