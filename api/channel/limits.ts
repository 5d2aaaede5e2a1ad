import type { Logger } from '../../shared/process/logging.ts';

/** Limits of the device channel. Tests use smaller limits. */
export interface ChannelLimits {
  /** Connections of this process. Each connection costs memory and a file descriptor. */
  connections: number;
  /**
   * Connections of one remote address to this process. For IPv6, the limit is per /64 network. The
   * limit is high for two reasons: a carrier puts thousands of phones behind one address, and a
   * proxy that is missing from `TRUSTED_PROXIES` puts all devices behind its address.
   */
  connectionsPerAddress: number;
  /**
   * Upgrades of one remote address in a minute. This is twice the number of its connections, so
   * that all its devices can reconnect twice.
   */
  upgradesPerAddress: number;
  /**
   * Connections of one app to this process. The other connections stay free for other apps. There
   * is no limit over all processes, because every login would wait for the row of a shared count.
   * More processes allow an app more connections.
   */
  connectionsPerApp: number;
  /** Maximum size of a frame from a device. An acknowledgement of some hundred messages fits. */
  frameBytes: number;
  /** Interval at which deadlines are checked. */
  tickEveryMs: number;
  /** Frames of one device between two ticks. A device needs one frame every few seconds. */
  framesPerTick: number;
  /** Time from the connection to the login command. */
  loginWithinMs: number;
  /**
   * Additional time to open the session. When all devices reconnect at once, the last logins wait
   * for seconds.
   */
  sessionWithinMs: number;
  /**
   * Number of waiting devices whose installation is searched for in each tick. Later ticks check
   * the other devices.
   */
  waitingPerTick: number;
  /**
   * Silence after which the device is pinged. The time is long because a ping wakes a phone's
   * radio.
   */
  pingAfterMs: number;
  /** Time in which any frame must arrive after the ping. */
  pongWithinMs: number;
  /**
   * Time for devices to move to another process when this process stops. Afterwards their
   * connections are closed.
   */
  goAwayWithinMs: number;
  /** Time for the close handshake. Afterwards the socket is destroyed. */
  closeWithinMs: number;
  /** Unsent bytes above which a device gets no more messages until it has read. */
  bufferedBytes: number;
  /** Unsent frames above which the server drops replies to a device. */
  unsentFrames: number;
  /**
   * Time in which a device must read some of the unsent output, even if it sends frames in that
   * time.
   */
  readWithinMs: number;
  /**
   * Messages that one device may have unacknowledged. Further messages wait for acknowledgements.
   */
  unacknowledgedMessages: number;
  /** Messages read for one device at a time. They are sent in one frame. */
  pageMessages: number;
  /**
   * Groups that were notified and are not read yet. If more groups arrive, all their messages move
   * to the inboxes, which are read later.
   */
  groupsWaiting: number;
  /** Time to acknowledge, after which a message moves from its group to the inboxes. */
  moveAfterMs: number;
  /** Interval of the heartbeat of a node (api process). */
  heartbeatEveryMs: number;
  /** Interval at which a node checks for messages that its devices were not sent. */
  sweepEveryMs: number;
  /** Time without a heartbeat after which a node counts as failed. */
  deadAfterMs: number;
  /** Time for which closed sessions are collected for one write. */
  writeDelayMs: number;
  /**
   * Time for which acknowledgements are collected for one write. The cost of a write depends on the
   * number of groups that it changes, not on the number of devices.
   */
  acknowledgeDelayMs: number;
  /** Shortest interval at which a login refreshes `updatedAt` of an installation. */
  touchEveryMs: number;
}

export const channelLimits: ChannelLimits = {
  connections: 50_000,
  connectionsPerAddress: 20_000,
  upgradesPerAddress: 40_000,
  connectionsPerApp: 40_000,
  frameBytes: 16 * 1024,
  tickEveryMs: 1000,
  framesPerTick: 200,
  loginWithinMs: 10_000,
  sessionWithinMs: 60_000,
  waitingPerTick: 1000,
  pingAfterMs: 200_000,
  pongWithinMs: 40_000,
  goAwayWithinMs: 2000,
  closeWithinMs: 2000,
  bufferedBytes: 64 * 1024,
  unsentFrames: 64,
  readWithinMs: 60_000,
  unacknowledgedMessages: 256,
  pageMessages: 32,
  groupsWaiting: 10_000,
  moveAfterMs: 30_000,
  heartbeatEveryMs: 10_000,
  sweepEveryMs: 30_000,
  deadAfterMs: 60_000,
  writeDelayMs: 20,
  acknowledgeDelayMs: 50,
  touchEveryMs: 3_600_000,
};

/**
 * Returns the options of a `Batcher` that combines small writes of many connections. Otherwise a
 * thousand devices that acknowledge one push would queue for its row. If the database is slower than
 * the devices of an app, the batcher keeps a limited number of the app's items and drops others.
 * This is safe, because devices get these messages again.
 */
export const writeBatches = (name: string, log: Logger) => ({
  size: 4000,
  concurrency: 1,
  maxWaiting: 100_000,
  fairBy: ({ appId }: { appId: string }) => appId,
  retry: {
    afterMs: 500,
    onError: (error: unknown) => log.warn({ err: error, buffer: name }, 'write failed, will retry'),
  },
});
