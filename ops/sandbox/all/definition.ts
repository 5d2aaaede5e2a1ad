import { z } from 'zod';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import type { SandboxGateway } from '../http/server.ts';
import type { CertificateAuthority } from '../kit/certificates.ts';
import type { SandboxOptions } from '../kit/gateway.ts';

/** Running gateway of the sandbox. The interface is the same for all connectors. */
interface GatewayControl {
  url: string;
  /**
   * Credentials for a push profile: the body of `PUT
   * /console/api/apps/:appId/profiles/:connector/:name`.
   */
  credentials: JsonObject;
  /** Returns the number of requests that contained the device. */
  seen(deviceToken: string): number;
  summary(): GatewaySummary;
  /** The last requests, oldest first. */
  requests(): ShownRequest[];
  violations(): readonly string[];
  close(): Promise<void>;
}

/** Running gateway with the names of its connector. */
export interface GatewayInstance extends GatewayControl {
  connector: ConnectorId;
  /** Brand, for people. */
  title: string;
  /** `vendor` of its installations. Null if the device type decides instead. */
  vendor: string | null;
  /** Returns the token of device `n` in the vendor's format. */
  deviceToken(n: number): string;
}

interface GatewaySummary {
  requests: number;
  accepted: number;
  devices: number;
  violations: number;
}

/** One request, as the page shows it. */
export interface ShownRequest {
  path: string;
  status: number;
  devices: number;
  body: Buffer;
}

/** Gateway of one connector, for a sandbox that starts all gateways. */
export interface SandboxDefinition {
  connector: ConnectorId;
  /**
   * Returns a device token in the vendor's format. `hash` has 64 hexadecimal digits and differs
   * between devices.
   */
  deviceToken(hash: string): string;
  /**
   * Creates the credentials of an app as the vendor's console issues them. They are stored and used
   * again at later starts.
   */
  createApp(): Promise<object>;
  /** Starts a gateway that accepts `app`. Resolves when it listens. */
  start(app: unknown, options: InstanceOptions): Promise<GatewayControl>;
}

/** Definition that gives tests access to its running gateways in the vendor's own type. */
export interface TypedDefinition<G> extends SandboxDefinition {
  /** Returns the gateway that listens at this URL. */
  gatewayAt(url: string): G;
}

/** Options of one gateway of the sandbox. */
export interface InstanceOptions extends SandboxOptions {
  authority: CertificateAuthority;
  /** Port of a second server, if the gateway has one. */
  managementPort?: number;
}

/** The parts of a definition that depend on the vendor. */
interface GatewayParts<App, G> extends Pick<SandboxDefinition, 'connector' | 'deviceToken'> {
  /** Loads the code of the gateway. Only processes that run gateways need it. */
  load(): Promise<{
    createApp(): App;
    start(app: App, options: InstanceOptions): Promise<G>;
    /** Members of a push profile for this app. */
    credentials(app: App, gateway: G): JsonObject;
  }>;
  /** Returns functions to control the gateway. */
  control(gateway: G): Omit<GatewayControl, 'url' | 'credentials'>;
}

/** Defines a gateway of any kind. */
export function defineGateway<App extends object, G extends { url: string }>(
  parts: GatewayParts<App, G>,
): TypedDefinition<G> {
  const { connector, control, deviceToken, load } = parts;
  const stored = z.custom<App>((value) => typeof value === 'object' && value !== null);
  const running = new Map<string, G>();
  return {
    connector,
    deviceToken,
    createApp: async () => (await load()).createApp(),
    async start(given, options) {
      const { credentials, start } = await load();
      const app = stored.parse(given);
      const gateway = await start(app, options);
      running.set(gateway.url, gateway);
      return { url: gateway.url, credentials: credentials(app, gateway), ...control(gateway) };
    },
    gatewayAt(url) {
      const gateway = running.get(url);
      if (!gateway) throw new Error(`no ${connector} gateway was started at ${url}`);
      return gateway;
    },
  };
}

/**
 * Rate in profiles of the sandbox. Connectors respect the published rates of vendors by default,
 * but the sandbox has no rate limit.
 */
const ratePerSecond = 1_000_000;

type HttpParts<App, G> = Omit<GatewayParts<App, G>, 'control'> & {
  /** False if the gateway has no token call. */
  hasTokenCall?: boolean;
  /** Returns the text of a request for the page, if the body is encrypted. */
  shownBody?(gateway: G, request: { path: string; body: Buffer }): Buffer;
};

/** Defines an HTTP gateway. Adds the members that all profiles have to `credentials`. */
export function defineHttpGateway<App extends object, G extends SandboxGateway>(
  parts: HttpParts<App, G>,
): TypedDefinition<G> {
  return defineGateway<App, G>({
    ...parts,
    async load() {
      const loaded = await parts.load();
      return {
        ...loaded,
        credentials(app: App, gateway: G) {
          const { ca, url } = gateway;
          const own = loaded.credentials(app, gateway);
          const members: JsonObject = { ...own, endpoint: url, ca, ratePerSecond };
          return parts.hasTokenCall === false ? members : { ...members, authEndpoint: url };
        },
      };
    },
    control: (gateway) => {
      const control = controlOf(gateway);
      const shown = ({ body, ...request }: ShownRequest): ShownRequest => ({
        ...request,
        body: parts.shownBody?.(gateway, { ...request, body }) ?? body,
      });
      return { ...control, requests: () => control.requests().map(shown) };
    },
  });
}

const controlOf = (gateway: SandboxGateway): Omit<GatewayControl, 'url' | 'credentials'> => ({
  seen: (deviceToken) => gateway.seen(deviceToken),
  summary: () => ({
    requests: gateway.total,
    accepted: gateway.accepted,
    devices: gateway.distinct,
    violations: gateway.violations.length,
  }),
  requests: () =>
    gateway.requests.map(({ body, path, status, tokens }) => ({
      path,
      status,
      devices: tokens.length,
      body,
    })),
  violations: () => gateway.violations,
  close: () => gateway.close(),
});
