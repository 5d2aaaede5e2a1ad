import type { Logger } from '../../shared/process/logging.ts';

/** Limits of the channel; tests pass smaller ones. */
export interface ChannelLimits {
  /** Connections of this process: each costs memory and a file descriptor. */
  connections: number;
  /**
   * Connections of one remote address (of IPv6: of one /64) to this process. High, because a
   * carrier puts thousands of phones behind one address, and a proxy missing from `TRUSTED_PROXIES`
   * puts all devices behind its own.
   */
  connectionsPerAddress: number;
  /**
   * Upgrades of one remote address in a minute: twice its connections, so that all its devices can
   * return twice.
   */
  upgradesPerAddress: number;
  /**
   * Connections of one app to this process; the rest stays free for other apps. There is no limit
   * over all processes, since every login would wait for the row of a shared count. More processes
   * allow an app more.
   */
  connectionsPerApp: number;
  /** Size of a frame from a device: enough for the acknowledgement of some hundred messages. */
  frameBytes: number;
  /** Interval at which deadlines are checked. */
  tickEveryMs: number;
  /** Frames of one device between two ticks; a device needs one every few seconds. */
  framesPerTick: number;
  /** Time from the connection to the login command. */
  loginWithinMs: number;
  /**
   * Further time to open the session: when all devices return at once, the last logins wait for
   * seconds.
   */
  sessionWithinMs: number;
  /**
   * Devices that wait for their installation and are looked up between two ticks.
   * Further ones take turns.
   */
  waitingPerTick: number;
  /** Silence after which the device is pinged. Long, since a ping wakes a phone's radio. */
  pingAfterMs: number;
  /** Time for any frame after the ping. */
  pongWithinMs: number;
  /**
   * Time for devices to move to another process when this one stops; afterwards they are closed.
   */
  goAwayWithinMs: number;
  /** Time for the close handshake; afterwards the socket is destroyed. */
  closeWithinMs: number;
  /** Unsent output above which a device gets no further messages until it has read. */
  bufferedBytes: number;
  /** Unsent frames above which the server drops replies to a device. */
  unsentFrames: number;
  /**
   * Time for a device to read some of the unsent output, even when it sends frames in that time.
   */
  readWithinMs: number;
  /** Messages sent to one device and not acknowledged; further ones wait for acknowledgements. */
  unacknowledgedMessages: number;
  /** Messages read for one device at a time; they are sent in one frame. */
  pageMessages: number;
  /**
   * Groups that were notified and not read yet. Of further ones, all messages move to the inboxes,
   * which are read afterwards.
   */
  groupsWaiting: number;
  /** Time for acknowledgements after which a message moves from its group to the inboxes. */
  moveAfterMs: number;
  /** Interval of the heartbeat of a node (api process). */
  heartbeatEveryMs: number;
  /** Interval at which a node checks for messages that its devices have not been sent. */
  sweepEveryMs: number;
  /** Time without a heartbeat after which a node counts as failed. */
  deadAfterMs: number;
  /** Time for which closed sessions are collected for one write. */
  writeDelayMs: number;
  /**
   * The same for acknowledgements: a write costs by the number of groups that it changes, not of
   * devices.
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
 * Returns the options of a `Batcher` that combines small writes of many connections, so that a
 * thousand devices that acknowledge one push do not queue for its row. While the database is away,
 * it keeps a limited number of items. Dropping more is safe: devices get those messages again.
 */
export const writeBatches = (name: string, log: Logger) => ({
  size: 4000,
  concurrency: 1,
  maxWaiting: 100_000,
  retry: {
    afterMs: 500,
    onError: (error: unknown) => log.warn({ err: error, buffer: name }, 'write failed, will retry'),
  },
});
