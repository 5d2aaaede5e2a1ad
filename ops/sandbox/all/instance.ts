import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';

/** Running gateway of the sandbox, the same for every connector. */
export interface GatewayControl {
  url: string;
  /** Body of `PUT /console/api/apps/:appId/profiles/:connector/:name`. */
  credentials: JsonObject;
  /** Returns how often requests named the device. */
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
  /** `vendor` of its installations; null where the device type decides. */
  vendor: string | null;
  /** Returns the token of device number `n`, in the vendor's format. */
  deviceToken(n: number): string;
}

export interface GatewaySummary {
  requests: number;
  accepted: number;
  devices: number;
  violations: number;
}

/** One request as the page shows it. */
export interface ShownRequest {
  path: string;
  status: number;
  devices: number;
  body: Buffer;
}
