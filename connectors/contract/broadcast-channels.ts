import type { ChannelStorage } from '../../shared/domain/pushes/live-activity.ts';

/** A request to the management server of a gateway failed. */
export interface ChannelFailure {
  ok: false;
  /** Status of the reply; 0 without a reply. */
  status: number;
  /** Reason of the gateway, or why there is no reply. */
  reason: string;
  /**
   * - `gone`: the channel does not exist.
   * - `full`: the app has as many channels as the gateway allows.
   * - `refused`: the request, the configuration or the credentials are wrong.
   * - `busy`: the gateway throttles requests.
   * - `temporary`: the gateway failed or was not reached.
   * - `unclear`: the request was sent and got no reply, or a success that cannot be read.
   */
  kind: 'gone' | 'full' | 'refused' | 'busy' | 'temporary' | 'unclear';
}

export type ChannelResult<T> = { ok: true; value: T } | ChannelFailure;

/** A request to the management server, as a dry run shows it. Contains no secret. */
export interface ChannelRequest {
  method: string;
  url: string;
  body?: Record<string, string | number>;
}

/**
 * Manages the broadcast channels of one bundle id at a gateway. No call is repeated. Creation is not
 * idempotent.
 */
export interface ChannelManager {
  /** Bundle id that owns the channels. */
  topic: string;
  create(storage: ChannelStorage): Promise<ChannelResult<string>>;
  /** Returns the storage of a channel. */
  read(channel: string): Promise<ChannelResult<ChannelStorage>>;
  delete(channel: string): Promise<ChannelResult<null>>;
  list(): Promise<ChannelResult<string[]>>;
  /** Returns the request that `create` or `delete` would send. */
  describe(call: { create: ChannelStorage } | { delete: string }): ChannelRequest;
}
